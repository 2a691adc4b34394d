"""Figures as plain data, and the back ends that draw them."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
