"""Diagnoses of the attention heads of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvable.arrays import check_integer
from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import Weights
from solvable.diagnose.attention.fused_layouts import Heads
from solvable.diagnose.attention.product_law import diagnose_head
from solvable.diagnose.attention.query_key_arrays import (
    AttentionPair,
    asked_pairs,
    check_heads,
    heads_of,
    named_pairs,
)
from solvable.diagnose.diagnosis import NOT_FITTED, HeadDiagnosis
from solvable.diagnose.jobs import Job, bytes_of_pair, cost_of_heads, each_in_order, memory_limit
from solvable.diagnose.matrix import blas
from solvable.errors import InvalidData, MemoryLimitExceeded


@dataclass(frozen=True)
class AttentionRequest:
    """User's options for the attention arrays of a file."""

    heads: int | None = None  # number of heads; None reads the number from the file
    pairs: tuple[tuple[str, str], ...] = ()  # names of query and key; empty: found by name
    inputs_first: bool = False  # True if each row of the arrays in ``pairs`` belongs to one input

    def __str__(self) -> str:
        return f"{self.heads} {self.pairs} {self.inputs_first}"


@dataclass(frozen=True)
class Attention:
    """Query-key pairs in a file, and their number of heads."""

    pairs: tuple[AttentionPair, ...]
    heads: Heads
    remarks: tuple[str, ...]  # arrays that are not analysed, and the reason


def attention_in(weights: Weights, request: AttentionRequest) -> Attention:
    """Find the query-key pairs and their number of heads; raise if requested arrays are missing."""
    check_heads(request.heads)
    arrays = weights.arrays
    heads = heads_of(weights, request.heads)
    if request.pairs:
        pairs = asked_pairs(arrays, request.pairs, request.inputs_first)
        for pair in pairs:
            pair.check(heads)
        return Attention(tuple(pairs), heads, ())
    pairs, alone = named_pairs(arrays)
    remarks = [f"Query or key without a partner: {name}." for name in alone[:4]]
    if len(alone) > len(remarks):
        remarks.append(f"And {len(alone) - len(remarks)} more without a partner.")
    if not pairs:
        if request.heads is not None:
            raise InvalidData(
                f"--heads is {request.heads}, and no names in {weights.name} mark a query and a key; "
                "name two arrays with --pair."
            )
        return Attention((), heads, tuple(remarks))
    if heads.number is None:
        remarks.append(
            f"{len(pairs)} pairs of query and key were found by their names, but neither the file nor "
            "a config.json next to it gives their number of heads: pass --heads."
        )
        return Attention((), heads, tuple(remarks))
    if request.heads is not None:
        faults = []
        for pair in pairs:
            try:
                pair.check(heads)
            except InvalidData as error:
                faults.append(error)
        if len(faults) == len(pairs):
            raise faults[0]
    return Attention(tuple(pairs), heads, tuple(remarks))


def diagnose_heads(
    weights: Any,
    *,
    heads: int | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    inputs_first: bool = False,
    workers: int = 1,
    seed: int = 0,
) -> Iterator[HeadDiagnosis]:
    r"""Diagnose the product of query and key of each attention head of a file.

    For each head the singular values of :math:`M = W_Q^\top W_K`, whose rank is at most the width of
    the head, are compared with two models: a product of independent factors, as before training, and
    :math:`(S_0 + \delta Z - b)_+`, learned directions plus noise after a penalty on both factors.

    Parameters
    ----------
    weights : path or object
        As in :func:`solvable.diagnose_weights`.
    heads : int, optional
        Number of heads; by default read from the file's metadata or from ``config.json`` next to it.
    pairs : sequence of (str, str)
        Names of query arrays and their key arrays; by default recognised from the names in the file.
    inputs_first : bool
        Whether the arrays of ``pairs`` are (inputs, outputs), as in GPT-2 and flax, and not (outputs,
        inputs), as in PyTorch. Arrays found by name are transposed according to their names.
    workers : int
        Number of processes; the result does not depend on it.
    seed : int
        Random seed for the random signs and the simulated noise.

    Yields
    ------
    HeadDiagnosis
        One per head in the order of the file; ``reason`` states why a head was not fitted.

    Raises
    ------
    InvalidData
        If the file cannot be read, or arrays of ``pairs`` are missing or do not multiply.
    InvalidParameter
        If ``heads`` or ``workers`` is below 1.

    Notes
    -----
    Biases and rotary positions are not part of the product; with rotary positions it is the product
    of tokens at the same position. Time: 0.1 s for a head of width 32 and 384 inputs, 1 to 2 s for one
    of 128 and 4096. Source: derivations/spectra (9), (15), (16); backed by
    ``tests/diagnose/test_attention_law.py``.

    Examples
    --------
    >>> import tempfile, numpy
    >>> rng = numpy.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     numpy.savez(f"{directory}/w.npz", q=rng.normal(size=(32, 64)), k=rng.normal(size=(32, 64)))
    ...     rows = list(diagnose_heads(f"{directory}/w.npz", heads=2, pairs=[("q", "k")]))
    >>> [(row.name, row.phase, row.learned) for row in rows]
    [('q, k head 0', 'random-like', 0), ('q, k head 1', 'random-like', 0)]
    """
    check_integer("workers", workers, 1)
    check_integer("seed", seed, 0)
    asked = tuple((str(query), str(key)) for query, key in pairs)
    request = AttentionRequest(heads, asked, inputs_first)
    attention = attention_in(open_weights(weights), request)
    for rows in each_in_order(head_jobs(attention, seed), workers, memory_limit(None)):
        yield from rows


def head_jobs(attention: Attention, seed: int) -> list[Job]:
    """Return one job for every eight heads of a query-key pair, in the order of the file."""
    jobs, most = [], 8
    number = attention.heads.number or 1
    for place, pair in enumerate(attention.pairs):
        for first in range(0, number, most):
            count = min(most, number - first)
            shapes = [stored.shape for stored in (pair.query, pair.key)]
            width = max(map(max, shapes), default=1) // number if all(shapes) else 1
            cost = cost_of_heads(count, width, sum(max(shape, default=1) for shape in shapes))
            size = bytes_of_pair(pair.query, None if pair.fused else pair.key)
            arguments = (pair, attention.heads, seed, first, first + count)
            jobs.append(Job(f"heads {place} {first}", _of_pair, arguments, cost, size))
    return jobs


def _of_pair(
    pair: AttentionPair, heads: Heads, seed: int, first: int, last: int
) -> list[HeadDiagnosis]:
    """Diagnose the heads of a pair from the first to before the last; a fault gives one row."""
    blank = HeadDiagnosis(
        pair.name, pair.name, pair.query.name, pair.key.name, None, (), 0, NOT_FITTED, ""
    )
    try:
        # Only the heads of this task stay in memory.
        factors = [
            (np.array(query), np.array(key)) for query, key in pair.factors(heads)[first:last]
        ]
    except (InvalidData, MemoryLimitExceeded) as error:
        return [replace(blank, reason=str(error))] if not first else []
    precision = max(pair.query.precision, pair.key.precision)
    rows = []
    # At these sizes several BLAS threads are slower than one, because they wait for each other.
    with blas().limit(limits=1):
        for number, (query, key) in enumerate(factors, first):
            shape = (query.shape[1], key.shape[1])
            name = f"{pair.name} head {number}"
            head = replace(blank, name=name, head=number, shape=shape, width=query.shape[0])
            rows.append(diagnose_head(head, query, key, precision=precision, seed=seed))
    return rows
