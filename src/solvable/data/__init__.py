"""Data sets, tables of one's own, and sources larger than memory."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
