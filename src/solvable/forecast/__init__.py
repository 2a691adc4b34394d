"""Learning curves extrapolated, with intervals and a word on what the data cannot tell."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
