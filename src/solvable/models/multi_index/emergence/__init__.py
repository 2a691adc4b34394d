"""Emergence of features in online gradient descent."""
