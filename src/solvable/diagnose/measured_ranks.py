"""Smallest rank of each matrix that keeps the user's own loss, measured by bisection."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import check_real
from solvable.data.weights.opening import open_weights
from solvable.data.weights.stored import StoredArray
from solvable.errors import InvalidData, InvalidParameter
from solvable.paths import error_line
from solvable.progress import Progress

Loss = Callable[[dict[str, np.ndarray]], Any]


@dataclass(frozen=True)
class NeededRank:
    """Smallest rank of one matrix that keeps the loss, all other matrices as they are."""

    name: str
    shape: tuple[int, ...]
    full: int  # number of singular values that are not zero
    rank: int  # smallest rank found; 0 if the loss does not need the matrix
    loss: float  # loss with the matrix cut to this rank


@dataclass(frozen=True)
class MeasuredRanks:
    """Ranks that keep a loss, one matrix at a time, and the loss with all matrices cut at once.

    Parameters
    ----------
    loss : float
        Loss with the weights as they are.
    tolerance : float
        Share by which the loss may rise.
    rows : tuple of NeededRank
        ``name``, ``shape``, ``full`` rank, smallest ``rank`` that keeps the loss, and ``loss`` at this
        rank of each matrix.
    together : float
        Loss with all matrices at their ranks at once.
    kept : float
        Share of the numbers in these matrices that factors of these ranks would store.
    evaluations : int
        Number of evaluations of the loss.
    """

    loss: float
    tolerance: float
    rows: tuple[NeededRank, ...]
    together: float
    kept: float
    evaluations: int


def evaluations_of(arrays: Sequence[StoredArray]) -> int:
    """Number of evaluations of the loss: the weights, a bisection for each matrix, all together."""
    sides = [min(a.shape[0], math.prod(a.shape[1:])) for a in arrays if a.is_matrix]
    return 2 + sum(math.ceil(math.log2(side + 1)) for side in sides)


def measure_ranks(
    weights: Any, loss: Loss, *, tolerance: float = 0.01, progress: Progress | None = None
) -> MeasuredRanks:
    r"""Measure the smallest rank of each matrix that keeps a loss.

    Parameters
    ----------
    weights : path or object
        As in :func:`solvable.diagnose_weights`.
    loss : callable
        ``loss(arrays)`` takes a dictionary of all arrays as stored and returns a loss above 0, or the
        losses of held-out rows as an array. It must not change the arrays. Stacks of experts and codes
        with scales are given to it, but not cut.
    tolerance : float
        Share by which the loss may rise, 0.0001 to 1.
    progress : callable, optional
        ``progress(done, total, seconds_left)``, called after each evaluation.

    Returns
    -------
    MeasuredRanks
        A row per matrix, in the order of the file.

    Raises
    ------
    InvalidData
        If the weights hold no matrix, or the loss fails, is not finite or not above 0.
    InvalidParameter
        If ``tolerance`` is out of range.

    Notes
    -----
    A matrix is cut to its k largest singular values, all others stay as they are, and k is found by
    bisection: :math:`\lceil\log_2(p+1)\rceil` evaluations for p values. The loss is taken to fall with
    k; where it does not, the rank found keeps the loss, but a smaller one might too. Axes after the
    first are joined. Backed by ``tests/diagnose/test_measured_ranks.py``.

    Examples
    --------
    >>> target = np.diag([3.0, 2.0, 1.0, 0.001])
    >>> found = measure_ranks({"w": target}, lambda arrays: 1 + ((arrays["w"] - target) ** 2).sum())
    >>> found.rows[0].rank, found.evaluations
    (3, 5)
    """
    check_real("tolerance", tolerance, 1e-4)
    if tolerance > 1:
        raise InvalidParameter(f"tolerance is {tolerance:g}; allowed: 0.0001 to 1.")
    source = open_weights(weights)
    arrays = {stored.name: stored.read() for stored in source.stored}
    matrices = [stored.name for stored in source.unchanged if stored.is_matrix]
    if not matrices:
        raise InvalidData(f"{source.name} holds no matrix; pass weights with at least one.")
    total, done = evaluations_of(source.unchanged), 0

    def evaluated(changed: Mapping[str, np.ndarray]) -> float:
        nonlocal done
        value = _value(loss, arrays | dict(changed))
        done += 1
        if progress is not None:
            progress(min(done, total), total, None)
        return value

    base = evaluated({})
    most = base * (1 + tolerance)
    rows, cuts = [], {}
    for name in matrices:
        row, cuts[name] = _smallest(name, arrays[name], base, most, evaluated)
        rows.append(row)
    together = evaluated(cuts)
    sizes = [
        (math.prod(row.shape), row.rank * (row.shape[0] + math.prod(row.shape[1:]))) for row in rows
    ]
    kept = sum(min(whole, factors) for whole, factors in sizes) / sum(whole for whole, _ in sizes)
    return MeasuredRanks(base, tolerance, tuple(rows), together, kept, done)


def _smallest(
    name: str,
    array: np.ndarray,
    base: float,
    most: float,
    evaluated: Callable[[Mapping[str, np.ndarray]], float],
) -> tuple[NeededRank, np.ndarray]:
    """Bisect the rank of one matrix; return its row and the matrix of this rank."""
    matrix = array.reshape(len(array), -1).astype(np.float64)
    if not np.isfinite(matrix).all():
        raise InvalidData(f"{name} has entries that are not finite; its rank cannot be measured.")
    left, values, right = np.linalg.svd(matrix, full_matrices=False)

    def cut(rank: int) -> np.ndarray:
        product = (left[:, :rank] * values[:rank]) @ right[:rank]
        return product.astype(array.dtype, copy=False).reshape(array.shape)

    full = int((values > values[0] * 1e-12).sum()) if values.size and values[0] > 0 else 0
    low, high, best, loss = -1, full, array, base
    while high - low > 1:
        rank = (low + high) // 2
        tried = cut(rank)
        value = evaluated({name: tried})
        if value <= most:
            high, best, loss = rank, tried, value
        else:
            low = rank
    return NeededRank(name, tuple(array.shape), full, high, loss), best


def _value(loss: Loss, arrays: dict[str, np.ndarray]) -> float:
    try:
        # What the function prints must not mix with the numbers on standard output.
        with redirect_stdout(sys.stderr):
            value = float(np.mean(np.asarray(loss(arrays), dtype=np.float64)))
    except (Exception, SystemExit) as error:
        raise InvalidData(
            f"the loss raised {error_line(error)}. Run it on the weights alone."
        ) from error
    if not (math.isfinite(value) and value > 0):
        raise InvalidData(f"the loss is {value:.6g}; allowed: finite numbers above 0.")
    return value
