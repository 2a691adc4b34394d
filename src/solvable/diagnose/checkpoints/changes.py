"""Change of one matrix along its checkpoints: weights, directions of its features, and traps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.data.weights.stored import StoredArray
from solvable.diagnose.matrix import blas
from solvable.diagnose.noise import RectangularNoise, debias
from solvable.errors import InvalidData, MemoryLimitExceeded

MOST_FEATURES = 24  # features whose directions are compared
SMALL = 512  # up to this shorter side a whole decomposition is fast


@dataclass(frozen=True)
class Change:
    """Change of a matrix between checkpoints, relative to its norm."""

    previous: float | None = None  # distance to the checkpoint before it
    last: float | None = None  # distance to the last checkpoint
    rounding: float = 0.0  # relative spacing of the stored numbers
    # share of the last checkpoint's feature directions found in this one's, and the share that
    # signals of the same direction in fresh noise would have, with its standard error
    overlap: float | None = None
    expected: float | None = None
    error: float | None = None
    # largest singular value after a random permutation of the entries, over the edge of noise
    trap: float | None = None


@dataclass(frozen=True)
class Signals:
    """Features of one checkpoint's matrix, whose directions are compared."""

    count: int = 0
    noise: float | None = None  # scale of the noise
    overlaps: tuple[float, ...] = ()  # squared overlaps with their signals; empty if not estimated


@dataclass(frozen=True)
class Leading:
    """Leading singular vectors on the shorter side, and the squared overlaps with their signals."""

    vectors: np.ndarray  # (p, count)
    overlaps: np.ndarray  # (count,)


def changes_of(
    arrays: Sequence[StoredArray | None], signals: Sequence[Signals], seed: int
) -> list[Change]:
    """Return the changes of a matrix; two of its versions and the last are in memory."""
    places = [place for place, stored in enumerate(arrays) if stored is not None]
    found = [Change()] * len(arrays)
    final = _read(arrays[places[-1]])
    if final is None:
        return found
    with blas().limit(limits=1):
        ends = _leading(final, signals[places[-1]])
        before = None
        for place in places:
            stored = arrays[place]
            now = final if place == places[-1] else _read(stored)
            if now is None or stored is None or now.shape != final.shape:
                before = None
                continue
            overlap = _overlap(_leading(now, signals[place]), ends)
            found[place] = Change(
                None if before is None else _distance(now, before),
                _distance(now, final),
                stored.precision,
                *overlap,
                _trap(now, seed),
            )
            before = now
    return found


def _read(stored: StoredArray | None) -> np.ndarray | None:
    """Read a matrix with joined axes; None if it cannot be read or has entries that are not finite."""
    if stored is None:
        return None
    try:
        array = stored.read()
    except (InvalidData, MemoryLimitExceeded):
        return None
    if array.ndim < 2 or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    kind = np.float64 if array.dtype == np.float64 else np.float32
    matrix = np.asarray(array.reshape(array.shape[0], -1), dtype=kind)
    return matrix if np.isfinite(matrix).all() else None


def _distance(now: np.ndarray, other: np.ndarray) -> float:
    """Frobenius distance relative to the norm of the first matrix."""
    unit = float(np.abs(now).max()) or 1.0
    size = float(np.linalg.norm(now / unit))
    gap = float(np.linalg.norm((now - other) / unit))
    return gap / size if size else float(gap > 0)


def _leading(matrix: np.ndarray, signals: Signals) -> Leading:
    p, q = sorted(matrix.shape)
    matrix = matrix if matrix.shape[0] == p else matrix.T
    count = min(signals.count, MOST_FEATURES, p)
    if count == 0:
        return Leading(np.zeros((p, 0)), np.zeros(0))
    if p <= SMALL or count > p // 4:
        left, values, _ = np.linalg.svd(matrix, full_matrices=False)
        vectors, values = left[:, :count], values[:count]
    else:
        from scipy.sparse.linalg import svds

        start = np.cos(np.arange(p, dtype=np.float64))  # fixed, so that results repeat
        left, values, _ = svds(matrix, k=count, v0=start, return_singular_vectors="u")
        vectors, values = left[:, ::-1], values[::-1]
    known = np.array(signals.overlaps[:count])
    if not known.size and signals.noise:
        law = RectangularNoise(p / q)
        beyond = values[values > signals.noise * law.edges[1]]
        known = debias(beyond, noise=signals.noise, n_columns=q, ratio=p / q).short_overlap
    return Leading(np.asarray(vectors, dtype=np.float64), known)


def _overlap(now: Leading, last: Leading) -> tuple[float | None, float | None, float | None]:
    """Measured overlap of the feature directions with the last ones, and the expected overlap."""
    count = min(len(now.overlaps), len(last.overlaps))
    if count == 0:
        return None, None, None
    vectors = now.vectors[:, :count].T @ last.vectors[:, :count]
    measured = float((vectors**2).sum()) / count
    # Vectors u = sqrt(o) s + sqrt(1 - o) w of one signal s with independent w have the squared
    # overlap o o' on average. The overlap scatters around sqrt(o o') with variance (1 - o o') / p, so
    # its square has the variance 4 o o' (1 - o o') / p.
    both = np.clip(now.overlaps[:count] * last.overlaps[:count], 0.0, 1.0)
    errors = 2 * np.sqrt(both * (1 - both) / len(now.vectors))
    error = float(np.sqrt((errors**2).sum())) / count
    return measured, float(both.mean()), error


def _trap(matrix: np.ndarray, seed: int) -> float | None:
    """Largest singular value of the shuffled entries over the edge of noise of the same size."""
    rows, columns = matrix.shape
    unit = float(np.abs(matrix).max())
    if unit == 0 or min(rows, columns) < 2:
        return None
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation((matrix / unit).ravel()).reshape(rows, columns)
    # edge of noise with the standard deviation of the entries: sigma (sqrt(p) + sqrt(q))
    edge = float(np.sqrt(np.mean(shuffled**2))) * (rows**0.5 + columns**0.5)
    if min(rows, columns) <= SMALL:
        return float(np.linalg.norm(shuffled, 2)) / edge
    from scipy.sparse.linalg import svds

    start = np.cos(np.arange(min(rows, columns), dtype=np.float64))
    return float(svds(shuffled, k=1, v0=start, return_singular_vectors=False)[0]) / edge
