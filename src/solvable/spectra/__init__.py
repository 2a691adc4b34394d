"""Laws of random matrices: bulk edges, densities, outliers, overlaps and rounding at threshold."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
