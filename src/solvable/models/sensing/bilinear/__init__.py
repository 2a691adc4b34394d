"""Regression on sequences of tokens; the weight matrix is a product of two factors."""
