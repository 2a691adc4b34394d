"""Linear measurements of a symmetric matrix, by samples or by Gaussian matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from solvable.arrays import Array, Source, namespace, random_stream, to_numpy
from solvable.errors import InvalidData
from solvable.operators.blocks import array_behind, rows_per_block

CHUNK_ROWS = 2_048
"""Rows of a block on the host: a block and its product with a matrix fit in the cache."""

SYMMETRIC_COLUMNS = 256
"""Number of columns above which two symmetric rank updates are faster than one product."""

LEAST_VARIANCE = 1e-10
"""Relative variance below which a direction counts as rounding."""


class Sensing(Protocol):
    """A linear map from symmetric matrices of size d to n numbers, and its adjoint."""

    n_samples: int
    dimension: int
    rounding: float
    """Relative rounding error of products."""

    def forward(self, factor: Array) -> Array:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        ...

    def adjoint(self, residual: Array) -> Array:
        """Adjoint map: symmetric matrix whose inner product with S is that of the residual with A(S)."""
        ...

    def asarray(self, values: Any) -> Array:
        """Convert numbers to double precision, on the device of the samples."""
        ...


class Samples:
    """Samples in blocks; tensors are multiplied on their device in their own precision."""

    # Other sources are read as NumPy arrays in double precision. Sums are in double precision.

    def __init__(self, source: Source) -> None:
        self.source = source
        self.array = array_behind(source)
        self.on_host = self.array is None or isinstance(self.array, np.ndarray)
        self.dtype = np.float64 if self.on_host else source.dtype
        self.rounding = float((np if self.on_host else namespace(self.array)).finfo(self.dtype).eps)

    def asarray(self, values: Any) -> Array:
        """Convert numbers to double precision, on the device of the samples."""
        if self.on_host:
            return np.asarray(to_numpy(values), dtype=np.float64)
        from array_api_compat import device

        xp = namespace(self.array)
        return xp.asarray(values, dtype=xp.float64, device=device(self.array))

    def cast(self, values: Array) -> Array:
        """Convert numbers to the precision of the samples."""
        return values if self.on_host else namespace(values).astype(values, self.dtype)

    def widened(self, values: Array) -> Array:
        """Convert products to double precision."""
        return (
            values if self.on_host else namespace(values).astype(values, namespace(values).float64)
        )

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of samples with their rows, in order."""
        # Memory of a block: the samples, the weighted samples, and a product with a matrix.
        rows = rows_per_block(self.source, CHUNK_ROWS, 24.0 * self.source.n_columns)
        for part, block in self.source.chunks(rows):
            yield part, np.asarray(to_numpy(block), np.float64) if self.on_host else block


class SampleSensing:
    """Measurements by samples, without an array of n matrices (quadratic 1)."""

    # A(S)_mu = (x_mu^T S x_mu - Tr C S) / sqrt(d),  A*(r) = (X^T diag(r) X - (sum of r) C) / sqrt(d).
    # C is the identity for isotropic samples (arXiv:2505.17958), and the second moment of the samples if
    # an intercept is fitted. With a whitening, S, C and d refer to the whitened features. A product
    # takes 2 n d² flops, or 2 n d k for a factor of k columns.

    def __init__(
        self, source: Source, centre: Array | None = None, whitening: Whitening | None = None
    ) -> None:
        self.samples = Samples(source)
        self.asarray, self.rounding = self.samples.asarray, self.samples.rounding
        self.n_samples, self.dimension = source.n_samples, source.n_columns
        self.whitening = whitening
        if whitening is not None:
            self.mean, self.directions = map(self.asarray, (whitening.mean, whitening.directions))
            self.dimension = self.directions.shape[1]
        self.centre = self.asarray(np.eye(self.dimension) if centre is None else centre)

    def forward(self, factor: Array) -> Array:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        xp, samples = namespace(factor), self.samples
        columns = samples.cast(factor if self.whitening is None else self.directions @ factor)
        squares = [
            samples.widened(xp.sum((block @ columns) ** 2, axis=1)) for _, block in self._blocks()
        ]
        values = xp.concat(squares) - xp.sum(factor * (self.centre @ factor))
        return values / self.dimension**0.5

    def adjoint(self, residual: Array) -> Array:
        """Adjoint map: symmetric matrix whose inner product with S is that of the residual with A(S)."""
        xp, samples = namespace(residual), self.samples
        total = 0.0
        for rows, block in self._blocks():
            total = total + samples.widened(weighted_gram(block, samples.cast(residual[rows])))
        if self.whitening is not None:
            total = self.directions.T @ total @ self.directions
        total = total - xp.sum(residual) * self.centre
        return (total + total.T) / (2 * self.dimension**0.5)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        shift = None if self.whitening is None else self.samples.cast(self.mean)
        for rows, block in self.samples.blocks():
            yield rows, block if shift is None else block - shift


class GaussianSensing:
    """Measurements by independent Gaussian matrices with the covariance of :class:`SampleSensing`."""

    # The limit is reached at smaller d than with samples, so that this control separates errors of the
    # theory from finite-size effects of samples. All matrices are in memory: 8 n d² bytes.

    def __init__(self, n_samples: int, dimension: int, seed: int) -> None:
        self.n_samples, self.dimension = n_samples, dimension
        self.rounding = float(np.finfo(float).eps)
        rng = random_stream(seed, "gaussian sensing")
        draws = rng.standard_normal((n_samples, dimension, dimension))
        # A(S)_mu = Tr Z_mu S; entries have the variance 1/d, on the diagonal 2/d, as for samples
        symmetric = (draws + draws.transpose(0, 2, 1)) / np.sqrt(2 * dimension)
        self.matrices = symmetric.reshape(n_samples, -1)

    def asarray(self, values: Any) -> np.ndarray:
        """Convert numbers to double precision."""
        return np.asarray(values, dtype=np.float64)

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        return self.matrices @ (factor @ factor.T).ravel()

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Adjoint map: symmetric matrix whose inner product with S is that of the residual with A(S)."""
        return (residual @ self.matrices).reshape(self.dimension, self.dimension)


@dataclass(frozen=True)
class Whitening:
    """Affine map W^T (x - m) to features of mean zero and unit covariance."""

    mean: Array
    """m, shape (d,)."""
    directions: Array
    """W, shape (d, rank of the covariance)."""


def second_moment(source: Source, origin: Array | None = None) -> Array:
    """Mean of (x - o) (x - o)^T over the samples; the origin o is 0 by default."""
    samples, total = Samples(source), 0.0
    for _, block in samples.blocks():
        moved = block if origin is None else block - samples.cast(origin)
        total = total + samples.widened(moved.T @ moved)
    return total / source.n_samples


def condition_number(moment: Array) -> float:
    """Largest over smallest eigenvalue; infinite if a direction has no variance."""
    values = namespace(moment).linalg.eigvalsh(moment)
    low, high = float(values[0]), float(values[-1])
    return float("inf") if low <= LEAST_VARIANCE * high else high / low


def whitening_of(source: Source) -> Whitening:
    """Whitening by the mean and covariance of the samples, without directions of no variance."""
    samples, total = Samples(source), 0.0
    for _, block in samples.blocks():
        xp = namespace(block)
        total = total + xp.sum(samples.widened(block), axis=0)
    mean = total / source.n_samples
    values, vectors = xp.linalg.eigh(second_moment(source, mean))
    least = LEAST_VARIANCE * max(float(values[-1]), float(xp.max(mean**2)) * 1e-6)
    flat = int(xp.count_nonzero(values <= least))  # eigenvalues are in ascending order
    if flat == values.shape[0]:
        raise InvalidData(
            f"all {source.n_samples} samples are equal; allowed: at least one column that varies. "
            "Whitening is not possible: fit with whiten=False or pass other features."
        )
    return Whitening(mean, vectors[:, flat:] / xp.sqrt(values[flat:]))


def weighted_gram(samples: Array, weights: Array) -> Array:
    """Symmetric matrix X^T diag(r) X, for weights of either sign."""
    # For many columns: one symmetric rank update for the rows of each sign. This halves the arithmetic
    # and is 1.4 times faster at 400 columns.
    if not isinstance(samples, np.ndarray) or samples.shape[1] < SYMMETRIC_COLUMNS:
        return samples.T @ (weights[:, None] * samples)
    from scipy.linalg.blas import dsyrk

    upper = np.zeros((samples.shape[1],) * 2, order="F")
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * weights > 0)
        scaled = samples[rows] * np.sqrt(sign * weights[rows])[:, None]
        upper = dsyrk(sign, scaled.T, beta=1.0, c=upper, overwrite_c=1)
    return upper + np.triu(upper, 1).T
