"""Attention: estimation and training of the key-query matrix from attention matrices."""
