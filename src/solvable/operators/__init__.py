"""Matrix-free, chunked linear operators built from data."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
