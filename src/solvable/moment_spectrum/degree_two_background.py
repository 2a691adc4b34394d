r"""What the moment operator of degree-2 features holds beside spikes and corrected noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import random_stream
from solvable.spectra.structured_spikes import Background

LARGEST = 22
"""Dimension at which the operator is diagonalised; larger ones are scaled down to it."""


@dataclass(frozen=True)
class QuadraticBackground:
    r"""The population operator of degree-2 features beside its spikes.

    For :math:`T=y` it is :math:`\frac4{\sqrt2}[SU+US+\sum_i\lambda_iM_iUM_i]`,
    :math:`S=\sum_i\lambda_iM_i^2`. The first part is :math:`\hat B_1U+U\hat B_1` with
    :math:`\hat B_1=\frac1n\sum_\mu T_\mu(x_\mu x_\mu^\top-I)`: the Wick correction removes it,
    without it :math:`\hat B_1` is :math:`\beta S` and noise. The operator is diagonalised for
    dimensions up to 22, and scaled from there for larger ones: matrices of norm 1 have a spectrum of
    width :math:`d^{-1/2}`, the background one of width 1/d.

    Parameters
    ----------
    matrices : ndarray of shape (k, m, m)
        :math:`M_i` of the strongest features, or others that stand for them.
    rates : ndarray of shape (k,)
        What multiplies :math:`M_iUM_i`.
    order : ndarray of shape (k,)
        Which features they are.
    features : int
        p, all of them.
    variance : float
        Of a semicircle that stands for what the others do.
    contraction : ndarray of shape (m, m), optional
        :math:`\beta S`; None where the operator is corrected.
    contraction_noise : float
        n times the variance of the spectrum of the noise in :math:`\hat B_1`,
        :math:`E[T^2\|xx^\top-I\|_F^2]/d`.
    """

    matrices: np.ndarray
    rates: np.ndarray
    order: np.ndarray
    features: int
    variance: float = 0.0
    contraction: np.ndarray | None = None
    contraction_noise: float = 0.0

    @property
    def plain(self) -> bool:
        """Whether a contraction is part of it."""
        return self.contraction is not None

    def at(self, n_samples: float) -> Background:
        """Background at a sample size; O(m^6)."""
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
        # U -> B_1 U + U B_1 + sum_i kappa_i M_i U M_i in the basis (E_ab + E_ba) / sqrt(2), E_aa
        size = len(single)
        rows, columns = np.triu_indices(size)
        norm = np.where(rows == columns, 1, np.sqrt(2))
        eye = np.eye(size)
        pairs = np.tensordot(self.rates[:, None, None] * self.matrices, self.matrices, axes=(0, 0))
        pairs += np.multiply.outer(single, eye) + np.multiply.outer(eye, single)
        a, b = rows[:, None], columns[:, None]
        matrix = pairs[a, rows, b, columns] + pairs[a, columns, b, rows]
        matrix *= norm[:, None] * norm / 2
        # The features are spikes: atoms are of the complement, links what joins it to them.
        known = self.matrices[:, rows, columns] * norm
        images = matrix @ known.T
        basis = np.linalg.qr(known.T, mode="complete")[0][:, len(known) :]
        atoms, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        links = ((basis @ vectors).T @ images).T ** 2
        others = np.tile(links.mean(axis=0), (self.features, 1))
        others[self.order] = links
        return Background(atoms, self.variance, np.full(self.features, self.variance), links=others)


def quadratic_background(
    *,
    matrices: np.ndarray,
    weights: np.ndarray,
    attenuation: float,
    second_chaos: float | None = None,
    contraction_noise: float = 0.0,
    dimension: int | None = None,
) -> QuadraticBackground:
    r"""Background of degree-2 features from the matrices of the target.

    Notes
    -----
    O(p d^2). Derived; backed by ``tests/models/sequential/test_background.py`` (the exact population
    matrix, and its scaling).
    """
    features, d = weights.size, dimension or matrices.shape[1]
    size, scale = d, 1.0
    if dimension is not None or d > LARGEST:
        size = min(d, LARGEST)
        scale, matrices = size / d, random_matrices(min(features, size), size)
    strongest = np.argsort(-np.abs(weights), kind="stable")[: len(matrices)]
    held, rest = weights[strongest], np.delete(weights, strongest)
    if len(matrices) == features:
        strongest, held = np.arange(features), weights
    contraction = None
    if second_chaos is not None:
        S = np.einsum("i,iab,ibc->ac", held, matrices, matrices, optimize=True)
        # M_i^2 of many weak features is close to its mean I / d
        contraction = second_chaos * (scale * S + rest.sum() / d * np.eye(size))
    return QuadraticBackground(
        matrices=matrices,
        rates=4 / np.sqrt(2) * attenuation * scale * held,
        order=strongest,
        features=features,
        # (4/sqrt(2)) sum_i lambda_i M_i U M_i of many is close to a free semicircle of variance 8/d^2
        variance=8 * attenuation**2 / d**2 * float(rest @ rest),
        contraction=contraction,
        contraction_noise=contraction_noise,
    )


def random_matrices(count: int, dimension: int) -> np.ndarray:
    """Orthonormal random symmetric matrices, (count, d, d), of a seed of their own."""
    rows, columns = np.triu_indices(dimension)
    rng = random_stream("quadratic background", "matrices", dimension)
    flat = np.linalg.qr(rng.standard_normal((rows.size, count)))[0].T
    matrices = np.zeros((count, dimension, dimension))
    matrices[:, rows, columns] = flat * np.where(rows == columns, 1, np.sqrt(0.5))
    matrices[:, columns, rows] = matrices[:, rows, columns]
    return matrices
