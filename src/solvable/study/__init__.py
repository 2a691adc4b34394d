"""Studies: a system over a grid of parameters and replicates, run, stored and judged."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
