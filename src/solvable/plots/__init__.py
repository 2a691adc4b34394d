"""Figures as plain data, and the canvases that draw them; heavy libraries load on first use."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
