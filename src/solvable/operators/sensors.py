r"""Matrix-free sensors of symmetric matrices: token pairs (rank one for one token), and GOE matrices.

An index of a sample is :math:`h_{ab}=(x_a^\top Sx_b-\delta_{ab}\,\mathrm{Tr}\,S)/\sqrt d`, of variance
:math:`v_{ab}\,\mathrm{Tr}\,S^2/d` with :math:`v_{aa}=2` and :math:`v_{ab}=1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import ArraySource, Source, to_numpy
from solvable.errors import InvalidData

CHUNK_ROWS = 1_024
"""Number of token rows in one product; with this number, a block and its product stay in cache."""


class SymmetricSensors:
    """Base class of sensors of symmetric matrices for message passing."""

    size: int
    """Dimension d of the matrix."""
    n_samples: int
    variances: np.ndarray
    """Variance factors v of the K indices of a sample."""

    def cavity(self, variance: np.ndarray) -> np.ndarray:
        """Covariance of the indices for a signal with this variance."""
        # V = diag(v) E: the index of a token with itself has twice the variance
        return np.asarray(np.diag(self.variances) * variance[0, 0])

    def precision(self, slope: np.ndarray) -> np.ndarray:
        """Precision of an entry given all samples, from the summed slopes of the messages."""
        # precision q^ = -(2 / d²) sum_mu sum_k v_k dg_k / domega_k  (alpha = n / d²)
        return np.array([[-2 * float(self.variances @ np.diag(slope)) / self.size**2]])

    def weigh(self, signal: np.ndarray, precision: np.ndarray) -> np.ndarray:
        """Signal estimate multiplied by its precision."""
        return np.asarray(precision[0, 0] * signal)


def index_pairs(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs a <= b of tokens in the order of the indices: (1, 1), (1, 2), ..., (2, 2), ..."""
    first, second = np.triu_indices(tokens)
    return first, second


def index_variances(tokens: int) -> np.ndarray:
    """Variance factor of each index: 2 on the diagonal, 1 off the diagonal."""
    first, second = index_pairs(tokens)
    return np.where(first == second, 2.0, 1.0)


@dataclass(frozen=True)
class TokenSensors(SymmetricSensors):
    """Sensors from all pairs of a sample's T tokens; with T = 1 a sensor has rank one."""

    # Phi^ab = (x_a x_b^T + x_b x_a^T) / (2 sqrt(d)) - delta_ab I / sqrt(d); 2 n T d² operations
    source: Source | np.ndarray  # standard Gaussian tokens of one sample after another, (n T, d)
    tokens: int = 1  # number T of tokens per sample

    def __post_init__(self) -> None:
        if self.tokens < 1 or self._source.n_samples % self.tokens:
            raise InvalidData(
                f"the source has {self._source.n_samples} rows for samples of {self.tokens} tokens; "
                "allowed: a multiple of the number of tokens."
            )

    @cached_property
    def _source(self) -> Source:
        return ArraySource(self.source) if isinstance(self.source, np.ndarray) else self.source

    @property
    def size(self) -> int:  # type: ignore[override]
        """Dimension d of the matrix."""
        return int(self._source.n_columns)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number n of samples."""
        return int(self._source.n_samples // self.tokens)

    @cached_property
    def variances(self) -> np.ndarray:  # type: ignore[override]
        """Variance factors of the T (T + 1) / 2 indices."""
        return index_variances(self.tokens)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Measure a symmetric matrix (d, d): indices of shape (n, T (T + 1) / 2)."""
        first, second = index_pairs(self.tokens)
        found = np.empty((self.n_samples, first.size))
        matrix = signal.astype(self._dtype, copy=False)
        for rows, block in self._blocks():
            product = (block.reshape(-1, self.size) @ matrix).reshape(block.shape)
            for k, (a, b) in enumerate(zip(first, second, strict=True)):
                found[rows, k] = np.einsum("ni,ni->n", product[:, a], block[:, b])
        found[:, first == second] -= np.trace(signal)
        return found / np.sqrt(self.size)

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Symmetric matrix 2/d times the sum of message times sensor over all samples."""
        first, second = index_pairs(self.tokens)
        total = np.zeros((self.size, self.size))
        for rows, block in self._blocks():
            # sum_ab g_ab (x_a x_b^T + x_b x_a^T) / 2 = X^T (G X); G is the matrix of messages
            shares = messages[rows].astype(self._dtype, copy=False)
            if self.tokens == 1:
                total += block[:, 0].T @ (shares * block[:, 0])
                continue
            weighted = np.zeros_like(block)
            for k, (a, b) in enumerate(zip(first, second, strict=True)):
                weighted[:, a] += shares[:, k, None] * block[:, b]
            total += block.reshape(-1, self.size).T @ weighted.reshape(-1, self.size)
        total = (total + total.T) / 2
        total[np.diag_indices(self.size)] -= messages[:, first == second].sum()
        return np.asarray(2 * total / self.size**1.5)

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(np.float32 if str(self._source.dtype).endswith("float32") else np.float64)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield chunks: a slice of samples and the samples' tokens (rows, T, d)."""
        T = self.tokens
        for rows, block in self._source.chunks(max(1, CHUNK_ROWS // T) * T):
            tokens = np.asarray(to_numpy(block), dtype=self._dtype)
            yield slice(rows.start // T, rows.stop // T), tokens.reshape(-1, T, self.size)


@dataclass(frozen=True)
class GoeSensors(SymmetricSensors):
    """Control: the sensor of each sample is an independent GOE matrix."""

    # With these sensors the theory is accurate at smaller dimensions: the noise is exactly GOE.
    upper: np.ndarray  # upper triangles of the matrices of `goe_sensors`, (n, d (d + 1) / 2)
    size: int  # dimension d

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number n of samples."""
        return len(self.upper)

    @cached_property
    def variances(self) -> np.ndarray:  # type: ignore[override]
        """Variance factor 2, as for measurements of rank one."""
        return np.array([2.0])

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """Measure a symmetric matrix S: Tr(Phi S) of each sensor Phi, shape (n, 1)."""
        first, second = index_pairs(self.size)
        # an off-diagonal entry counts twice, because its mirror image is not stored
        packed = signal[first, second] * np.where(first == second, 1.0, 2.0)
        return np.asarray(self.upper @ packed.astype(self.upper.dtype), dtype=np.float64)[:, None]

    def adjoint(self, messages: np.ndarray) -> np.ndarray:
        """Symmetric matrix 2/d times the sum of message times sensor over all samples."""
        first, second = index_pairs(self.size)
        packed = messages[:, 0].astype(self.upper.dtype) @ self.upper
        total = np.empty((self.size, self.size))
        total[first, second] = total[second, first] = 2 * packed / self.size
        return total


def goe_sensors(samples: int, size: int, rng: np.random.Generator) -> GoeSensors:
    """Draw GOE matrices with entry variance 1/d off the diagonal and 2/d on the diagonal."""
    first, second = index_pairs(size)
    upper = rng.standard_normal((samples, first.size), dtype=np.float32)
    upper *= np.sqrt(np.where(first == second, 2.0, 1.0) / size).astype(np.float32)
    return GoeSensors(upper, size)
