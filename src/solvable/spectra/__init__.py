"""Laws of random matrices: bulk edges, outliers, overlaps and rounding at threshold."""

from __future__ import annotations

from solvable.spectra.edges import (
    BulkEdges,
    semicircle,
    semicircle_edges,
    tracy_widom_quantile,
    weighted_bulk,
    weighted_bulk_edges,
)

__all__ = [
    "BulkEdges",
    "semicircle",
    "semicircle_edges",
    "tracy_widom_quantile",
    "weighted_bulk",
    "weighted_bulk_edges",
]
