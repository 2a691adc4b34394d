"""Targets: distributions over (x, y) whose latent features are known."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
