"""Separable multi-index models: many directions of equal amplitude."""
