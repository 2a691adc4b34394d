r"""Protocol of feature maps: products with the matrix :math:`F(X)`, which is never formed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from solvable.arrays import Array, namespace
from solvable.operators._engines import as_like


class FeatureMap(Protocol):
    """Feature map F from R^d to R^D, defined by its products with arrays of the array API."""

    dimension: int  # number d of columns of X

    @property
    def n_features(self) -> int:
        """Number of features."""
        ...

    @abstractmethod
    def transform(self, X: Array) -> Array:
        """Explicit features, shape (n, D): for small problems and tests."""

    @abstractmethod
    def project(self, X: Array, U: Array) -> Array:
        """Product :math:`F(X) U`, shape (n, k)."""

    @abstractmethod
    def adjoint(self, X: Array, W: Array) -> Array:
        """Product :math:`F(X)^T W`, shape (D, k)."""

    @abstractmethod
    def squared_norm(self, X: Array) -> Array:
        r"""Squared norm :math:`\|F(x)\|^2` of each row, shape (n,)."""

    def kernel(self, X: Array, Y: Array | None = None) -> Array:
        r"""Kernel :math:`\langle F(x), F(y) \rangle`, shape (n, m)."""
        features = self.transform(X)
        return features @ (features if Y is None else self.transform(Y)).T

    def weighted_product(self, X: Array, weights: Array, U: Array) -> Array:
        r"""Product :math:`F^T \mathrm{diag}(w) F U`, shape (D, k)."""
        return self.adjoint(X, as_like(weights, X, X.dtype)[:, None] * self.project(X, U))

    def weighted_sum(self, blocks: Iterable[tuple[Array, np.ndarray]], U: Array) -> Array:
        """Sum of :meth:`weighted_product` over blocks ``(X, weights)``, shape (D, k)."""
        return sum(self.weighted_product(X, weights, U) for X, weights in blocks)

    def block_rows(self, n_vectors: int = 1) -> int:
        """Number of rows per block with which intermediate arrays stay in cache."""
        return 2048

    def row_bytes(self, n_vectors: int = 1) -> float:
        """Largest memory per row of a block with this number of vectors, in float64 numbers."""
        return 8.0 * (self.dimension + 2 * self.n_features + 2 * n_vectors)


def floating(X: Array) -> Array:
    """Keep float32 and float64 without a copy; convert other types to float64."""
    xp = namespace(X)
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)
