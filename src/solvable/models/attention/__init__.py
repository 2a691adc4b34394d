"""Attention: matrices of keys and queries, learned from the attention of a few tokens."""
