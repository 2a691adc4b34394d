"""Learners with the interface of scikit-learn: layer-wise spectral features and networks."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
