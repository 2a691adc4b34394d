"""Separable multi-index models: labels are sums over directions of equal amplitude."""
