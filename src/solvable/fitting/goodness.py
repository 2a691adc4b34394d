"""Distances of an empirical distribution function from a law, behind every goodness of fit."""

from __future__ import annotations

import numpy as np


def largest_gaps(law: np.ndarray, first: int = 0) -> np.ndarray:
    """Kolmogorov-Smirnov distances along the last axis, of a law at ordered values."""
    # The values before number `first` are an atom that is left out.
    size = first + law.shape[-1]
    steps = np.arange(first, size + 1) / size
    gaps: np.ndarray = np.maximum(np.abs(law - steps[1:]), np.abs(law - steps[:-1])).max(axis=-1)
    return gaps


def largest_gap(law: np.ndarray, first: int = 0) -> float:
    """Kolmogorov-Smirnov distance of one sample, as :func:`largest_gaps`."""
    return float(largest_gaps(law, first))
