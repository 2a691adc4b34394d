"""How data, width and depth must scale for an architecture to learn a target."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
