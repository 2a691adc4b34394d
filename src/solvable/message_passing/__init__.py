"""Channels, state evolution and message passing over Gaussian latent coordinates."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
