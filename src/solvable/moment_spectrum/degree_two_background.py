r"""Background of the degree-2 moment operator: the operator without spikes and corrected noise.

For :math:`T=y` the background is :math:`\frac4{\sqrt2}[SU+US+\sum_i\lambda_iM_iUM_i]`,
:math:`S=\sum_i\lambda_iM_i^2` (sequential 19). The first part is :math:`\hat B_1U+U\hat B_1` with
:math:`\hat B_1=\frac1n\sum_\mu T_\mu(x_\mu x_\mu^\top-I)`. The Wick correction removes this part; in the
plain operator :math:`\hat B_1` is :math:`\beta S` plus noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.quadratic_forms import mean_traces
from solvable.spectra.structured_spikes import Background

LARGEST = 22
"""Largest dimension that is diagonalised; operators of larger dimension are scaled down to it."""


@dataclass(frozen=True)
class QuadraticBackground:
    """Population operator of degree-2 features, without its spikes."""

    matrices: np.ndarray  # random matrices M_i of the strongest features, of size m <= d, (k, m, m)
    rates: np.ndarray  # coefficients of the terms M_i U M_i, (k,)
    order: np.ndarray  # indices of the strongest features, (k,)
    features: int  # number p of all features
    variance: float  # variance of a semicircle that replaces the operator of all other features
    contraction: np.ndarray | None  # matrix beta S, (m, m); None for a corrected operator
    contraction_noise: float  # n times the variance of the spectrum of the noise in B_1

    @property
    def plain(self) -> bool:
        """Return True if the operator contains the contraction (no Wick correction)."""
        return self.contraction is not None

    def at(self, n_samples: float) -> Background:
        """Background at a number of samples; the cost is O(m⁶)."""
        if self.contraction is None:
            return self._corrected
        size = len(self.contraction)
        root = random_stream("quadratic background", size).standard_normal((size, size))
        scale = np.sqrt(self.contraction_noise / n_samples / (2 * size))
        return self._diagonalised(self.contraction + scale * (root + root.T))

    @cached_property
    def _corrected(self) -> Background:
        return self._diagonalised(np.zeros(self.matrices.shape[1:]))

    def _diagonalised(self, single: np.ndarray) -> Background:
        # The matrix is that of U -> B_1 U + U B_1 + sum_i kappa_i M_i U M_i in the basis (E_ab + E_ba)
        # / sqrt(2), E_aa.
        size = len(single)
        rows, columns = np.triu_indices(size)
        norm = np.where(rows == columns, 1, np.sqrt(2))
        eye = np.eye(size)
        pairs = np.tensordot(self.rates[:, None, None] * self.matrices, self.matrices, axes=(0, 0))
        pairs += np.multiply.outer(single, eye) + np.multiply.outer(eye, single)
        a, b = rows[:, None], columns[:, None]
        matrix = pairs[a, rows, b, columns] + pairs[a, columns, b, rows]
        matrix *= norm[:, None] * norm / 2
        # Atoms are eigenvalues on the complement of the features; links couple the atoms to the features.
        known = self.matrices[:, rows, columns] * norm
        images = matrix @ known.T
        basis = np.linalg.qr(known.T, mode="complete")[0][:, len(known) :]
        atoms, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        links = ((basis @ vectors).T @ images).T ** 2
        others = np.tile(links.mean(axis=0), (self.features, 1))
        others[self.order] = links
        return Background(atoms, self.variance, np.full(self.features, self.variance), links=others)


def quadratic_background(
    heights: np.ndarray,
    dimension: int,
    *,
    contracted: np.ndarray | None = None,
    contraction_noise: float = 0.0,
) -> QuadraticBackground:
    """Background for a label whose features have given corrected spike heights.

    For the plain operator `contracted` is E[T 2 tr((x x^T - I) M_i²)].
    """
    p, d = heights.size, dimension
    size = min(d, LARGEST)
    # The spectrum of a matrix of norm 1 has width d^(-1/2); the spectrum of the background has width 1/d.
    scale = size / d
    # Up to Hermite degree 4, T is (1/2) sum_i theta_i (h_i² - 1) / (1 + 4/d), which is the unmapped label
    # times an attenuation factor.
    norm = float(np.linalg.norm(heights))
    weights, attenuation = heights / norm, norm / (np.sqrt(2) * (1 + 4 / d))
    matrices = random_matrices(min(p, size), size)
    order = np.argsort(-np.abs(weights), kind="stable")[: len(matrices)]
    if len(matrices) == p:
        order = np.arange(p)
    strongest, rest = weights[order], np.delete(weights, order)
    contraction = None
    if contracted is not None:
        # E[T 2 tr((x x^T - I) M_i²)] = 2 beta <S, M_i²> with S = sum_i lambda_i M_i²
        squares = mean_traces(p, d)[1]
        beta = float(weights @ contracted / 2 / (weights @ squares @ weights))
        S = np.einsum("i,iab,ibc->ac", strongest, matrices, matrices, optimize=True)
        # The sum of M_i² over many weak features is close to its mean, a multiple of I / d.
        contraction = beta * (scale * S + rest.sum() / d * np.eye(size))
    return QuadraticBackground(
        matrices=matrices,
        rates=4 / np.sqrt(2) * attenuation * scale * strongest,
        order=order,
        features=p,
        # For many features, (4/sqrt(2)) sum_i lambda_i M_i U M_i acts as a free semicircle of variance
        # 8/d².
        variance=8 * attenuation**2 / d**2 * float(rest @ rest),
        contraction=contraction,
        contraction_noise=contraction_noise,
    )


def random_matrices(count: int, dimension: int) -> np.ndarray:
    """Orthonormal random symmetric matrices, (count, d, d), drawn from a fixed seed."""
    rows, columns = np.triu_indices(dimension)
    rng = random_stream("quadratic background", "matrices", dimension)
    flat = np.linalg.qr(rng.standard_normal((rows.size, count)))[0].T
    matrices = np.zeros((count, dimension, dimension))
    matrices[:, rows, columns] = flat * np.where(rows == columns, 1, np.sqrt(0.5))
    matrices[:, columns, rows] = matrices[:, rows, columns]
    return matrices
