"""Change of one matrix along its checkpoints: its weights and its leading directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.data.weights.stored import StoredArray
from solvable.diagnose.matrix import blas
from solvable.errors import InvalidData, MemoryLimitExceeded

MOST_DIRECTIONS = 24  # leading directions that are compared
SMALL = 512  # up to this shorter side a whole decomposition is fast


@dataclass(frozen=True)
class Change:
    """Change of a matrix between checkpoints, relative to its norm."""

    previous: float | None = None  # distance to the checkpoint before it
    last: float | None = None  # distance to the last checkpoint
    rounding: float = 0.0  # relative spacing of the stored numbers
    # squared overlap of the leading directions with those of the last checkpoint
    overlap: float | None = None


def changes_of(arrays: Sequence[StoredArray | None], counts: Sequence[int]) -> list[Change]:
    """Return the changes of a matrix; two of its versions and the last are in memory."""
    places = [place for place, stored in enumerate(arrays) if stored is not None]
    found = [Change()] * len(arrays)
    final = _read(arrays[places[-1]])
    if final is None:
        return found
    with blas().limit(limits=1):
        ends = _leading(final, counts[places[-1]])
        before = None
        for place in places:
            stored = arrays[place]
            now = final if place == places[-1] else _read(stored)
            if now is None or stored is None or now.shape != final.shape:
                before = None
                continue
            found[place] = Change(
                None if before is None else _distance(now, before),
                _distance(now, final),
                stored.precision,
                _overlap(_leading(now, counts[place]), ends),
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


def _leading(matrix: np.ndarray, count: int) -> np.ndarray:
    """Return the leading singular vectors on the shorter side, as columns."""
    p = min(matrix.shape)
    matrix = matrix if matrix.shape[0] == p else matrix.T
    count = min(count, MOST_DIRECTIONS, p)
    if count == 0:
        return np.zeros((p, 0))
    if p <= SMALL or count > p // 4:
        left = np.linalg.svd(matrix, full_matrices=False)[0][:, :count]
    else:
        from scipy.sparse.linalg import svds

        start = np.cos(np.arange(p, dtype=np.float64))  # fixed, so that results repeat
        left = svds(matrix, k=count, v0=start, return_singular_vectors="u")[0][:, ::-1]
    return np.asarray(left, dtype=np.float64)


def _overlap(now: np.ndarray, last: np.ndarray) -> float | None:
    """Mean squared cosine between the subspaces of as many leading directions as both have."""
    count = min(now.shape[1], last.shape[1])
    if count == 0:
        return None
    return float(((now[:, :count].T @ last[:, :count]) ** 2).sum()) / count
