"""Learn features from a data set, measure their error on unseen rows, and report both."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
