"""Random-matrix theory: bulk edges, densities, outliers, overlaps, and finite-size thresholds."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
