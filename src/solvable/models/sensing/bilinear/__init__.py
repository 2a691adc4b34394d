"""Regression on token sequences with a weight matrix that is a product of two factors."""
