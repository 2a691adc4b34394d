"""Threshold of outliers and bins of overlaps, for measurement and prediction."""

from __future__ import annotations

from math import sqrt

import numpy as np

LAW_EDGES = np.linspace(0.0, 4.0, 41)
"""Edges of the bins in which neurons are counted by the size of u."""


def outlier_edge(dimension: int) -> float:
    """Return the threshold of outliers in u: three standard deviations of the prior."""
    return 3 / sqrt(dimension)
