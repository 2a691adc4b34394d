"""Base class of moment operators: products, count of products, and statistics of the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.arrays import Array, namespace
from solvable.errors import InvalidData
from solvable.operators.feature_map import FeatureMap

Correction: TypeAlias = Literal["none", "wick"]
"""Names of the corrections of the moment operator."""


@dataclass(frozen=True)
class MomentStatistics:
    """Sample averages that determine the noise of a moment operator."""

    n_samples: int  # number of samples n
    n_features: int  # number of features D
    mean_weight: float  # mean weight E_n[T], zero for centred weights
    weight_second_moment: float  # mean squared weight E_n[T²]
    weighted_norm_mean: float  # E_n[T |F|²] / D; minus the mean weight: shift of the bulk
    weighted_norm_second: float  # mean E_n[T² |F|²] / D
    weighted_norm_fourth: float  # tau_2 = E_n[T² |F|⁴] / D², the noise variance per sample
    largest_weighted_norm: float  # largest |T| |F|² / D of a sample

    @property
    def noise_scale(self) -> float:
        r"""Noise scale :math:`s = \sqrt{D \tau_2 / n}`; the bulk spans about :math:`\pm 2 s`."""
        return float(np.sqrt(self.n_features * self.weighted_norm_fourth / self.n_samples))

    @property
    def shift(self) -> float:
        r"""Mean eigenvalue :math:`E_n[T (\|F\|^2 / D - 1)]` of the uncorrected operator."""
        return self.weighted_norm_mean - self.mean_weight


def statistics_of(
    weights: np.ndarray, squared_norms: np.ndarray, n_features: int
) -> MomentStatistics:
    """Compute the averages that determine the noise, from weights and squared feature norms."""
    norms = squared_norms / n_features  # relative squared norms |F|² / D
    weighted = weights * norms
    return MomentStatistics(
        n_samples=weights.size,
        n_features=n_features,
        mean_weight=float(weights.mean()),
        weight_second_moment=float(np.mean(weights**2)),
        weighted_norm_mean=float(weighted.mean()),
        weighted_norm_second=float(np.mean(weights * weighted)),
        # noise variance per sample, tau_2 = E_n[T² |F|⁴] / D²
        weighted_norm_fourth=float(np.mean(weighted**2)),
        largest_weighted_norm=float(np.max(np.abs(weighted))),
    )


class SymmetricOperator(ABC):
    """Symmetric operator on feature space that counts its products."""

    n_samples: int
    features: FeatureMap
    correction: Correction
    products: int = 0
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (D, D) of the operator."""
        return self.features.n_features, self.features.n_features

    @property
    @abstractmethod
    def itemsize(self) -> int:
        """Bytes per entry of the samples in products: 4 or 8."""

    @abstractmethod
    def blocks(self, rows: int) -> Iterator[tuple[Array, np.ndarray]]:
        """Yield samples and weights in order, at most ``rows`` rows at a time."""

    @property
    @abstractmethod
    def weighted_norms(self) -> np.ndarray:
        r"""Weighted squared norms :math:`T_\mu \|F_\mu\|^2 / D` of all samples, shape (n,)."""

    @property
    @abstractmethod
    def statistics(self) -> MomentStatistics:
        """Averages that determine the noise, computed in one pass over the samples at first use."""

    @abstractmethod
    def _apply(self, U: Array) -> Array:
        """Apply the operator to a block of vectors."""

    @abstractmethod
    def dense(self) -> np.ndarray:
        """Operator as a matrix, shape (D, D)."""

    def matmat(self, U: Array) -> Array:
        """Apply the operator to a block (D, k), in float64; a NumPy ``U`` gives a NumPy array."""
        if U.ndim != 2 or U.shape[0] != self.shape[0]:
            raise InvalidData(f"U has shape {tuple(U.shape)}; allowed: ({self.shape[0]}, k).")
        if U.shape[1] == 0:
            return U
        result = self._apply(U)
        self.products += int(U.shape[1])
        xp = namespace(result)
        if not bool(xp.all(xp.isfinite(result))):
            raise InvalidData(
                "the product is NaN or infinite, because the samples or the vectors are; allowed: "
                "finite numbers. Drop or impute such rows."
            )
        return result

    def matvec(self, u: Array) -> Array:
        """Apply the operator to one vector of shape (D,) or (D, 1)."""
        xp = namespace(u)
        return xp.reshape(self.matmat(xp.reshape(u, (-1, 1))), tuple(u.shape))

    def as_linear_operator(self) -> Any:
        """Convert to an operator for SciPy's solvers, on float64 NumPy vectors."""
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            self.shape,
            matvec=self.matvec,
            rmatvec=self.matvec,
            matmat=self.matmat,
            rmatmat=self.matmat,
            dtype=self.dtype,
        )
