"""Norm, largest singular value and stable rank: the size of any matrix, also one without a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.diagnose.diagnosis import MatrixDiagnosis


def with_magnitude(row: MatrixDiagnosis, weights: np.ndarray) -> MatrixDiagnosis:
    """Complete a row by its norm, largest singular value and stable rank, if all entries are finite."""
    if row.values is not None:
        moduli = np.abs(row.values)
        unit = float(moduli.max())
        norm, largest = float(np.linalg.norm(moduli / unit)), 1.0
    else:
        unit, norm, largest = _measured(weights)
    if not np.isfinite(unit):
        return row
    if unit == 0 or largest == 0:
        return replace(row, norm=0.0, largest=0.0)
    return replace(row, norm=norm * unit, largest=largest * unit, stable_rank=(norm / largest) ** 2)


def _measured(weights: np.ndarray) -> tuple[float, float, float]:
    """Return the largest entry, and norm and largest singular value in units of it."""
    if weights.ndim < 2 or weights.size == 0 or weights.dtype.kind not in "fiub":
        return np.nan, 0.0, 0.0
    matrix = np.asarray(weights.reshape(weights.shape[0], -1), dtype=np.float64)
    unit = max(float(matrix.max()), -float(matrix.min()))
    if not np.isfinite(unit) or not 1e-301 < unit < 1e301:
        return (0.0 if unit == 0 else np.nan), 0.0, 0.0
    matrix = matrix / unit
    norm = float(np.linalg.norm(matrix))
    small = 512  # up to this side a whole decomposition takes a fraction of a second
    if min(matrix.shape) <= small:
        return unit, norm, float(np.linalg.norm(matrix, 2))
    from scipy.sparse.linalg import svds

    # A fixed start, so that the same matrix always has the same value.
    start = np.cos(np.arange(min(matrix.shape), dtype=np.float64))
    return unit, norm, float(svds(matrix, k=1, v0=start, return_singular_vectors=False)[0])
