r"""Sensors of rectangular matrices: Gaussian token matrices, and rank-one sensors as a control.

A sample is :math:`h=\sum_{ij}X_{ij}S_{ij}/(dL)^{1/4}`, of variance :math:`\|S\|_F^2/\sqrt{dL}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import ArraySource, Source, random_stream, to_numpy
from solvable.errors import InvalidData

CHUNK_NUMBERS = 2**24
"""Number of sensor entries in one product."""


class RectangularSensors:
    """Base class of sensors of rectangular matrices for message passing."""

    shape: tuple[int, int]
    """Rows d and columns L of the matrix."""
    n_samples: int

    @property
    def size(self) -> float:
        """Square root of d L, by which squared norms are divided."""
        return float(np.sqrt(self.shape[0] * self.shape[1]))

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """Variance V of an index, equal to the signal's variance E."""
        return variance

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Precision of an entry given all samples, from the summed slopes of the messages."""
        # precision q^ = -(1 / dL) sum_mu dg / domega  (alpha = n / dL)
        return -slope / self.size**2

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """Signal estimate multiplied by its precision."""
        return np.asarray(precision[0, 0] * signal)


@dataclass(frozen=True)
class MatrixSensors(RectangularSensors):
    """Sensors that are token matrices X of d x L independent standard Gaussian entries."""

    source: Source | np.ndarray  # token matrices X, one row (d L) per sample: (n, d L)
    shape: tuple[int, int]  # shape (d, L) of a token matrix

    def __post_init__(self) -> None:
        if self._source.n_columns != self.shape[0] * self.shape[1]:
            raise InvalidData(
                f"the sensors have {self._source.n_columns} columns; allowed: "
                f"{self.shape[0] * self.shape[1]}, the entries of a matrix of shape {self.shape}."
            )

    @cached_property
    def _source(self) -> Source:
        return ArraySource(self.source) if isinstance(self.source, np.ndarray) else self.source

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number n of samples."""
        return int(self._source.n_samples)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Measure a matrix (d, L) with all sensors, shape (n, 1)."""
        found = np.empty((self.n_samples, 1))
        for rows, block in self._blocks():
            found[rows, 0] = block @ signal.ravel().astype(block.dtype)
        return found / np.sqrt(self.size)

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Sum of message times sensor over all samples, divided by sqrt(d L)."""
        total = np.zeros(self.shape[0] * self.shape[1])
        for rows, block in self._blocks():
            total += messages[rows, 0].astype(block.dtype) @ block
        return total.reshape(self.shape) / self.size**1.5

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows, block in self._source.chunks(max(1, CHUNK_NUMBERS // self._source.n_columns)):
            yield rows, to_numpy(block)


@dataclass(frozen=True)
class DrawnRows:
    """Source of standard Gaussian rows in single precision, drawn again at each reading."""

    n_samples: int
    n_columns: int
    seed: int

    dtype = np.dtype(np.float32)

    def chunks(self, rows: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks whose rows depend on the seed only, not on the number of rows per block."""
        # Blocks of GeneratedSource have 4,096 rows: 650 MB at d = L = 200.
        step = max(1, CHUNK_NUMBERS // self.n_columns)
        for start in range(0, self.n_samples, step):
            stop = min(start + step, self.n_samples)
            rng = random_stream(self.seed, "sensors", start)
            yield (
                slice(start, stop),
                rng.standard_normal((stop - start, self.n_columns), dtype=np.float32),
            )


def generated_sensors(samples: int, shape: tuple[int, int], seed: int) -> MatrixSensors:
    """Make sensors that are drawn again from a seed at each product."""
    return MatrixSensors(DrawnRows(samples, shape[0] * shape[1], seed), shape)


@dataclass(frozen=True)
class BilinearSensors(RectangularSensors):
    """Sensors of rank one, X = u v^T with standard Gaussian u and v."""

    # Products cost as many operations as for dense sensors; memory is n (d + L) instead of n d L.
    left: np.ndarray  # left vector u of each sample, (n, d)
    right: np.ndarray  # right vector v of each sample, (n, L)

    def __post_init__(self) -> None:
        if len(self.left) != len(self.right):
            raise InvalidData(
                f"{len(self.left)} vectors stand on the left and {len(self.right)} on the right; "
                "allowed: one of each for every sample."
            )

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows d and columns L of the matrix."""
        return self.left.shape[1], self.right.shape[1]

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number n of samples."""
        return len(self.left)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Measure a matrix (d, L) with all sensors, shape (n, 1)."""
        found = np.empty((self.n_samples, 1))
        matrix = signal.astype(self.left.dtype)
        for rows in self._chunks():
            found[rows, 0] = np.einsum("ni,ni->n", self.left[rows] @ matrix, self.right[rows])
        return found / np.sqrt(self.size)

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Sum of message times sensor over all samples, divided by sqrt(d L)."""
        total = np.zeros(self.shape)
        for rows in self._chunks():
            total += (messages[rows].astype(self.left.dtype) * self.left[rows]).T @ self.right[rows]
        return total / self.size**1.5

    def _chunks(self) -> Iterator[slice]:
        step = max(1, CHUNK_NUMBERS // sum(self.shape))
        for start in range(0, self.n_samples, step):
            yield slice(start, min(start + step, self.n_samples))
