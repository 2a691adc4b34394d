"""Parts of models of one's own: priors, outputs, losses, and the theory and algorithms of their sum."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
