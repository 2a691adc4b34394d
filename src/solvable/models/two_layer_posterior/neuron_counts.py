"""Edges by which neurons are counted, measured and predicted: outliers, and bins of their overlap."""

from __future__ import annotations

from math import sqrt

import numpy as np

LAW_EDGES = np.linspace(0.0, 4.0, 41)
"""Edges of the bins of |u| in which neurons are counted."""


def outlier_edge(dimension: int) -> float:
    """|u| beyond which a neuron is an outlier: three standard deviations of the prior."""
    return 3 / sqrt(dimension)
