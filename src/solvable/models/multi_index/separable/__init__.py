"""Separable multi-index models: sums of directions of equal amplitude."""
