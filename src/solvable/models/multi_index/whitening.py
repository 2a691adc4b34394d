"""Centring, scaling and shrunk whitening of inputs for spectral estimators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solvable.arrays import Array, Source, as_on, namespace, to_numpy
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.fitting.row_subsets import SourceView
from solvable.fitting.shrinkage import oracle_shrinkage, shrunk
from solvable.memory import available_bytes, gigabytes
from solvable.operators._symmetric import mirror, rank_update
from solvable.operators.feature_map import floating

Whiten: TypeAlias = Literal["shrunk", "scale", "none"]
"""Names of the ways to whiten inputs."""

ROWS = 4096
"""Number of rows read at a time."""


@dataclass(frozen=True)
class StandardisedSource(SourceView):
    """A source whose columns are centred and scaled block by block."""

    mean: np.ndarray  # mean of each column, (d,)
    scale: np.ndarray  # divisor of each column, (d,)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.source.n_samples)

    def chunks(self, rows: int) -> Iterator[tuple[slice, Array]]:
        """Yield pairs ``(slice, block)`` of row range and rows, in order."""
        for part, block in self.source.chunks(rows):
            X = floating(block)
            yield part, (X - as_on(self.mean, X)) / as_on(self.scale, X)


@dataclass(frozen=True)
class Scaling:
    """Affine map of the inputs to mean 0 and a covariance close to the identity."""

    mean: np.ndarray | None = None  # mean of each input, (d,)
    scale: np.ndarray | None = None  # divisor of each input, (d,)
    factor: np.ndarray | None = (
        None  # lower triangle L, where L L^T is the shrunk correlation, (d, d)
    )
    shrinkage: float = 1.0

    def source(self, source: Source) -> Source:
        """Return a source of centred and scaled samples; :meth:`turn` accounts for the correlation."""
        if self.mean is None or self.scale is None:
            return source
        return StandardisedSource(source, self.mean, self.scale)

    def turn(self, U: np.ndarray) -> np.ndarray:
        """Convert directions U of the whitened inputs to directions L^-T U of the scaled inputs."""
        return U if self.factor is None else _solve(self.factor, U, transposed=True)

    def turn_back(self, V: np.ndarray) -> np.ndarray:
        """Convert moments V of the scaled inputs to moments L^-1 V of the whitened inputs."""
        return V if self.factor is None else _solve(self.factor, V, transposed=False)

    def components(self, U: np.ndarray) -> np.ndarray:
        """Convert directions of the whitened inputs to directions of the original inputs, (d, k)."""
        turned = self.turn(U)
        return turned if self.scale is None else turned / self.scale[:, None]


def _solve(factor: np.ndarray, V: np.ndarray, *, transposed: bool) -> np.ndarray:
    from scipy.linalg import solve_triangular

    trans = "T" if transposed else "N"
    return np.asarray(solve_triangular(factor, V, lower=True, trans=trans, check_finite=False))


def fit_scaling(source: Source, whiten: Whiten) -> Scaling:
    """Estimate mean, scale and shrunk correlation of the inputs in one pass."""
    if whiten == "none":
        return Scaling()
    n, d = source.n_samples, source.n_columns
    needed, free = 32.0 * d**2, available_bytes()
    if whiten == "shrunk" and needed > free:
        raise MemoryLimitExceeded(
            f"whitening {d} columns needs {gigabytes(needed)}; {gigabytes(free)} are free. Use "
            "whiten='scale', or whiten='none' for white inputs."
        )
    # Before columns are summed, they are centred and scaled by the first block, so that a large mean
    # costs no precision. The exact mean and scale are computed below.
    start: Array = None
    total, squares = np.zeros(d), np.zeros(d)
    gram = np.zeros((d, d), order="F") if whiten == "shrunk" else None
    for _, block in source.chunks(ROWS):
        X = floating(block)
        xp = namespace(X)
        if start is None:
            wide = xp.astype(X, xp.float64)
            start = xp.mean(wide, axis=0), _positive(to_numpy(xp.std(wide, axis=0)))
            start = to_numpy(start[0]), start[1]
        Z = (X - as_on(start[0], X)) / as_on(start[1], X)
        total += to_numpy(xp.sum(Z, axis=0, dtype=xp.float64))
        squares += to_numpy(xp.sum(Z * Z, axis=0, dtype=xp.float64))
        if gram is not None:
            rank_update(gram, Z if isinstance(Z, np.ndarray) else to_numpy(Z), 1.0)
    shift = total / n
    if not np.isfinite(squares).all():
        bad = int(np.flatnonzero(~np.isfinite(squares))[0])
        raise InvalidData(
            f"column {bad} holds NaN or infinite entries; allowed: finite numbers. Drop or impute "
            "these rows."
        )
    spread = _positive(np.sqrt(np.maximum(squares / n - shift**2, 0.0)))
    mean, scale = start[0] + start[1] * shift, start[1] * spread
    if gram is None:
        return Scaling(mean, scale)
    correlation = (mirror(gram) / n - np.outer(shift, shift)) / np.outer(spread, spread)
    return Scaling(mean, scale, *_shrunk_factor(correlation, n))


def _positive(scale: np.ndarray) -> np.ndarray:
    """Replace the scale of constant columns by 1."""
    return np.where(scale > 1e-12, scale, 1.0)


def _shrunk_factor(correlation: np.ndarray, n: int) -> tuple[np.ndarray | None, float]:
    """Shrink the correlation towards the identity; return Cholesky factor and weight of the identity."""
    delta = oracle_shrinkage(correlation, n)
    return (None if delta == 1.0 else np.linalg.cholesky(shrunk(correlation, delta))), delta
