"""How far the correlations of columns are shrunk towards none before columns are whitened."""

from __future__ import annotations

import numpy as np


def oracle_shrinkage(correlation: np.ndarray, n: int) -> float:
    """Share of the identity in a correlation matrix estimated from n samples; 1 for white columns."""
    # Oracle approximating shrinkage (Chen et al. 2010, eq. 23): delta is 1 up to O(1/d) where the inputs
    # are white, which are thus left alone at any n/d, and goes to 0 as n grows where they are not.
    d = len(correlation)
    power = float(np.mean(correlation**2))  # tr S² / d²
    level = float(np.trace(correlation)) / d
    excess = power - level**2 / d
    return 1.0 if excess <= 0 else min(1.0, (power + level**2) / ((n + 1) * excess))


def shrunk(correlation: np.ndarray, share: float) -> np.ndarray:
    """(1 - share) S + share (tr S / d) 1."""
    found = (1 - share) * correlation
    found[np.diag_indices(len(found))] += share * np.trace(correlation) / len(found)
    return np.asarray(found)
