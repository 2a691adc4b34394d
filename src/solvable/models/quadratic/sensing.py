"""Linear measurements of a symmetric matrix: by samples, whitened or not, and the Gaussian control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from solvable.arrays import Source, random_stream, to_numpy
from solvable.errors import InvalidData, InvalidParameter

CHUNK_ROWS = 2_048
"""Rows read at a time: a block and its product with a matrix stay in cache."""

SYMMETRIC_COLUMNS = 256
"""Columns from which two products of symmetric result beat one of general result."""

LEAST_VARIANCE = 1e-10
"""Directions of less variance than this, relative to the largest, hold rounding alone."""


class Sensing(Protocol):
    """A linear map from symmetric matrices of size d to n numbers, and its adjoint."""

    n_samples: int
    dimension: int

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        ...

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Symmetric matrix that the residual is measured against."""
        ...


class SampleSensing:
    """Measurements of S by samples, without an array of n matrices."""

    # A(S)_mu = (x_mu^T S x_mu - Tr C S) / sqrt(d),  A*(r) = (X^T diag(r) X - (sum of r) C) / sqrt(d).
    # C is the identity for isotropic samples (2505.17958); the sample second moment is what remains
    # when an intercept is fitted beside S. With a whitening, S, C and d are those of its features.
    # A product takes 2 n d^2 flops, or 2 n d k for a factor of k columns.

    def __init__(
        self,
        source: Source,
        centre: np.ndarray | None = None,
        whitening: Whitening | None = None,
    ) -> None:
        self.source = source
        self.whitening = whitening
        self.n_samples = source.n_samples
        self.dimension = source.n_columns if whitening is None else whitening.directions.shape[1]
        self.centre = np.eye(self.dimension) if centre is None else np.asarray(centre)
        if self.centre.shape != (self.dimension, self.dimension):
            raise InvalidData(
                f"centre has shape {self.centre.shape}; allowed: {(self.dimension,) * 2}, one row "
                "per column of the samples."
            )

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        values = np.empty(self.n_samples)
        columns = factor if self.whitening is None else self.whitening.directions @ factor
        for rows, samples in self._blocks():
            hidden = samples @ columns
            values[rows] = np.einsum("ij,ij->i", hidden, hidden)
        values -= np.einsum("ij,ij->", factor, self.centre @ factor)
        return values / np.sqrt(self.dimension)

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Symmetric matrix that the residual is measured against."""
        total = np.zeros((self.source.n_columns,) * 2)
        for rows, samples in self._blocks():
            total += weighted_gram(samples, residual[rows])
        if self.whitening is not None:
            total = self.whitening.directions.T @ total @ self.whitening.directions
        total -= float(np.sum(residual)) * self.centre
        return (total + total.T) / (2 * np.sqrt(self.dimension))

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows, block in self.source.chunks(CHUNK_ROWS):
            samples = np.asarray(to_numpy(block), dtype=np.float64)
            yield rows, samples if self.whitening is None else samples - self.whitening.mean


class GaussianSensing:
    """Control: independent Gaussian matrices with the covariance of :class:`SampleSensing`."""

    # The theory is exact for these at smaller d, so that they tell its errors from those of samples.
    # They are all held: 8 n d^2 bytes.

    def __init__(self, n_samples: int, dimension: int, seed: int) -> None:
        if n_samples < 1 or dimension < 1:
            raise InvalidParameter(
                f"n_samples is {n_samples!r} and dimension {dimension!r}; allowed: at least 1."
            )
        self.n_samples = n_samples
        self.dimension = dimension
        rng = random_stream(seed, "gaussian sensing")
        draws = rng.standard_normal((n_samples, dimension, dimension))
        # A(S)_mu = Tr Z_mu S with off-diagonal variance 1/d and diagonal 2/d, as for Gaussian samples
        symmetric = (draws + draws.transpose(0, 2, 1)) / np.sqrt(2 * dimension)
        self.matrices = symmetric.reshape(n_samples, -1)

    def forward(self, factor: np.ndarray) -> np.ndarray:
        """Measurements of the positive matrix ``factor @ factor.T``."""
        return self.matrices @ (factor @ factor.T).ravel()

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """Symmetric matrix that the residual is measured against."""
        return (residual @ self.matrices).reshape(self.dimension, self.dimension)


@dataclass(frozen=True)
class Whitening:
    """Affine map W^T (x - m) to features of mean zero and unit covariance."""

    mean: np.ndarray
    """m, shape (d,)."""
    directions: np.ndarray
    """W, shape (d, rank of the covariance)."""


def second_moment(source: Source, origin: np.ndarray | None = None) -> np.ndarray:
    """Mean of (x - o) (x - o)^T over the samples; o is 0 by default."""
    total = np.zeros((source.n_columns, source.n_columns))
    for _, block in source.chunks(CHUNK_ROWS):
        samples = np.asarray(to_numpy(block), dtype=np.float64)
        samples = samples if origin is None else samples - origin
        total += samples.T @ samples
    return total / source.n_samples


def condition_number(moment: np.ndarray) -> float:
    """Largest over smallest eigenvalue; infinite where a direction has no variance."""
    values = np.linalg.eigvalsh(moment)
    flat = values[0] <= LEAST_VARIANCE * values[-1]
    return float("inf") if flat else float(values[-1] / values[0])


def whitening_of(source: Source) -> Whitening:
    """Whitening by the samples' own mean and covariance, directions without variance left out."""
    mean = np.zeros(source.n_columns)
    for _, block in source.chunks(CHUNK_ROWS):
        mean += np.sum(np.asarray(to_numpy(block), dtype=np.float64), axis=0)
    mean /= source.n_samples
    values, vectors = np.linalg.eigh(second_moment(source, mean))
    kept = values > LEAST_VARIANCE * max(float(values[-1]), float(np.max(mean**2)) * 1e-6)
    if not kept.any():
        raise InvalidData(
            f"all {source.n_samples} samples are equal; allowed: at least one column that varies. "
            "There is nothing to whiten: fit with whiten=False or give other features."
        )
    return Whitening(mean, vectors[:, kept] / np.sqrt(values[kept]))


def weighted_gram(samples: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Symmetric matrix X^T diag(r) X, for weights of either sign."""
    # For many columns the rows of either sign go into one symmetric rank update each: half the
    # arithmetic, 1.4 times faster at 400 columns.
    if samples.shape[1] < SYMMETRIC_COLUMNS:
        return np.asarray(samples.T @ (weights[:, None] * samples))
    from scipy.linalg.blas import dsyrk

    upper = np.zeros((samples.shape[1],) * 2, order="F")
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * weights > 0)
        scaled = samples[rows] * np.sqrt(sign * weights[rows])[:, None]
        upper = dsyrk(sign, scaled.T, beta=1.0, c=upper, overwrite_c=1)
    return upper + np.triu(upper, 1).T
