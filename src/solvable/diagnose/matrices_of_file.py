"""Diagnoses of a source's matrices, one by one or all together, in one or several processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import check_integer
from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.attention.heads_of_file import AttentionRequest, attention_in, each_head
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.diagnosis import (
    INTEGERS,
    NOT_FITTED,
    Diagnosed,
    HeadDiagnosis,
    MatrixDiagnosis,
)
from solvable.diagnose.matrix import diagnose_matrix
from solvable.diagnose.parallel import each_result
from solvable.diagnose.roles import split_arrays
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.memory import available_bytes
from solvable.plots.words import counted


def diagnose_file(
    weights: Any,
    *,
    initial: Any = None,
    heads: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> Iterator[MatrixDiagnosis]:
    """Diagnose matrices one by one.

    Parameters
    ----------
    weights : path or object
        As in :func:`solvable.diagnose_weights`.
    initial : path or object, optional
        The weights before training, under the same names; the change of each matrix is diagnosed as
        well.
    heads : int, optional
        Number of attention heads, for fused projections stored head by head; by default read from
        the file's metadata or from ``config.json`` next to the file.
    workers : int
        Number of processes; the result does not depend on it.
    seed : int
        Random seed of the bootstraps.

    Yields
    ------
    MatrixDiagnosis
        One row per array, in the order of the file; a fused projection gives one row per part. Rows
        that were not fitted have a ``reason``.

    Raises
    ------
    InvalidData
        If a file cannot be read.
    InvalidParameter
        If ``workers`` is below 1.

    Notes
    -----
    Memory per process: four copies of the largest array in double precision. Backed by
    ``tests/diagnose/test_matrix.py``; time by ``benchmarks/diagnose.py``.
    """
    check_integer("workers", workers, 1)
    check_integer("seed", seed, 0)
    weights = open_weights(weights)
    known = heads_of(weights, heads)
    before = {}
    if initial is not None:
        before = {
            stored.name: stored for stored in split_arrays(open_weights(initial).arrays, known)
        }
    missing = initial is not None
    arrays = split_arrays(weights.arrays, known)
    tasks = ((stored, before.get(stored.name), missing, seed) for stored in arrays)
    yield from each_result(_diagnose_stored, tasks, workers)


def _diagnose_stored(
    stored: StoredArray,
    before: StoredArray | None,
    missing: bool,
    seed: int,
) -> MatrixDiagnosis:
    if len(stored.shape) == 1:
        # Vectors are not read: most arrays of a network are biases and normalisations.
        return MatrixDiagnosis(
            stored.name, stored.shape, stored.dtype, NOT_FITTED, "a vector has no spectrum."
        )
    if stored.integral:
        return MatrixDiagnosis(stored.name, stored.shape, stored.dtype, NOT_FITTED, INTEGERS)
    refusal, start = "", None
    try:
        weights = stored.read()
    except (InvalidData, MemoryLimitExceeded) as error:
        return MatrixDiagnosis(stored.name, stored.shape, stored.dtype, NOT_FITTED, str(error))
    if missing:
        try:
            start, refusal = _initial(stored, before)
        except InvalidData as error:
            refusal = str(error)
    row = diagnose_matrix(
        weights,
        name=stored.name,
        dtype=stored.dtype,
        precision=stored.precision,
        initial=start,
        seed=seed,
    )
    note = (f"initial weights: {refusal}",) if refusal else ()
    return replace(row, notes=(*row.notes, *note), layout=stored.layout)


def _initial(stored: StoredArray, before: StoredArray | None) -> tuple[np.ndarray | None, str]:
    if before is None:
        return None, "no array of this name."
    if before.shape != stored.shape:
        return None, f"their shape is {before.shape}, that of the weights {stored.shape}."
    return before.read(), ""


def opened(source: Any) -> Weights:
    """Describe the arrays of a source; raise if there are none."""
    weights = open_weights(source)
    if not weights.arrays:
        raise InvalidData(f"{weights.name} has no array; pass a file of weights.")
    return weights


def useful_workers(arrays: Sequence[StoredArray], workers: int) -> int:
    """Number of useful processes: starting a process takes as long as about four small matrices."""
    matrices = [array.shape for array in arrays if array.is_matrix]
    cost = sum(map(cost_of, matrices))
    # Each process holds about four copies of its matrix in double precision; half of the free memory
    # is left to other programs.
    needed = 32.0 * max((math.prod(shape) for shape in matrices), default=0)
    fitting = int(min(available_bytes(), 2.0**50) / 2 / needed) if needed > 1e7 else workers
    return max(1, min(workers, len(matrices), int(cost / 4.0), fitting))


class Announced(NamedTuple):
    """Summary of the headers of the files."""

    text: str  # "model.npz: 3 matrices, 2 workers"
    attention: str  # options of the heads if the file has query-key pairs; part of the fingerprint


def announced(
    weights: Weights, initial: Weights | None, request: AttentionRequest, workers: int
) -> Announced:
    """Summarise the headers; raise for requested arrays that are missing."""
    attention = attention_in(weights, request)
    parts = list(split_arrays(weights.arrays, heads_of(weights, request.heads)))
    matrices = counted(sum(array.is_matrix for array in parts), "matrix", "matrices")
    lanes = useful_workers(weights.arrays, workers)
    text = f"{weights.name}: {matrices}, {counted(lanes, 'worker')}"
    return Announced(text, f" {request} {attention.heads}" if attention.pairs else "")


def diagnose_whole(
    source: Any,
    *,
    initial: Any = None,
    seed: int = 0,
    workers: int = 1,
    request: AttentionRequest | None = None,
    progress: Callable[[int, int, float | None], Any] | None = None,
) -> Diagnosed:
    """Diagnose all arrays, then all heads; an interrupt keeps the results so far."""
    weights = opened(source)
    initial = None if initial is None else opened(initial)
    request = request or AttentionRequest()
    attention = attention_in(weights, request)
    arrays = list(split_arrays(weights.arrays, heads_of(weights, request.heads)))
    heads: list[HeadDiagnosis] = []
    # Running totals, because a file may have thousands of arrays.
    matrices = np.cumsum([array.is_matrix for array in arrays])
    costs = np.cumsum([cost_of(array.shape) if array.is_matrix else 0.0 for array in arrays])
    lanes = useful_workers(arrays, workers)
    total, interrupted = int(matrices[-1]) + len(attention.pairs), False
    rows: list[MatrixDiagnosis] = []
    started = time.monotonic()
    try:
        for row in diagnose_file(
            weights, initial=initial, heads=request.heads, seed=seed, workers=lanes
        ):
            rows.append(row)
            if progress is not None:
                spent, whole = float(costs[len(rows) - 1]), float(costs[-1])
                left = (time.monotonic() - started) * (whole - spent) / spent if spent else None
                progress(int(matrices[len(rows) - 1]), total, left)
        for head in each_head(attention, workers=min(lanes, len(attention.pairs) or 1), seed=seed):
            if progress is not None and heads and head.pair != heads[-1].pair:
                progress(int(matrices[-1]) + len({row.pair for row in heads}), total, None)
            heads.append(head)
        if progress is not None and heads:
            progress(total, total, None)
    except KeyboardInterrupt:
        if not any(row.fitted for row in rows):
            raise
        interrupted = True
    return Diagnosed(
        weights.name,
        tuple(rows),
        seed=seed,
        initial=initial.name if initial else "",
        notes=weights.notes,
        seconds=time.monotonic() - started,
        n_arrays=len(arrays),
        versions={name: version(name) for name in ("solvable", "numpy", "scipy")},
        heads=tuple(heads),
        attention=attention.remarks,
        interrupted=interrupted,
    )


def cost_of(shape: tuple[int, ...]) -> float:
    """Relative cost of a matrix; the bootstraps take about as long as decomposing 2000 columns."""
    if len(shape) < 2 or 0 in shape:
        return 0.0
    short = min(shape[0], math.prod(shape[1:]))
    return 1.0 + short * math.prod(shape) / 2000**3
