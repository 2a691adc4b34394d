"""Hierarchical multi-index models: features of decreasing amplitude."""
