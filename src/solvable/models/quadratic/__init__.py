"""Quadratic networks: trained to their minimum, narrow ones, diagonal ones, and gradient flow."""
