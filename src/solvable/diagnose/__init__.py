"""Noise and learned features in trained weight matrices, estimated from their spectra."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
