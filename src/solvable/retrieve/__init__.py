"""Late-interaction retrieval: train small students in phases, index documents, and search them."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
