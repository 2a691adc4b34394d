r"""How many directions of a filter are stronger than labels that mean nothing would make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import GENERATION_ROWS, random_stream
from solvable.networks.blocks import LabelCode
from solvable.operators.modulus import block_krylov, dense_by_modulus
from solvable.operators.signals import SignalOperators

Product = Callable[[np.ndarray], np.ndarray]

SIGNIFICANT_RATIO = 1.1
"""A direction carries signal if its strength is this many times that of meaningless labels."""

FIRST_RATIO = 1.4
"""The same for the strongest direction of all, whose null scatters most.

Before anything is removed, the null is made of a few strong directions of the features: over draws of
the labels of digits and MNIST it varies by a sixth to a fifth, so that one draw in four of meaningless
labels is 1.1 times as strong as the mean of others, and one in fifty 1.4 times.
"""

UNION_WEIGHT = 0.5
"""Total squared length that the directions of all classes must have along one of their union."""

SMALL_SIZE = 64
"""Features up to which all eigenvalues are as quickly found as one."""

FIRST_PAIRS = 41
"""Pairs that are sought before the first comparison; more follow if all of them are significant."""

_GRID = (0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640)


@dataclass(frozen=True)
class Significance:
    """Directions above their null.

    Parameters
    ----------
    number : int
        How many; for many classes, dimension of the union of those of each class.
    null_counts : ndarray of int, shape (g,)
        Numbers of stronger directions removed.
    null_ratios : ndarray of shape (S, g)
        Strength of the next direction over the mean largest of the null, for each signal.
    """

    number: int
    null_counts: np.ndarray
    null_ratios: np.ndarray


def significant_directions(
    signals: SignalOperators,
    nulls: Sequence[SignalOperators],
    linear: np.ndarray,
    most: int,
    rng: np.random.Generator,
) -> Significance:
    r"""Compare strengths with sequentially deflated nulls.

    With the k strongest directions removed, :math:`|\lambda_{k+1}|` is compared with the largest
    modulus of the operator of meaningless labels, the same directions removed from it; k grows on a
    geometric grid until the ratio falls to :data:`SIGNIFICANT_RATIO`; the first must exceed
    :data:`FIRST_RATIO`. Labels are centred here
    whether or not the filter centres them: a mean label adds a multiple of the covariance, whose
    large eigenvalues say nothing of the label.

    Parameters
    ----------
    signals : SignalOperators
        Operators of the labels.
    nulls : sequence of SignalOperators
        Operators of meaningless labels.
    linear : ndarray of shape (P, l)
        Directions removed from the start.
    most : int
        Most directions to look at.
    rng : Generator
        For the solver.

    Returns
    -------
    Significance
        How many directions, and the ratios.

    Notes
    -----
    Without the deflation the null is made of the strong directions of the features and hides all
    but a few of the weak ones. Derived; ``tests/networks/test_significance.py``.
    """
    seed = int(rng.integers(2**63))
    ratios, kept, numbers = [], [], []
    for signal in range(signals.n_signals):
        # A null is wanted to one in a hundred only.
        permuted = [one.centred(signal, single=True) for one in nulls]
        found, number, vectors = _of_one_signal(
            signals.centred(signal), permuted, linear, most, seed
        )
        ratios.append(found)
        numbers.append(number)
        kept.append(vectors)
    length = max(len(one) for one in ratios)
    table = np.full((len(ratios), length), np.nan)
    for row, one in zip(table, ratios, strict=True):
        row[: len(one)] = one
    number = numbers[0] if len(numbers) == 1 else _union(np.hstack(kept))
    return Significance(number, np.array(_GRID[:length]), table)


def _of_one_signal(
    product: Product, permuted: Sequence[Product], linear: np.ndarray, most: int, seed: int
) -> tuple[list[float], int, np.ndarray]:
    size = len(linear)
    vectors, values = _strongest(outside(product, linear), size, min(most, FIRST_PAIRS), seed)
    ratios: list[float] = []
    for count in _GRID:
        if count >= most:
            return ratios, min(most, len(values)), vectors
        if count >= len(values):
            vectors, values = _strongest(outside(product, linear), size, min(most, 4 * count), seed)
        removed = np.hstack([linear, vectors[:, :count]])
        null = float(np.mean([_largest(outside(one, removed), size, seed) for one in permuted]))
        strength = float(abs(values[count]))
        ratios.append(strength / null if null > 0 else np.inf if strength > 0 else 0.0)
        if ratios[-1] <= (SIGNIFICANT_RATIO if count else FIRST_RATIO):
            break
    number = _crossing(ratios)
    return ratios, number, vectors[:, :number]


def outside(product: Product, removed: np.ndarray) -> Product:
    """A symmetric product restricted to the complement of orthonormal columns.

    Parameters
    ----------
    product : callable
        Maps (P, k) to (P, k).
    removed : ndarray of shape (P, m)
        Orthonormal columns.

    Returns
    -------
    callable
        The restricted product.
    """
    if not removed.shape[1]:
        return product

    def project(Q: np.ndarray) -> np.ndarray:
        return np.asarray(Q - removed @ (removed.T @ Q))

    return lambda Q: project(product(project(Q)))


def _strongest(product: Product, size: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if 4 * count >= size:
        matrix = product(np.eye(size))
        pairs = dense_by_modulus((matrix + matrix.T) / 2, count)
    else:
        pairs = block_krylov(product, size, count, tolerance=1e-3, rng=seed)
    return pairs.vectors, pairs.values


def _largest(product: Product, size: int, seed: int) -> float:
    """Largest modulus of an eigenvalue, to one in a hundred."""
    if size <= SMALL_SIZE:
        matrix = product(np.eye(size))
        return float(np.abs(np.linalg.eigvalsh((matrix + matrix.T) / 2)).max())
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator(
        (size, size), matvec=lambda q: product(q.reshape(-1, 1))[:, 0], dtype=np.float64
    )
    start = np.random.default_rng(seed).standard_normal(size)
    # A small Krylov space is looked at more often, and one in a hundred comes soon.
    values = eigsh(operator, k=1, which="LM", tol=1e-2, ncv=8, v0=start, return_eigenvectors=False)
    return float(abs(values[0]))


def _crossing(ratios: Sequence[float]) -> int:
    """Number of directions whose ratio is above the limit, interpolated on the grid."""
    if ratios[0] <= FIRST_RATIO:
        return 0
    if ratios[-1] > SIGNIFICANT_RATIO:
        return _GRID[len(ratios)]
    low, high = _GRID[len(ratios) - 2 : len(ratios)]
    share = (ratios[-2] - SIGNIFICANT_RATIO) / (ratios[-2] - ratios[-1])
    # The ratio at k speaks of direction number k + 1.
    return int(np.clip(np.floor(low + 1 + share * (high - low - 1)), low + 1, high))


def _union(directions: np.ndarray) -> int:
    """Dimension of the union of the directions of all classes."""
    if not directions.shape[1]:
        return 0
    return int(np.sum(np.linalg.svd(directions, compute_uv=False) ** 2 > UNION_WEIGHT))


def relabelled(
    code: LabelCode, labels: np.ndarray, first_row: int, *, seed: int, replicate: int
) -> np.ndarray:
    r"""Labels drawn anew, independent of the samples.

    Classes are drawn with their own frequencies; a real label keeps its modulus and draws its sign,
    so that its tails stay. Draws depend on the position of the row alone, not on how the samples
    are cut into chunks.

    Parameters
    ----------
    code : LabelCode
        What the labels are.
    labels : ndarray of shape (m,)
        Encoded labels of consecutive rows.
    first_row : int
        Position of the first of them among all samples.
    seed, replicate : int
        Of the draw.

    Returns
    -------
    ndarray of shape (m,)
        Encoded labels.

    Examples
    --------
    >>> code = LabelCode(np.array([1, 1]))
    >>> whole = relabelled(code, np.zeros(10, dtype=int), 0, seed=0, replicate=0)
    >>> part = relabelled(code, np.zeros(4, dtype=int), 6, seed=0, replicate=0)
    >>> bool((whole[6:] == part).all())
    True
    """
    stop = first_row + len(labels)
    drawn = []
    for block in range(first_row // GENERATION_ROWS, -(-stop // GENERATION_ROWS)):
        start = block * GENERATION_ROWS
        uniform = random_stream(seed, "null", replicate, block).random(GENERATION_ROWS)
        drawn.append(uniform[max(first_row - start, 0) : stop - start])
    uniform = np.concatenate(drawn) if drawn else np.empty(0)
    if code.is_real:
        return np.where(uniform < 0.5, -labels, labels)
    cumulated = np.cumsum(code.counts / code.counts.sum())
    found = np.searchsorted(cumulated, uniform, side="right")
    return np.minimum(found, len(cumulated) - 1)
