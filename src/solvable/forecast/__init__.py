"""Extrapolate learning curves, with intervals and a verdict on the two fitted models."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
