"""Scrambled Sobol points, imported from SciPy when first used."""

from __future__ import annotations

import numpy as np


def sobol_points(columns: int, count: int, seed: int = 0) -> np.ndarray:
    """First points (count, columns) in [0, 1) of a scrambled Sobol sequence."""
    from scipy.stats.qmc import Sobol

    return np.asarray(Sobol(columns, seed=seed).random(count))


def sobol_normals(columns: int, count: int, seed: int = 0) -> np.ndarray:
    """First points (count, columns) of a scrambled Sobol sequence, as standard normal variables."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(sobol_points(columns, count, seed), 1e-12, 1 - 1e-12)))
