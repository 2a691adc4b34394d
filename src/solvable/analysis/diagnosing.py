"""What the spectrum of each weight matrix says: bulk, learned features, tail, phase."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from solvable.analysis.diagnosis import NOT_FITTED, MatrixDiagnosis
from solvable.analysis.weights import StoredArray, iter_weights
from solvable.errors import InvalidData
from solvable.spectra.fit import MINIMUM_COUNT, BulkFit, fit_bulk
from solvable.spectra.tail import fit_tail

BULK_LEVEL = 0.02
"""p-value of the bulk from which it is believed; above the smallest that the simulations resolve."""

COLLAPSED = 0.9
"""Share of zero singular values from which the rank has collapsed."""

LARGEST_SIDE = 20_000
"""Shorter side up to which singular values are computed: cubic in it."""


def diagnose_file(path: str | Path, *, seed: int = 0) -> Iterator[MatrixDiagnosis]:
    """Diagnose the matrices of a file one by one.

    Parameters
    ----------
    path : str or Path
        ``.safetensors``, ``.npz`` or ``.npy``.
    seed : int
        Of the bootstraps.

    Yields
    ------
    MatrixDiagnosis
        One per array; what cannot be fitted says why, and the rest goes on.

    Raises
    ------
    InvalidData
        If the file itself cannot be read.

    Notes
    -----
    Memory: the largest array twice in double precision. Backed by
    ``tests/analysis/test_diagnosing.py``.
    """
    for stored in iter_weights(path):
        yield _diagnose_stored(stored, seed)


def _diagnose_stored(stored: StoredArray, seed: int) -> MatrixDiagnosis:
    if len(stored.shape) == 1:
        # Biases and normalisations are most of the arrays of a network: not read at all.
        return MatrixDiagnosis(
            stored.name, stored.shape, stored.dtype, NOT_FITTED, "a vector has no spectrum."
        )
    try:
        weights = stored.read()
    except InvalidData as error:
        return MatrixDiagnosis(stored.name, stored.shape, stored.dtype, NOT_FITTED, str(error))
    return diagnose_matrix(
        weights, name=stored.name, dtype=stored.dtype, precision=stored.precision, seed=seed
    )


def diagnose_matrix(
    weights: np.ndarray,
    *,
    name: str = "weights",
    dtype: str | None = None,
    precision: float = 2.0**-52,
    seed: int = 0,
) -> MatrixDiagnosis:
    r"""Bulk, learned features, tail and phase of one matrix.

    A bulk of noise that is not refuted is believed before any power law, because the edge of noise
    passes for a tail. With :math:`s_1` the strongest signal and :math:`s_c=\delta c^{1/4}` the
    threshold: no outlier is random-like; :math:`s_1/s_c-1<p^{-1/3}` is bleeding-out; else
    bulk+spikes. Without such a bulk a plausible tail is heavy-tailed, the rest bulk-decay.

    Parameters
    ----------
    weights : ndarray of shape (p, q) or (p, ...)
        Further axes are joined, as for a convolution.
    name, dtype : str
        Carried to the result.
    precision : float
        Relative spacing of the stored numbers: singular values below its noise are zero.
    seed : int
        Of the bootstraps.

    Returns
    -------
    MatrixDiagnosis
        Never raises for a matrix that cannot be fitted: ``phase`` is then ``"not fitted"``.

    Notes
    -----
    Time of a singular value decomposition and about a second. Source: note 04, 4.2 and 8.3, the
    rectangular case (criteria derived); backed by ``tests/analysis/test_diagnosing.py``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((60, 200))
    >>> diagnose_matrix(noise).phase
    'random-like'
    """
    stored = str(weights.dtype) if dtype is None else dtype
    shape = tuple(weights.shape)
    notes: list[str] = []
    try:
        matrix, y, tolerance = _spectrum(weights, precision, notes)
    except InvalidData as error:
        return MatrixDiagnosis(name, shape, stored, NOT_FITTED, str(error), notes=tuple(notes))
    zeros = int((y <= tolerance).sum())
    bulk = tail = None
    try:
        bulk = fit_bulk(y, matrix, tolerance=tolerance, seed=seed)
    except InvalidData as error:
        notes.append(f"bulk: {error}")
    believed = bulk is not None and bulk.p_value >= BULK_LEVEL
    if believed:
        # The edge of noise passes for a tail: an exponent beside a bulk would mislead.
        notes.append("tail: not fitted, as a bulk of noise explains the spectrum.")
    else:
        try:
            tail = fit_tail(y[y > tolerance] ** 2, seed=seed)
        except InvalidData as error:
            notes.append(f"tail: {error}")
    if zeros >= COLLAPSED * y.size:
        phase, reason = "rank-collapse", f"{zeros} of {y.size} singular values are zero."
    elif bulk is not None and believed:
        phase, reason = _with_bulk(bulk)
    elif tail is not None and tail.plausible:
        low, high = tail.interval
        phase = "heavy-tailed"
        reason = (
            f"tail exponent {tail.exponent:.2f} ({low:.2f} to {high:.2f}), p = {tail.p_value:.3f}; "
            "no bulk of noise."
        )
    elif bulk is None and tail is None:
        phase, reason = NOT_FITTED, " ".join(notes)
    else:
        phase, reason = "bulk-decay", "neither a bulk of noise nor a power law passes its test."
    return MatrixDiagnosis(name, shape, stored, phase, reason, bulk, tail, zeros, tuple(notes))


def _with_bulk(bulk: BulkFit) -> tuple[str, str]:
    count = bulk.n_outliers
    said = f"the bulk is noise (p = {bulk.p_value:.3f})"
    if count == 0:
        return "random-like", f"{said} and nothing is beyond its edge."
    excess = float(bulk.spikes.strengths[0]) / bulk.threshold - 1
    if excess < bulk.shape[0] ** (-1 / 3):
        return "bleeding-out", f"{said}; {count} beyond its edge, within its rounding."
    return "bulk+spikes", f"{said}; {count} beyond its edge."


def _spectrum(
    weights: np.ndarray, precision: float, notes: list[str]
) -> tuple[tuple[int, int], np.ndarray, float]:
    """Shape, singular values and what counts as zero; raises for what has no spectrum."""
    if weights.ndim < 2:
        raise InvalidData(f"an array of {weights.ndim} axes has no spectrum.")
    if weights.size == 0:
        raise InvalidData(f"the matrix is empty: its shape is {tuple(weights.shape)}.")
    if weights.dtype.kind not in "fiub":
        raise InvalidData(f"its type {weights.dtype} is not of real numbers.")
    if weights.ndim > 2:
        notes.append(f"axes after the first of {tuple(weights.shape)} were joined.")
    matrix = np.asarray(weights.reshape(weights.shape[0], -1), dtype=np.float64)
    p, q = sorted(matrix.shape)
    if p < MINIMUM_COUNT:
        raise InvalidData(
            f"a {matrix.shape[0]} x {matrix.shape[1]} matrix has {p} singular values; at least "
            f"{MINIMUM_COUNT} are needed."
        )
    if p > LARGEST_SIDE:
        raise InvalidData(f"its shorter side {p} is above {LARGEST_SIDE}; take a part of it.")
    largest = float(max(-matrix.min(), matrix.max()))
    if not np.isfinite(largest):
        raise InvalidData(
            f"{int((~np.isfinite(matrix)).sum())} of {matrix.size} entries are not finite."
        )
    if largest == 0:
        raise InvalidData("all entries are zero.")
    if float(matrix.min()) == float(matrix.max()):
        raise InvalidData(f"all entries are {matrix.flat[0]:.6g}: the matrix has rank one.")
    # Entries near the ends of the range would overflow when squared.
    y = np.linalg.svd(matrix / largest, compute_uv=False)
    size = float(np.sqrt((y**2).sum() / matrix.size))
    rounding = max(precision, 2.0**-52) * size * (p**0.5 + q**0.5)
    tolerance = max(rounding, 2.0**-52 * q * float(y[0]))
    return (p, q), y * largest, tolerance * largest
