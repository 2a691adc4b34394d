"""Regression on sequences of tokens whose weights are a product of two matrices."""
