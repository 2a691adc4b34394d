"""Diagnoses of a source's matrices, one by one or all together, in one or several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import check_integer
from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.adapters import adapter_row, factors_of, joined_adapters
from solvable.diagnose.attention.heads_of_file import AttentionRequest, attention_in, head_jobs
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import INTEGERS, NOT_FITTED, MatrixDiagnosis
from solvable.diagnose.jobs import (
    Job,
    KeptRows,
    bytes_of,
    bytes_of_pair,
    cost_of,
    cost_of_adapter,
    each_in_order,
    lanes_for,
    memory_limit,
    run_jobs,
)
from solvable.diagnose.matrix import blas, diagnose_matrix
from solvable.diagnose.roles import split_arrays
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.plots.words import counted


def diagnose_file(
    weights: Any,
    *,
    initial: Any = None,
    heads: int | None = None,
    laws: bool = True,
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
    laws : bool
        As in :func:`diagnose_matrix`; without laws a matrix takes a tenth of the time.
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
    Memory: 8 bytes per entry (4 for single precision in safetensors files) and per squared shorter
    side of the matrices in work, and 160 MB per process. Processes that would exceed 4 GB or half
    of the free memory together are not started. Backed by ``tests/diagnose/test_matrix.py``; time
    by ``benchmarks/diagnose.py``.
    """
    check_integer("workers", workers, 1)
    check_integer("seed", seed, 0)
    start = None if initial is None else open_weights(initial)
    jobs = _jobs_of_files(open_weights(weights), start, heads, seed, laws)
    yield from each_in_order(jobs, workers, memory_limit(None))


def arrays_in(weights: Weights, heads: int | None) -> list[StoredArray]:
    """Return the arrays of a file: adapters joined, fused projections split."""
    return list(split_arrays(joined_adapters(weights.arrays), heads_of(weights, heads)))


def _jobs_of_files(
    weights: Weights, initial: Weights | None, heads: int | None, seed: int, laws: bool
) -> list[Job]:
    before = {}
    if initial is not None:
        parts = split_arrays(initial.arrays, heads_of(weights, heads))
        before = {stored.name: stored for stored in parts}
    return jobs_of(arrays_in(weights, heads), before, initial is not None, seed, laws)


def jobs_of(
    arrays: Sequence[StoredArray],
    before: Mapping[str, StoredArray],
    missing: bool,
    seed: int,
    laws: bool = True,
) -> list[Job]:
    """Return a job for each array, in their order."""
    jobs = []
    for place, stored in enumerate(arrays):
        pair = factors_of(stored)
        if pair is not None:
            needs = cost_of_adapter(*pair), bytes_of_pair(*pair)
            key = f"adapter {place} {stored.name}"
            jobs.append(Job(key, _diagnose_adapter, (stored, pair, seed), *needs))
            continue
        start = before.get(stored.name)
        # With initial weights: both matrices, and their change in double precision.
        known = start is not None
        cost = cost_of(stored.shape, laws) * (3 if known else 1) if stored.is_matrix else 0.0
        size = bytes_of(stored, copies=4 if known else 1) if stored.is_matrix else 0.0
        arguments = (stored, start, missing, seed, laws)
        jobs.append(Job(f"array {place} {stored.name}", _diagnose_stored, arguments, cost, size))
    return jobs


def _diagnose_adapter(
    stored: StoredArray, pair: tuple[StoredArray, StoredArray], seed: int
) -> MatrixDiagnosis:
    try:
        with blas().limit(limits=1):
            return adapter_row(stored, pair, seed)
    except (InvalidData, MemoryLimitExceeded) as error:
        return MatrixDiagnosis(stored.name, stored.shape, stored.dtype, NOT_FITTED, str(error))


def _diagnose_stored(
    stored: StoredArray, before: StoredArray | None, missing: bool, seed: int, laws: bool
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
        overwrite=stored.private and start is None,
        laws=laws,
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


def opened(source: Any, key: str | None = None) -> Weights:
    """Describe the arrays of a source, or those under a key; raise if there are none."""
    weights = open_weights(source, key)
    if not weights.arrays:
        raise InvalidData(f"{weights.name} has no array; pass a file of weights.")
    return weights


def useful_workers(arrays: Sequence[StoredArray], workers: int) -> int:
    """Number of processes that are useful without laws, and whose matrices fit into the memory."""
    return lanes_for(jobs_of(arrays, {}, False, 0, laws=False), workers, memory_limit(None))


class Announced(NamedTuple):
    """Summary of the headers of the files."""

    text: str  # "model.npz: 3 matrices, 2 workers"
    attention: str  # options of the heads if the file has query-key pairs; part of the fingerprint


def announced(
    weights: Weights,
    initial: Weights | None,
    request: AttentionRequest,
    workers: int,
    memory: float | None = None,
    laws: bool = True,
) -> Announced:
    """Summarise the headers; raise for requested arrays that are missing."""
    attention = attention_in(weights, request)
    parts = arrays_in(weights, request.heads)
    matrices = counted(sum(array.is_matrix for array in parts), "matrix", "matrices")
    jobs = [*jobs_of(parts, {}, False, 0, laws), *(head_jobs(attention, 0) if laws else ())]
    lanes = lanes_for(jobs, workers, memory_limit(memory))
    text = f"{weights.name}: {matrices}, {counted(lanes, 'worker')}"
    return Announced(text, f" {request} {attention.heads}" if attention.pairs else "")


def diagnose_whole(
    source: Any,
    *,
    initial: Any = None,
    seed: int = 0,
    workers: int = 1,
    memory: float | None = None,
    request: AttentionRequest | None = None,
    laws: bool = True,
    progress: Callable[[int, int, float | None], Any] | None = None,
    keeper: KeptRows | None = None,
) -> Diagnosed:
    """Diagnose all arrays and heads, the slowest first; an interrupt keeps the results so far."""
    weights = opened(source)
    initial = None if initial is None else opened(initial)
    request = request or AttentionRequest()
    attention = attention_in(weights, request)
    of_arrays = _jobs_of_files(weights, initial, request.heads, seed, laws)
    of_heads = head_jobs(attention, seed) if laws else []
    results: dict[str, Any] = {}
    started, interrupted = time.monotonic(), False
    try:
        run_jobs(
            [*of_arrays, *of_heads],
            results,
            workers=workers,
            memory=memory_limit(memory),
            progress=progress,
            keeper=keeper,
        )
    except KeyboardInterrupt:
        rows = [results[job.key] for job in of_arrays if job.key in results]
        if not any(row.norm is not None for row in rows):
            raise
        interrupted = True
    return Diagnosed(
        weights.name,
        tuple(results[job.key] for job in of_arrays if job.key in results),
        seed=seed,
        quick=not laws,
        initial=initial.name if initial else "",
        notes=weights.notes,
        seconds=time.monotonic() - started,
        n_arrays=len(of_arrays),
        versions={name: version(name) for name in ("solvable", "numpy", "scipy")},
        heads=tuple(row for job in of_heads for row in results.get(job.key, ())),
        attention=attention.remarks if laws else (),
        interrupted=interrupted,
    )
