r"""Count the directions of a filter that are stronger than with random labels (the null)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import GENERATION_ROWS, random_stream
from solvable.networks.blocks import LabelCode
from solvable.operators.modulus import block_krylov, dense_by_modulus
from solvable.operators.signals import SignalOperators, centred_products

Product = Callable[[np.ndarray], np.ndarray]

SIGNIFICANT_RATIO = 1.1
"""A direction is significant if its strength exceeds the null strength by more than this factor."""

FIRST_RATIO = 1.4
"""Limit of the ratio for the strongest direction, whose null varies most.

Before any removal the null consists of a few strong directions of the features. On digits and MNIST its
relative standard deviation over draws of the labels is 17 to 20 %, so one draw in four of random labels
exceeds 1.1 times the mean, and one in fifty 1.4 times. With small tables, rare classes or labels of
heavy tails it is about 50 %, and the maximum over classes is larger: for samples in memory the
permutation test :func:`solvable.networks.permutation.draws_exceeded` must agree.
"""

_GRID = (0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640)


@dataclass(frozen=True)
class Significance:
    """Number of directions whose strength exceeds their null, and ratios of strength to null."""

    number: int  # for many classes, dimension of the union of their significant directions
    null_counts: np.ndarray  # numbers k of removed stronger directions, shape (g,)
    null_ratios: np.ndarray  # |lambda_(k+1)| over the mean null strength, shape (S, g)   (lofi 29)


def significant_directions(
    signals: SignalOperators,
    nulls: Sequence[SignalOperators],
    linear: np.ndarray,
    most: int,
    rng: np.random.Generator,
    first_ratio: float = FIRST_RATIO,
) -> Significance:
    """Compare |lambda_(k+1)| with nulls after removal of the k strongest directions, on a grid of k."""
    # r_(k+1) = |lambda_(k+1)| / E |Pi_k C_pi Pi_k|   (lofi 29). Without the removal Pi_k the strong
    # directions of the features dominate the null and hide most weak ones. Labels are always centred: a
    # mean label adds a multiple of the covariance, whose eigenvalues carry no information on the label.
    seed = int(rng.integers(2**63))
    ratios, kept, numbers = [], [], []
    for signal in range(signals.n_signals):
        # The ratios need an accuracy of only 1 %.
        product = signals.centred(signal, single=True)
        permuted = centred_products(nulls, signal)
        of_signal, number, vectors = _of_one_signal(
            product, permuted, linear, most, seed, first_ratio
        )
        ratios.append(of_signal)
        numbers.append(number)
        kept.append(vectors)
    length = max(map(len, ratios))
    table = np.full((len(ratios), length), np.nan)
    for row, of_signal in zip(table, ratios, strict=True):
        row[: len(of_signal)] = of_signal
    number = numbers[0] if len(numbers) == 1 else _union(np.hstack(kept))
    return Significance(number, np.array(_GRID[:length]), table)


def _of_one_signal(
    product: Product,
    permuted: Sequence[tuple[Product, int]],
    linear: np.ndarray,
    most: int,
    seed: int,
    first_ratio: float,
) -> tuple[list[float], int, np.ndarray]:
    size = len(linear)
    # Forty-one eigenpairs suffice at first; more are computed if all of these are significant.
    vectors, values = _strongest(outside(product, linear), size, min(most, 41), seed)
    ratios: list[float] = []
    counts = [count for count in _GRID if count < most]
    while counts:
        # Try k = 0 alone, where the search usually ends for random labels; then all k with known pairs.
        known = [count for count in counts if count < len(values)] if ratios else counts[:1]
        if not known:
            count = min(most, 2 * counts[0])
            vectors, values = _strongest(outside(product, linear), size, count, seed)
            continue
        counts = counts[len(known) :]
        removed = np.hstack([linear, vectors[:, : known[-1]]])
        kept = [linear.shape[1] + count for count in known]
        nulls = np.vstack(
            [
                _largest(null, removed, kept * number, seed).reshape(number, -1)
                for null, number in permuted
            ]
        )
        for count, of_count in zip(known, nulls.T, strict=True):
            # Leave out the draws of the labels in which a rare class is absent.
            drawn = of_count[of_count > 0]
            ratios.append(float(abs(values[count]) / np.mean(drawn)) if drawn.size else 0.0)
            if ratios[-1] <= (SIGNIFICANT_RATIO if count else first_ratio):
                number = _crossing(ratios, first_ratio)
                return ratios, number, vectors[:, :number]
    return ratios, min(most, len(values)), vectors


def outside(product: Product, removed: np.ndarray) -> Product:
    """Restrict a symmetric product to the complement of orthonormal columns (P, m)."""
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


def largest_outside(product: Product, removed: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Largest modulus of an eigenvalue of each operator in the complement of columns, (number,)."""
    return _largest(product, removed, [removed.shape[1]] * number, seed)


def _largest(product: Product, removed: np.ndarray, counts: Sequence[int], seed: int) -> np.ndarray:
    """Largest modulus of an eigenvalue in the complement of leading columns, to 1 %."""
    # Lanczos with full orthogonalisation, for all column counts at once: a product with a block costs
    # little more than with a vector, and so few steps need no restart. Each column of a product may use
    # a different operator.
    size, width = len(removed), len(counts)
    gone = np.arange(removed.shape[1])[:, None] < np.array(counts)
    start = np.random.default_rng(seed).standard_normal(size)

    def project(Q: np.ndarray) -> np.ndarray:
        return np.asarray(Q - removed @ (gone * (removed.T @ Q)))

    q = project(np.repeat(start[:, None], width, axis=1))
    # Largest number of products: far more than an accuracy of 1 % needs
    most_steps = 60
    most = min(size, most_steps)
    whole = np.zeros((width, most, size))
    projected = np.zeros((width, most, most))
    largest, scale, settled = np.zeros(width), np.zeros(width), np.zeros(width, dtype=bool)
    for step in range(1, most + 1):
        lengths = _lengths(q)
        # In an invariant space the next direction would be rounding noise: use zero.
        q = np.divide(q, lengths, out=np.zeros_like(q), where=lengths > 1e-5 * scale)
        whole[:, step - 1] = q.T
        basis = whole[:, :step]
        image = project(product(q))
        scale = np.maximum(scale, _lengths(image))
        columns = basis @ image.T[:, :, None]
        reduced = projected[:, :step, :step]
        reduced[:, :, -1:] = columns
        reduced[:, -1:, :] = np.swapaxes(columns, 1, 2)
        q = image - (np.swapaxes(basis, 1, 2) @ columns)[:, :, 0].T
        q = q - (np.swapaxes(basis, 1, 2) @ (basis @ q.T[:, :, None]))[:, :, 0].T
        # Most columns need at least six steps to converge.
        if (step < 6 or step % 2) and step < most:
            continue
        # A column is left as it is once it has converged.
        left = np.flatnonzero(~settled)
        values, vectors = np.linalg.eigh(reduced[left])
        of_left = np.arange(left.size)
        place = np.argmax(np.abs(values), axis=1)
        largest[left] = np.abs(values)[of_left, place]
        # |C v - lambda v| = |q| |last entry of the coefficients of v|.
        residuals = _lengths(q)[left] * np.abs(vectors[of_left, -1, place])
        settled[left] = residuals <= 0.01 * largest[left]
        if settled.all():
            break
    return largest


def _lengths(columns: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))


def _crossing(ratios: Sequence[float], first_ratio: float) -> int:
    """Number of directions whose ratio is above the limit, interpolated on the grid."""
    if ratios[0] <= first_ratio:
        return 0
    if ratios[-1] > SIGNIFICANT_RATIO:
        return _GRID[len(ratios)]
    low, high = _GRID[len(ratios) - 2 : len(ratios)]
    share = (ratios[-2] - SIGNIFICANT_RATIO) / (ratios[-2] - ratios[-1])
    # The ratio at k belongs to direction number k + 1.
    return int(np.clip(np.floor(low + 1 + share * (high - low - 1)), low + 1, high))


def _union(directions: np.ndarray) -> int:
    """Dimension of the union of the directions of all classes."""
    if not directions.shape[1]:
        return 0
    # Count directions of the union along which the classes' directions have squared length > 1/2.
    return int(np.sum(np.linalg.svd(directions, compute_uv=False) ** 2 > 0.5))


def relabelled(
    code: LabelCode, labels: np.ndarray, first_row: int, *, seed: int, replicate: int
) -> np.ndarray:
    """Draw new encoded labels of consecutive rows, independent of the samples."""
    # Draws depend on the position of the row only, not on the chunks of the samples.
    stop = first_row + len(labels)
    drawn = []
    for block in range(first_row // GENERATION_ROWS, -(-stop // GENERATION_ROWS)):
        start = block * GENERATION_ROWS
        uniform = random_stream(seed, "null", replicate, block).random(GENERATION_ROWS)
        drawn.append(uniform[max(first_row - start, 0) : stop - start])
    uniform = np.concatenate(drawn) if drawn else np.empty(0)
    if code.is_real:  # real labels: keep the modulus, and thus the tails; draw the sign
        return np.where(uniform < 0.5, -labels, labels)
    cumulated = np.cumsum(
        code.counts / code.counts.sum()
    )  # class labels: draw classes with their observed frequencies
    return np.minimum(np.searchsorted(cumulated, uniform, side="right"), len(cumulated) - 1)
