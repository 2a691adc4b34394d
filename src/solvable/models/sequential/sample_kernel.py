r"""One sample's contribution to the moment operator, reduced to the numbers that theory needs.

Sample :math:`\mu` adds :math:`T_\mu K_\mu/n` to the operator. What matters of K is its size on the
complement of the features, what it does to a feature, and what it takes from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.spectra.spikes import Background


@dataclass(frozen=True)
class SampleKernel:
    r"""Draws of the per-sample kernel K.

    Parameters
    ----------
    size : ndarray of shape (m,)
        :math:`\|K\|_F/D`, at least 0.
    diagonal : ndarray of shape (m, p)
        :math:`\langle A_i,KA_i\rangle`.
    coupling : ndarray of shape (m, p)
        :math:`(\|KA_i\|^2-\langle A_i,KA_i\rangle^2)/D`, at least 0.
    rest : ndarray of shape (m,)
        :math:`\|P_\perp KP_\perp\|_F/(D-p)` on the complement of the features.
    outer : ndarray of shape (m, p)
        :math:`\|P_\perp KA_i\|^2/(D-p)`.
    """

    size: np.ndarray
    diagonal: np.ndarray
    coupling: np.ndarray
    rest: np.ndarray
    outer: np.ndarray

    def rows(self, rows: slice) -> SampleKernel:
        """Some of the draws."""
        return SampleKernel(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def joined(cls, kernels: Sequence[SampleKernel]) -> SampleKernel:
        """Draws of several, one after the other."""
        columns = zip(*([getattr(k, f.name) for f in fields(cls)] for k in kernels), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def plain_kernel(*, latent: np.ndarray, squared_norm: np.ndarray, n_features: int) -> SampleKernel:
    r"""Numbers of :math:`K=FF^\top-I` for features of any degree.

    Parameters
    ----------
    latent : ndarray of shape (m, p)
        :math:`h_i=\langle A_i,F\rangle` for unit directions.
    squared_norm : ndarray of shape (m,)
        :math:`\|F\|^2`.
    n_features : int
        :math:`D`.

    Returns
    -------
    SampleKernel
        Exact for each draw.

    Notes
    -----
    Derived; backed by ``tests/models/sequential/test_sample_kernel.py`` (explicit matrices).

    Examples
    --------
    >>> kernel = plain_kernel(
    ...     latent=np.array([[2.0]]), squared_norm=np.array([4.0]), n_features=1
    ... )
    >>> float(kernel.size[0]), float(kernel.diagonal[0, 0]), float(kernel.coupling[0, 0])
    (3.0, 3.0, 0.0)
    """
    if squared_norm.shape != latent.shape[:1]:
        raise InvalidData(
            f"latent has shape {latent.shape} and squared_norm {squared_norm.shape}; allowed: "
            "(m, p) and (m,)."
        )
    # |K|_F^2 = |F|^4 - 2 |F|^2 + D, <A, K A> = h^2 - 1, |K A|^2 = |F|^2 h^2 - 2 h^2 + 1
    frobenius = squared_norm**2 - 2 * squared_norm + n_features
    diagonal = latent**2 - 1
    image = squared_norm[:, None] * latent**2 - 2 * latent**2 + 1
    # The features' own share of |F|^2 is large where T is: F = sum_i h_i A_i + F_perp.
    others = max(n_features - latent.shape[1], 1)
    outside = np.maximum(squared_norm - np.sum(latent**2, axis=1), 0)
    inner = (outside - 2) * outside + others
    return SampleKernel(
        np.sqrt(np.maximum(frobenius, 0)) / n_features,
        diagonal,
        np.maximum(image - diagonal**2, 0) / n_features,
        np.sqrt(np.maximum(inner, 0)) / others,
        outside[:, None] * latent**2 / others,
    )


def corrected_kernel(
    *,
    latent: np.ndarray,
    squared_input_norm: np.ndarray,
    squared_images: np.ndarray,
    traces: np.ndarray,
    dimension: int,
) -> SampleKernel:
    r"""Numbers of the Wick-corrected kernel of degree-2 features.

    With :math:`\tilde X=xx^\top-I_d` and vectors read as symmetric matrices,
    :math:`K[U]=\langle F,U\rangle F-U-(\tilde XU+U\tilde X)`, :math:`F=\tilde X/\sqrt2`.

    Parameters
    ----------
    latent : ndarray of shape (m, p)
        :math:`h_i=\langle M_i,F\rangle`, :math:`\|M_i\|_F=1`.
    squared_input_norm : ndarray of shape (m,)
        :math:`\|x\|^2`.
    squared_images : ndarray of shape (m, p)
        :math:`\|M_ix\|^2`.
    traces : ndarray of shape (p,)
        :math:`\mathrm{tr}\,M_i`.
    dimension : int
        :math:`d`.

    Returns
    -------
    SampleKernel
        Exact for each draw.

    Notes
    -----
    Derived; backed by ``tests/models/sequential/test_sample_kernel.py`` (explicit matrices).

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> M = np.diag([1.0, 0.0])
    >>> kernel = corrected_kernel(
    ...     latent=np.array([[(x @ M @ x - 1) / np.sqrt(2)]]), squared_input_norm=np.array([5.0]),
    ...     squared_images=np.array([[1.0]]), traces=np.ones(1), dimension=2,
    ... )
    >>> round(float(kernel.diagonal[0, 0]), 6)  # He4(1)/2 of the coordinate 1
    -1.0
    """
    s, d = squared_input_norm, dimension
    D = d * (d + 1) / 2
    # Traces of the first three powers of X = x x^T - I, whose eigenvalues are s - 1 and -1.
    first, second, third = s - d, (s - 1) ** 2 + d - 1, (s - 1) ** 3 - (d - 1)
    squared_norm = second / 2
    frobenius = (
        squared_norm**2 + D - 2 * squared_norm
        - 2 * third + (d + 2) * second + first**2 + 2 * (d + 1) * first
    )  # fmt: skip
    # x^T M x, 2 <M^2, X>, <F, X M + M X> and |X M + M X|^2
    column = s[:, None]
    forms = np.sqrt(2) * latent + traces
    moved = 2 * (squared_images - 1)
    crossing = np.sqrt(2) * ((column - 2) * forms + traces)
    contraction = 2 * ((column - 2) * squared_images + 1) + 2 * (forms**2 - 2 * squared_images + 1)
    diagonal = latent**2 - 1 - moved
    image = (
        squared_norm[:, None] * latent**2 + 1 + contraction
        - 2 * latent**2 - 2 * latent * crossing + 2 * moved
    )  # fmt: skip
    # <A_i, K A_j> is h_i h_j and a part of variance 4 / d, which is left out here.
    squares = latent**2
    crossed = squares * (squares.sum(axis=1)[:, None] - squares)
    outer = np.maximum(image - diagonal**2 - crossed, 0)
    rest = frobenius - np.sum(2 * outer + diagonal**2 + crossed, axis=1)
    others = max(D - latent.shape[1], 1)
    return SampleKernel(
        np.sqrt(np.maximum(frobenius, 0)) / D,
        diagonal,
        np.maximum(image - diagonal**2, 0) / D,
        np.sqrt(np.maximum(rest, 0)) / others,
        outer / others,
    )


@dataclass(frozen=True)
class QuadraticBackground:
    r"""What the moment operator of degree-2 features holds beside spikes and corrected noise.

    For :math:`T=y` its mean is
    :math:`\frac4{\sqrt2}[SU+US+\sum_i\lambda_iM_iUM_i]`, :math:`S=\sum_i\lambda_iM_i^2`. The
    second part is close to a free semicircle of variance :math:`8/d^2`. The first is
    :math:`\hat B_1U+U\hat B_1` with :math:`\hat B_1=\frac1n\sum_\mu T_\mu(x_\mu x_\mu^\top-I)`: the
    Wick correction removes it, without it :math:`\hat B_1` is :math:`\beta S` and noise, and the
    eigenvalues are sums of two of its own.

    Parameters
    ----------
    variance : float
        Of the semicircle.
    couplings : ndarray of shape (p,)
        Squared norm of what the semicircle takes from each feature to the complement.
    matrices : ndarray of shape (p, d, d)
        :math:`M_i`.
    contraction : ndarray of shape (d, d), optional
        :math:`\beta S`; None where the operator is corrected.
    contraction_noise : float
        :math:`E[T^2\|xx^\top-I\|_F^2]/d`, n times the variance of the noise in :math:`\hat B_1`.
    """

    variance: float
    couplings: np.ndarray
    matrices: np.ndarray
    contraction: np.ndarray | None = None
    contraction_noise: float = 0.0

    def at(self, n_samples: float) -> Background:
        """Background at a sample size; O(p d^3)."""
        if self.contraction is None:
            return Background(np.zeros(1), self.variance, self.couplings)
        # U -> B_1 U + U B_1 has the sums of two eigenvalues of B_1 = beta S + noise for its own.
        dimension = len(self.contraction)
        root = random_stream("quadratic background", dimension).standard_normal((dimension,) * 2)
        scale = np.sqrt(self.contraction_noise / n_samples / (2 * dimension))
        values, vectors = np.linalg.eigh(self.contraction + scale * (root + root.T))
        rows, columns = np.triu_indices(dimension)
        atoms = values[rows] + values[columns]
        turned = vectors.T @ self.matrices @ vectors
        profiles = turned[:, rows, columns] ** 2 * np.where(rows == columns, 1, 2)
        order = np.argsort(atoms)
        # At most 2,000 groups of neighbouring atoms of equal size: their mean stands for them.
        size = -(-atoms.size // 2_000)
        starts = np.arange(0, atoms.size, size)
        sizes = np.diff(np.append(starts, atoms.size))
        grouped = np.add.reduceat(atoms[order], starts) / sizes
        weights = np.add.reduceat(profiles[:, order], starts, axis=1)
        return Background(grouped, self.variance, self.couplings, weights)


def quadratic_background(
    *,
    matrices: np.ndarray,
    weights: np.ndarray,
    attenuation: float,
    second_chaos: float | None = None,
    contraction_noise: float = 0.0,
) -> QuadraticBackground:
    r"""Background of degree-2 features from the matrices of the target.

    Parameters
    ----------
    matrices : ndarray of shape (p, d, d)
        :math:`M_i`, symmetric, :math:`\|M_i\|_F=1`.
    weights : ndarray of shape (p,)
        :math:`\lambda_i`, :math:`\sum_i\lambda_i^2=1`.
    attenuation : float
        Scale of the part of degree 4, 1 for :math:`T=y`.
    second_chaos : float, optional
        :math:`\beta` in :math:`E[T(xx^\top-I)]=\beta S`, :math:`4/\sqrt2` for :math:`T=y`; without
        it the operator is taken to be corrected.
    contraction_noise : float
        As in :class:`QuadraticBackground`.

    Returns
    -------
    QuadraticBackground
        Evaluate it at a sample size.

    Notes
    -----
    O(p d^2). Derived to leading order in 1/d for the semicircle; backed by
    ``tests/models/sequential/test_sample_kernel.py`` (the exact population matrix).

    Examples
    --------
    >>> M = np.array([[[0.0, 1.0], [1.0, 0.0]]]) / np.sqrt(2)
    >>> quadratic_background(matrices=M, weights=np.ones(1), attenuation=1.0).variance
    2.0
    """
    features, dimension = matrices.shape[:2]
    # (4/sqrt(2)) sum_i lambda_i M_i U M_i is close to a free semicircle of variance 8/d^2.
    variance = 8 * attenuation**2 / dimension**2
    couplings = np.full(features, variance)
    B = None
    if second_chaos is not None:
        B = second_chaos * np.einsum("i,iab,ibc->ac", weights, matrices, matrices, optimize=True)
    return QuadraticBackground(variance, couplings, matrices, B, contraction_noise)
