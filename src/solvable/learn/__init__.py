"""Features that a data set teaches, measured on unseen rows and told to a person."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
