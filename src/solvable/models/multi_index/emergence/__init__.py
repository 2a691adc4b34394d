"""Emergence of features in online stochastic gradient descent."""
