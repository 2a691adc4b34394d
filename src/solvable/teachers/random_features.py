r"""Random ReLU features as latent features, with their exact covariance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import random_stream
from solvable.operators.features import HermiteFeatures
from solvable.teachers.first_layer import freeze

COVARIANCE_ROWS = 1024
"""Number of rows of the width x width covariance that are in memory at a time."""


@dataclass(frozen=True)
class ReluFeatures:
    """Random ReLU features without their constant and linear parts (arXiv:2602.10867)."""

    # phi_j(x) = relu(u_j) - 1 / sqrt(2 pi) - u_j / 2 with u_j = w_j . x and |w_j| = 1 has Hermite degrees
    # 2 and higher. The covariance is the arc-cosine kernel of degree 1 minus its first two Hermite terms.
    dimension: int
    width: int
    seed: int = 0

    @cached_property
    def rows(self) -> np.ndarray:
        """Unit rows :math:`w_j`, shape (width, d), read-only."""
        stream = random_stream(self.seed, "teacher", "random features")
        gaussian = stream.standard_normal((self.width, self.dimension))
        return freeze(gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True))

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Compute the random features of a block of rows, shape (n, width), in the type of X."""
        projected = X @ self.rows.T.astype(X.dtype, copy=False)
        return np.maximum(projected, 0) - projected / 2 - X.dtype.type(1 / np.sqrt(2 * np.pi))

    def covariance_product(self, A: np.ndarray) -> np.ndarray:
        r"""Compute :math:`E[\phi\phi^\top]A` exactly, in blocks of rows of the covariance."""
        out = np.empty_like(A)
        for start in range(0, self.width, COVARIANCE_ROWS):
            part = slice(start, min(start + COVARIANCE_ROWS, self.width))
            out[part] = relu_covariance(self.rows[part] @ self.rows.T) @ A
        return out

    def whiten(self, A: np.ndarray) -> np.ndarray:
        r"""Combine columns so that :math:`A^\top E[\phi\phi^\top]A = I`."""
        covariance = A.T @ self.covariance_product(A)
        inverse = np.linalg.inv(np.linalg.cholesky((covariance + covariance.T) / 2))
        return freeze(A @ inverse.T)

    def hermite_directions(self, A: np.ndarray) -> np.ndarray:
        """Compute the degree-2 part of the latent features, in coordinates of the Hermite features."""
        # E[h_i(x) F(x)] = 1/sqrt(4 pi) sum_j A_ji vec(w_j w_j^T): the ReLU has the coefficient
        # 1/sqrt(4 pi) in the orthonormal Hermite polynomial of degree 2.
        weighted = A.T[:, :, None] * self.rows
        matrices = 1 / np.sqrt(4 * np.pi) * (weighted.transpose(0, 2, 1) @ self.rows)
        return np.asarray(HermiteFeatures(2, self.dimension).from_symmetric(matrices))


def relu_covariance(cosine: np.ndarray) -> np.ndarray:
    r"""Covariance of two features :math:`\phi_j` whose rows have the given inner product.

    .. math:: \frac{\sqrt{1-\rho^2}+(\pi-\arccos\rho)\rho}{2\pi}-\frac1{2\pi}-\frac\rho4 .
    """
    rho = np.clip(cosine, -1.0, 1.0)
    kernel = np.sqrt(1 - rho**2) + (np.pi - np.arccos(rho)) * rho
    return np.asarray((kernel - 1) / (2 * np.pi) - rho / 4)
