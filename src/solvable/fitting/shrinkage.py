"""Shrinkage of the correlation matrix of columns before whitening."""

from __future__ import annotations

import numpy as np


def oracle_shrinkage(correlation: np.ndarray, n: int) -> float:
    """Return the identity's weight in the shrunk correlation matrix of n samples; 1 for white columns."""
    # Oracle approximating shrinkage (Chen et al. 2010, Equation 23). The weight is 1 up to O(1/d) for
    # white inputs at any n/d, and goes to 0 as n grows for correlated inputs.
    d = len(correlation)
    power = float(np.mean(correlation**2))  # tr S² / d²
    level = float(np.trace(correlation)) / d
    excess = power - level**2 / d
    return 1.0 if excess <= 0 else min(1.0, (power + level**2) / ((n + 1) * excess))


def shrunk(correlation: np.ndarray, share: float) -> np.ndarray:
    """Compute the shrunk matrix (1 - share) S + share (tr S / d) 1."""
    found = (1 - share) * correlation
    found[np.diag_indices(len(found))] += share * np.trace(correlation) / len(found)
    return np.asarray(found)
