"""Compositional targets: chains of quadratic layers."""
