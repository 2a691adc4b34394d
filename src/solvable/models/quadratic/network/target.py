r"""Quadratic networks as targets: positive matrices of known spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from solvable.arrays import random_stream
from solvable.teachers.first_layer import freeze


@dataclass(frozen=True)
class QuadraticTarget:
    r"""Target of quadratic networks: a matrix :math:`S^\star\succeq0` on isotropic inputs.

    .. math:: y = \frac{x^\top S^\star x - \mathrm{Tr}\,S^\star}{\sqrt d} + \sqrt\Delta\,\xi,
        \qquad x\sim\mathcal N(0, I_d),\ \xi\sim\mathcal N(0,1),

    with :math:`S^\star=\frac1{\sqrt{p^\star d}}WW^\top`, :math:`W\in\mathbb R^{d\times p^\star}` of
    standard normal entries ("marchenko-pastur"), or with eigenvalues
    :math:`s_i=\sqrt d\,i^{-\gamma}/\sqrt{\sum_jj^{-2\gamma}}` along the axes ("power-law"). The
    eigenvectors have no effect, as the inputs are isotropic.
    Sources: arXiv:2505.17958 (Marchenko-Pastur), arXiv:2606.28242 (power law).

    Examples
    --------
    >>> target = QuadraticTarget(4, "power-law", exponent=1.0)
    >>> target.strengths.round(3)
    array([1.676, 0.838, 0.559, 0.419])
    >>> X, y = target.sample(3, rng=0)
    >>> X.shape, y.shape
    ((3, 4), (3,))
    """

    dimension: int
    """:math:`d`, at least 2."""
    spectrum: Literal["marchenko-pastur", "power-law"] = "marchenko-pastur"
    """Law of the eigenvalues."""
    width_ratio: float = 0.2
    r""":math:`\kappa^\star=p^\star/d`, above 0, rounded to a whole :math:`p^\star\ge1`; ignored by a
    power law."""
    exponent: float = 1.0
    r""":math:`\gamma`, above 1/2; ignored by Marchenko-Pastur."""
    noise: float = 0.0
    r"""Variance :math:`\Delta` of the label noise, at least 0."""
    seed: int = 0
    """Seed of the draw of :math:`W`."""

    @property
    def n_units(self) -> int:
        r"""Hidden units :math:`p^\star` of the target network."""
        if self.spectrum == "power-law":
            return self.dimension
        return max(1, round(self.width_ratio * self.dimension))

    @cached_property
    def factor(self) -> np.ndarray:
        r"""F in :math:`S^\star=FF^\top`, orthogonal columns, strongest first; shape (d, rank)."""
        d = self.dimension
        if self.spectrum == "power-law":
            strengths = np.arange(1, d + 1) ** -float(self.exponent)
            return freeze(np.diag(np.sqrt(strengths * np.sqrt(d / np.sum(strengths**2)))))
        weights = random_stream(self.seed, "quadratic").standard_normal((d, self.n_units))
        left, singular, _ = np.linalg.svd(weights, full_matrices=False)
        return freeze(left * singular / (self.n_units * d) ** 0.25)

    @cached_property
    def strengths(self) -> np.ndarray:
        r"""Eigenvalues of :math:`S^\star`, descending, zeros included; shape (d,)."""
        values = np.zeros(self.dimension)
        values[: self.factor.shape[1]] = np.sum(self.factor**2, axis=0)
        return freeze(values)

    @cached_property
    def matrix(self) -> np.ndarray:
        r""":math:`S^\star`, shape (d, d)."""
        return freeze(self.factor @ self.factor.T)

    def signal(self, X: np.ndarray) -> np.ndarray:
        """Compute labels without noise, float64."""
        values = np.empty(len(X))
        for start in range(0, len(X), 2_048):  # a block and its product fit in the cache
            hidden = np.asarray(X[start : start + 2_048], dtype=np.float64) @ self.factor
            values[start : start + 2_048] = np.einsum("ij,ij->i", hidden, hidden)
        return np.asarray((values - self.strengths.sum()) / np.sqrt(self.dimension))

    def sample(
        self, n: int, rng: np.random.Generator | int, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw n standard normal inputs of this type, and noisy float64 labels."""
        generator = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = generator.standard_normal((n, self.dimension), dtype=dtype)
        return X, self.signal(X) + np.sqrt(self.noise) * generator.standard_normal(n)

    def matrix_error(self, estimate: np.ndarray) -> float:
        """Compute the error R of a symmetric estimate of shape (d, d)."""
        # R = |S - S*|_F² / d; the error on fresh noisy labels is 2 R + Delta.
        return float(np.sum((estimate - self.matrix) ** 2) / self.dimension)

    def feature_errors(self, estimate: np.ndarray) -> np.ndarray:
        """Compute the error along each eigenvector of the target, strongest first; the mean is R."""
        # e_i = |(S - S*) v_i|²
        deviation = estimate - self.matrix
        lengths = np.sqrt(np.sum(self.factor**2, axis=0))
        rank = lengths.size
        errors = np.empty(self.dimension)
        errors[:rank] = np.sum((deviation @ (self.factor / lengths)) ** 2, axis=0)
        if rank < self.dimension:
            # Directions of eigenvalue 0 have no preferred basis: each gets the mean of their errors.
            rest = float(np.sum(deviation**2)) - float(errors[:rank].sum())
            errors[rank:] = rest / (self.dimension - rank)
        return errors
