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
    matrix = weights.reshape(weights.shape[0], -1)
    unit = max(float(matrix.max()), -float(matrix.min()))
    if not np.isfinite(unit) or not 1e-301 < unit < 1e301:
        return (0.0 if unit == 0 else np.nan), 0.0, 0.0
    small = 512  # up to this side a whole decomposition takes a fraction of a second
    if min(matrix.shape) <= small:
        matrix = np.divide(matrix, unit, dtype=np.float64)
        return unit, float(np.linalg.norm(matrix)), float(np.linalg.norm(matrix, 2))
    from scipy.sparse.linalg import LinearOperator, svds

    # One copy, in single precision, because such a matrix may be large.
    single = (matrix / unit).astype(np.float32, copy=False)
    norm = sum(float(np.vdot(row, row)) for row in single) ** 0.5
    operator = LinearOperator(
        single.shape,
        matvec=lambda vector: single @ vector.astype(np.float32),
        rmatvec=lambda vector: vector.astype(np.float32) @ single,
        dtype=np.float64,
    )
    # A fixed start, so that the same matrix always has the same value.
    start = np.cos(np.arange(min(matrix.shape), dtype=np.float64))
    found = svds(operator, k=1, v0=start, tol=1e-6, return_singular_vectors=False)
    return unit, norm, float(found[0])
