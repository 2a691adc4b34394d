"""Kolmogorov-Smirnov distances for tests of goodness of fit."""

from __future__ import annotations

import numpy as np


def largest_gaps(law: np.ndarray, first: int = 0) -> np.ndarray:
    """Compute Kolmogorov-Smirnov distances along the last axis, from a CDF at ordered values."""
    # The first `first` values belong to an atom of the distribution, whose step is not compared.
    size = first + law.shape[-1]
    steps = np.arange(first, size + 1) / size
    gaps: np.ndarray = np.maximum(np.abs(law - steps[1:]), np.abs(law - steps[:-1])).max(axis=-1)
    return gaps


def largest_gap(law: np.ndarray, first: int = 0) -> float:
    """Compute the Kolmogorov-Smirnov distance of one sample; see :func:`largest_gaps`."""
    return float(largest_gaps(law, first))
