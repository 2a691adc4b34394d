"""Norm, stable rank, edge of the noise and tail of each matrix, in single precision and without tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.bulk_fit import MINIMUM_COUNT, fit_bulk
from solvable.diagnose.decomposition import gram
from solvable.diagnose.diagnosis import INTEGERS, REFUTED
from solvable.diagnose.matrices_of_file import cost_of, useful_workers
from solvable.diagnose.matrix import blas
from solvable.diagnose.parallel import each_result
from solvable.diagnose.roles import split_arrays
from solvable.diagnose.spectrum import LARGEST_SIDE
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.fitting.power_tail import tail_exponent


@dataclass(frozen=True)
class QuickRow:
    """Numbers of one matrix, for sorting and plotting.

    Parameters
    ----------
    name : str
        Name of the array.
    shape : tuple of int
        Its shape.
    dtype : str
        Type of the stored entries.
    norm, largest, stable_rank : float or None
        Frobenius norm, largest singular value, and squared ratio of the two.
    edge : float or None
        Upper edge of a bulk of noise; None if no bulk fits (p-value below 0.02).
    beyond : int or None
        Number of singular values above the noise, without the comparison with random signs.
    exponent : float or None
        Exponent of a power law for the largest squared singular values, if no bulk fits. It is not
        tested.
    n_tail : int
        Number of values to which the exponent was fitted.
    reason : str
        Reason why numbers are missing.
    layout : str
        Layout by which a fused projection was split.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    norm: float | None = None
    largest: float | None = None
    stable_rank: float | None = None
    edge: float | None = None
    beyond: int | None = None
    exponent: float | None = None
    n_tail: int = 0
    reason: str = ""
    layout: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        return asdict(self) | {"shape": list(self.shape)}


def quick_rows(
    weights: Any, *, heads: int | None = None, workers: int = 1, seed: int = 0
) -> Iterator[QuickRow]:
    """Measure the matrices of a file, folder or model one by one, for sorting and plotting.

    Parameters
    ----------
    weights : path or object
        As in :func:`solvable.diagnose_weights`.
    heads : int, optional
        Number of attention heads, for fused projections stored head by head.
    workers : int
        Number of processes; the result does not depend on it.
    seed : int
        Random seed of the simulated noise.

    Yields
    ------
    QuickRow
        One row per matrix, in the order of the source; vectors and arrays of integers are left out.

    Raises
    ------
    InvalidData
        If the weights cannot be read.

    Notes
    -----
    Singular values come from the product of the matrix with itself in single precision, so values below
    about 0.001 of the largest are inexact. Time: below that of ``numpy.linalg.eigvalsh`` of this product
    in double precision, from 256 rows on. Backed by ``tests/diagnose/test_quick.py``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((60, 200))
    >>> (row,) = quick_rows({"layer": noise})
    >>> row.beyond, round(row.stable_rank)
    (0, 27)
    """
    check_integer("workers", workers, 1)
    check_integer("seed", seed, 0)
    source = open_weights(weights)
    arrays = split_arrays(source.arrays, heads_of(source, heads))
    # The shape of a damaged array is unknown.
    tasks = ((stored, seed) for stored in arrays if stored.is_matrix or stored.dtype == "unknown")
    yield from each_result(_of_stored, tasks, workers)


def measured(
    source: Weights,
    *,
    heads: int | None,
    workers: int,
    seed: int,
    progress: Callable[[int, int, float | None], Any],
) -> list[QuickRow]:
    """Measure all matrices, with progress weighted by their cost."""
    arrays = list(split_arrays(source.arrays, heads_of(source, heads)))
    costs = [
        cost_of(array.shape) for array in arrays if array.is_matrix or array.dtype == "unknown"
    ]
    done = np.cumsum(costs)
    rows: list[QuickRow] = []
    started = time.monotonic()
    lanes = useful_workers(arrays, workers)
    for row in quick_rows(source, heads=heads, workers=lanes, seed=seed):
        rows.append(row)
        spent = float(done[len(rows) - 1])
        left = (time.monotonic() - started) * (float(done[-1]) / spent - 1) if spent else None
        progress(len(rows), len(costs), left)
    return rows


def _of_stored(stored: StoredArray, seed: int) -> QuickRow:
    row = QuickRow(stored.name, stored.shape, stored.dtype, layout=stored.layout)
    try:
        return quick_row(row, stored.read(), seed)
    except (InvalidData, MemoryLimitExceeded) as error:
        return replace(row, reason=str(error))


def quick_row(row: QuickRow, weights: np.ndarray, seed: int = 0) -> QuickRow:
    """Complete a row by the numbers of a matrix."""
    if weights.dtype.kind not in "fiub":
        raise InvalidData(INTEGERS)
    if weights.ndim < 2 or weights.size == 0:
        raise InvalidData(f"the matrix is empty: its shape is {tuple(weights.shape)}.")
    matrix = np.asarray(weights).reshape(weights.shape[0], -1)
    p, q = sorted(matrix.shape)
    if p > LARGEST_SIDE:
        raise InvalidData(f"its shorter side {p} is above {LARGEST_SIDE}; take a part of it.")
    unit = float(max(matrix.max(), -matrix.min()))
    if not math.isfinite(unit):
        raise InvalidData(
            f"{int((~np.isfinite(matrix)).sum())} of {matrix.size} entries are not finite."
        )
    if unit == 0:
        return replace(row, norm=0.0, largest=0.0, reason="all entries are zero.")
    with blas().limit(limits=1):
        squares = _squares(matrix if matrix.shape[0] == p else matrix.T, unit)
    top, total = float(squares[-1]), float(squares.sum())
    row = replace(
        row,
        norm=total**0.5 * unit,
        largest=top**0.5 * unit,
        stable_rank=total / top,
    )
    if p < MINIMUM_COUNT:
        return replace(row, reason=f"{p} singular values; an edge needs at least {MINIMUM_COUNT}.")
    rounding = 2.0**-23 * q**0.5 * top
    zeros = int((squares <= rounding).sum())
    values = np.sqrt(np.maximum(squares, rounding))
    # Values lost in rounding are spread evenly: the density of noise is finite at zero.
    values[:zeros] = np.sqrt(rounding) * (np.arange(zeros) + 0.5) / max(zeros, 1)
    if zeros <= p // 10:  # more zeros exclude a bulk that is not cut
        try:
            fit = fit_bulk(values, (p, q), seed=seed)
        except InvalidData:
            fit = None
        if fit is not None and fit.p_value >= REFUTED:
            return replace(row, edge=fit.edge * unit, beyond=fit.n_outliers)
    found = tail_exponent(values[zeros:] ** 2)
    if found is None:
        return replace(row, reason="neither a bulk of noise nor a long tail.")
    return replace(row, exponent=found[0], n_tail=found[1])


def _squares(matrix: np.ndarray, unit: float) -> np.ndarray:
    """Squared singular values of matrix / unit, not taller than wide, ascending."""
    from scipy.linalg import lapack

    product = gram(matrix, unit, np.float32)
    size = product.shape[0]
    if size == 1:
        return np.asarray(product[0], dtype=np.float64)
    _, diagonal, beside, _, _ = lapack.ssytrd(product, lower=1, lwork=64 * size, overwrite_a=1)
    squares, fault = lapack.ssterf(diagonal, beside)
    if fault:
        raise InvalidData(
            "its singular values did not converge; multiply the matrix by a constant."
        )
    return np.maximum(np.asarray(squares, dtype=np.float64), 0.0)
