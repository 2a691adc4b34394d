"""Norm, stable rank, edge of the noise and tail of each matrix, in single precision and without tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.adapters import factors_of, joined_adapters
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.bulk_fit import MINIMUM_COUNT, fit_bulk
from solvable.diagnose.decomposition import gram
from solvable.diagnose.diagnosis import INTEGERS, REFUTED
from solvable.diagnose.job_sizes import (
    bytes_of,
    bytes_of_pair,
    cost_of,
    cost_of_adapter,
    memory_limit,
)
from solvable.diagnose.kept_rows import KeptRows, run_jobs
from solvable.diagnose.matrix import blas
from solvable.diagnose.parallel import Job, each_in_order
from solvable.diagnose.quick_result import QuickRow
from solvable.diagnose.roles import split_arrays
from solvable.diagnose.spectrum import LARGEST_SIDE
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.fitting.power_tail import tail_exponent


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
    about 0.001 of the largest are inexact. Time: below that of this product and its
    ``numpy.linalg.eigvalsh`` in double precision, from 512 rows on. Backed by
    ``tests/diagnose/test_quick.py``; time by ``benchmarks/diagnose_quick.py``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((60, 200))
    >>> (row,) = quick_rows({"layer": noise})
    >>> row.beyond, round(row.stable_rank)
    (0, 27)
    """
    check_integer("workers", workers, 1)
    check_integer("seed", seed, 0)
    jobs = jobs_of(open_weights(weights), heads, seed)
    yield from each_in_order(jobs, workers, memory_limit(None))


def measured(
    source: Weights,
    *,
    heads: int | None,
    workers: int,
    seed: int,
    memory: float | None = None,
    progress: Callable[[int, int, float | None], Any],
    keeper: KeptRows | None = None,
) -> list[QuickRow]:
    """Measure all matrices, with progress weighted by their cost."""
    jobs = jobs_of(source, heads, seed)
    results: dict[str, Any] = {}
    run_jobs(
        jobs,
        results,
        workers=workers,
        memory=memory_limit(memory),
        progress=progress,
        keeper=keeper,
    )
    return [results[job.key] for job in jobs]


def jobs_of(source: Weights, heads: int | None, seed: int) -> list[Job]:
    """Return a job for each matrix; the shape of a damaged array is unknown."""
    arrays = split_arrays(joined_adapters(source.arrays), heads_of(source, heads))
    jobs = []
    for place, stored in enumerate(arrays):
        if not (stored.is_matrix or stored.dtype == "unknown"):
            continue
        pair = factors_of(stored)
        # Single precision, and no bootstraps.
        cost = 0.4 * max(cost_of_adapter(*pair) if pair else cost_of(stored.shape), 0.1)
        size = bytes_of_pair(*pair) if pair else bytes_of(stored, controls=False)
        jobs.append(Job(f"quick {place} {stored.name}", _of_stored, (stored, seed), cost, size))
    return jobs


def _of_stored(stored: StoredArray, seed: int) -> QuickRow:
    row = QuickRow(stored.name, stored.shape, stored.dtype, layout=stored.layout)
    try:
        if factors_of(stored):
            reason = (
                "a low-rank adapter: the numbers are those of its product, and no edge is fitted."
            )
            found = quick_row(row, stored.read(), seed)
            return replace(found, edge=None, beyond=None, exponent=None, n_tail=0, reason=reason)
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
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
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
