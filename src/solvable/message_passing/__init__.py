"""Channels, state evolution and approximate message passing for Gaussian latent variables."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
