"""Separable multi-index models: many directions of equal amplitude, told apart at a threshold."""
