"""Predictions without data: sequential recovery, its finite-size terms, kernels, filters."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
