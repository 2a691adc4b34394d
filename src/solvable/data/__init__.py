"""Load named data sets, tables and images, and read sources larger than memory."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
