"""Attention: estimate or train the key-query matrix from observed attention matrices."""
