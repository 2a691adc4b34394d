r"""Compositional targets: the first spectral step, its exponents, and what a kernel can do.

The first layer obeys the spike law of sequential feature recovery in the eigenbasis of one small
matrix, whatever stands above it. :mod:`solvable.models.compositional.latent_layers` takes it from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.sequential.sample_kernel import (
    QuadraticBackground,
    SampleKernel,
    quadratic_background,
)
from solvable.spectra.spikes import SpikePrediction, WeightedSample, compress_sample, predict_spikes

THRESHOLD_SIZES = 40
"""Sample sizes between which thresholds are interpolated."""

LARGEST_RATIO = 1e6
"""Samples per feature beyond which a feature counts as never found."""


@dataclass(frozen=True)
class RotatedLayer:
    r"""A symmetric layer in its eigenbasis.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        :math:`\lambda_k`: eigenvalues over the Frobenius norm, in descending modulus;
        :math:`\sum_k\lambda_k^2=1`.
    rotation : ndarray of shape (p, p)
        Columns :math:`v_k`: the rotated features are :math:`u_k=v_k^\top h`.
    scale : float
        :math:`\|B\|_F`.
    """

    weights: np.ndarray
    rotation: np.ndarray
    scale: float


def rotate_layer(matrix: np.ndarray) -> RotatedLayer:
    r"""Write a dense quadratic layer as a diagonal one.

    .. math::
        h^\top Bh-\mathrm{tr}B=\|B\|_F\sum_k\lambda_k(u_k^2-1),\qquad u=V^\top h .

    For Gaussian h the rotated features are Gaussian too, so a dense layer **is** a diagonal one
    with weights :math:`\lambda_k`, which sequential feature recovery solves.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        :math:`B`, symmetric, not zero.

    Returns
    -------
    RotatedLayer
        Weights, rotation and scale.

    Raises
    ------
    InvalidData
        If the matrix is not square, symmetric, finite and different from zero.

    Notes
    -----
    O(p^3). Derived; backed by ``tests/models/compositional/test_theory.py``.

    Examples
    --------
    >>> rotate_layer(np.array([[0.0, 2.0], [2.0, 0.0]])).weights.round(3)
    array([-0.707,  0.707])
    """
    B = np.asarray(matrix, dtype=float)
    if B.ndim != 2 or B.shape[0] != B.shape[1] or not np.isfinite(B).all():
        raise InvalidData(f"matrix has shape {B.shape}; allowed: a finite square matrix (p, p).")
    scale = float(np.linalg.norm(B))
    if scale == 0 or not np.allclose(B, B.T, rtol=0, atol=1e-10 * scale):
        raise InvalidData("matrix is zero or not symmetric; allowed: a symmetric matrix, not zero.")
    values, vectors = np.linalg.eigh(B)
    # Stable, so that a diagonal layer of equal moduli keeps one order on every machine.
    order = np.argsort(-np.abs(values).round(12), kind="stable")
    return RotatedLayer(values[order] / scale, vectors[:, order], scale)


def effective_matrix(matrix: np.ndarray, hidden: np.ndarray | None = None) -> np.ndarray:
    r"""What the first spectral step sees: :math:`E[y(hh^\top-I)]` for Gaussian h.

    .. math::
        \text{three layers: }\ \frac{\sqrt2\,B}{\|B\|_F},\qquad
        \text{four layers: }\ \frac4\sigma\sum_{jl}B_{jl}N_jN_l ,

    with :math:`w_j=(h^\top N_jh-\mathrm{tr}N_j)/\sqrt2` the second representation,
    :math:`y=(w^\top Bw-\mathrm{tr}B)/\sigma` and :math:`\sigma` the standard deviation. Its
    eigenvectors are the combinations of latent features that can be told apart, its eigenvalues
    the heights of the spikes. Orthonormal N of width p have :math:`N_jN_l=O(1/p)`: in four layers
    heights are :math:`O(1/p)` and thresholds :math:`D\,p^2`, against
    :math:`O(p^{-1/2})` and :math:`D\,p` in three.

    Parameters
    ----------
    matrix : ndarray of shape (k, k)
        :math:`B`, the last quadratic layer.
    hidden : ndarray of shape (k, p, p), optional
        :math:`N_j`, the quadratic layer between, symmetric; three layers without it.

    Returns
    -------
    ndarray of shape (p, p)
        Symmetric; for the identity readout and labels of unit variance.

    Raises
    ------
    InvalidData
        If shapes disagree.

    Notes
    -----
    O(k^2 p^3). Derived by Wick's theorem; backed by ``tests/models/compositional/test_theory.py``
    (simulation).

    Examples
    --------
    >>> effective_matrix(np.diag([2.0, 0.0])).round(3)
    array([[1.414, 0.   ],
           [0.   , 0.   ]])
    """
    layer = rotate_layer(matrix)
    if hidden is None:
        return np.sqrt(2) * np.asarray(matrix, dtype=float) / layer.scale
    N = np.asarray(hidden, dtype=float)
    if N.ndim != 3 or N.shape[0] != layer.weights.size or N.shape[1] != N.shape[2]:
        raise InvalidData(
            f"hidden has shape {N.shape} and matrix {np.shape(matrix)}; allowed: (k, p, p) and "
            "(k, k)."
        )
    rotated = np.einsum("jk,jab->kab", layer.rotation, N)
    squares = np.einsum("k,kab,kbc->ac", layer.weights, rotated, rotated)
    return np.asarray(4 * squares / np.sqrt(2 * _index_variance(rotated, layer.weights)))


def _index_variance(matrices: np.ndarray, weights: np.ndarray) -> float:
    """Variance of sum_k weight_k (w_k^2 - 1) / sqrt(2) for quadratic forms w_k of Gaussians."""
    products = np.einsum("iab,jbc->ijac", matrices, matrices)
    gram = np.einsum("ijaa->ij", products)
    crossed = np.einsum("ijab,ijba->ij", products, products)
    squares = np.einsum("i,iiab->ab", weights, products)
    return float(weights @ (gram**2 + 2 * crossed) @ weights + 4 * np.sum(squares**2))


@dataclass(frozen=True)
class FirstLayerLaw:
    r"""Law of the first spectral step at any number of samples.

    Attributes
    ----------
    heights : ndarray of shape (p,)
        :math:`\theta_k=E[T\langle A_k,KA_k\rangle]`, shift of the bulk left out where it has one.
    sample : WeightedSample
        Law of the noise.
    background : QuadraticBackground or None
        What the operator holds beside spikes and noise.
    n_features : int
        :math:`D`.
    """

    heights: np.ndarray
    sample: WeightedSample
    background: QuadraticBackground | None
    n_features: int

    @property
    def noise(self) -> float:
        r""":math:`\tau_2=E[T^2\|K\|_F^2]/D^2`."""
        return float(self.sample.probabilities @ self.sample.weights**2)

    @property
    def threshold_samples(self) -> np.ndarray:
        r""":math:`n_k=D\tau_2/\theta_k^2`, shape (p,), without the background's part."""
        return np.asarray(self.n_features * self.noise / np.maximum(self.heights**2, 1e-300))

    def spikes(self, n_samples: float) -> SpikePrediction:
        """Edges, eigenvalues and squared overlaps at a number of samples."""
        return predict_spikes(
            sample=self.sample,
            heights=self.heights,
            n_samples=n_samples,
            n_features=self.n_features,
            background=self.background.at(n_samples) if self.background else None,
        )


def first_layer_law(
    *,
    weights: np.ndarray,
    kernel: SampleKernel,
    n_features: int,
    diagonal: np.ndarray | None = None,
    background: QuadraticBackground | None = None,
) -> FirstLayerLaw:
    r"""Law of the first spectral step from draws of the target.

    Parameters
    ----------
    weights : ndarray of shape (m,)
        :math:`T`, centred mapped labels.
    kernel : SampleKernel
        Per-sample kernel in the eigenbasis of the effective matrix: the corrected one for features
        of degree 2, whose contraction is part of the background, else the plain one.
    n_features : int
        :math:`D`.
    diagonal : ndarray of shape (m, p), optional
        :math:`\langle A_k,KA_k\rangle` of the operator, if it is not that of ``kernel``.
    background : QuadraticBackground, optional
        Of features of degree 2; without it the mean of the bulk is taken out of the heights.

    Returns
    -------
    FirstLayerLaw
        Good for every number of samples.

    Notes
    -----
    O(m p). Derived; backed by ``tests/models/compositional/test_theory.py`` (simulation).

    Examples
    --------
    >>> from solvable.models.sequential.sample_kernel import plain_kernel
    >>> x = np.random.default_rng(0).standard_normal((100_000, 50))
    >>> T = x[:, 0] ** 2 - 1
    >>> kernel = plain_kernel(
    ...     latent=x[:, :1], squared_norm=np.sum(x**2, axis=1), n_features=50
    ... )
    >>> law = first_layer_law(weights=T, kernel=kernel, n_features=50)
    >>> bool(abs(law.heights[0] - 2) < 0.1)
    True
    """
    T = np.asarray(weights, dtype=float)
    own = kernel.diagonal if diagonal is None else diagonal
    if T.shape != kernel.size.shape or own.shape != kernel.diagonal.shape:
        raise InvalidData(
            f"weights have shape {T.shape}, the kernel has {kernel.size.size} draws and the "
            f"diagonal has shape {own.shape}; allowed: one row per draw."
        )
    heights = T @ own / T.size
    if background is None:
        heights = heights - np.mean(T * kernel.size) + T.mean() * kernel.size.mean()
    sample = compress_sample(T * kernel.size, (T**2)[:, None] * kernel.coupling)
    return FirstLayerLaw(heights, sample, background, n_features)


def composed_background(
    *,
    heights: np.ndarray,
    matrices: np.ndarray,
    contracted: np.ndarray | None = None,
    contraction_noise: float = 0.0,
) -> QuadraticBackground:
    r"""Background of order 1/d of features of degree 2, for any composition above them.

    Up to the chaos of degree 4 that the moment sees, a label is
    :math:`\frac12\sum_k\theta_k(u_k^2-1)`, whatever the layers above: that of a single diagonal
    layer of weights :math:`\theta_k/\|\theta\|`.

    Parameters
    ----------
    heights : ndarray of shape (p,)
        :math:`\theta_k` of the corrected kernel.
    matrices : ndarray of shape (p, d, d)
        Rotated features as symmetric matrices of unit Frobenius norm.
    contracted : ndarray of shape (p,), optional
        :math:`E[T\,2\,\mathrm{tr}((xx^\top-I)M_k^2)]`, for an operator without correction.
    contraction_noise : float
        As in :class:`~solvable.models.sequential.sample_kernel.QuadraticBackground`.

    Returns
    -------
    QuadraticBackground
        To leading order in 1/d; exact in its contraction for three layers.

    Notes
    -----
    O(p d^3). Derived; backed by ``tests/models/compositional/test_theory.py``.

    Examples
    --------
    >>> M = np.array([[[0.0, 1.0], [1.0, 0.0]]]) / np.sqrt(2)
    >>> composed_background(heights=np.array([3.0]), matrices=M).variance.round(3)
    np.float64(1.0)
    """
    norm = float(np.linalg.norm(heights))
    weights = heights / norm
    second = None
    if contracted is not None:
        S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices, optimize=True)
        second = float(weights @ contracted / 2 / np.sum(S**2))
    return quadratic_background(
        matrices=matrices,
        weights=weights,
        # The corrected height of a label of degree 4 is sqrt(2) lambda (1 + 4 / d).
        attenuation=norm / (np.sqrt(2) * (1 + 4 / matrices.shape[1])),
        second_chaos=second,
        contraction_noise=contraction_noise,
    )


def thresholds(law: FirstLayerLaw) -> np.ndarray:
    r"""Number of samples at which each rotated feature leaves the bulk, background included.

    Parameters
    ----------
    law : FirstLayerLaw
        Of the first spectral step.

    Returns
    -------
    ndarray of shape (p,)
        Samples, to about one per cent; infinite for a feature inside the population bulk.

    Notes
    -----
    Forty evaluations of the law. Backed by ``tests/models/compositional/test_theory.py``.
    """
    closed = np.asarray(law.threshold_samples)
    low, high = closed.min() / 2, min(4 * closed.max(), LARGEST_RATIO * law.n_features)
    sizes = np.geomspace(low, max(high, 2 * low), THRESHOLD_SIZES)
    excess = np.array([law.spikes(n).excess for n in sizes])
    found = np.full(closed.size, np.inf)
    for k, column in enumerate(excess.T):
        above = np.flatnonzero(column > 0)
        if above.size:
            last = max(int(above[0]), 1)
            part = np.clip(column[last - 1] / (column[last - 1] - column[last]), 0, 1)
            found[k] = sizes[last - 1] * (sizes[last] / sizes[last - 1]) ** part
    return found


def crossing_samples(law: FirstLayerLaw, *, level: float = 0.5) -> float:
    r"""Number of samples at which the mean squared overlap of all features reaches a level.

    Parameters
    ----------
    law : FirstLayerLaw
        Of the first spectral step.
    level : float
        In (0, 1).

    Returns
    -------
    float
        Samples, or infinity if the level is not reached at :math:`10^6 D`: some features may lie
        inside the population matrix's own bulk.

    Raises
    ------
    InvalidParameter
        If the level is not in (0, 1).

    Notes
    -----
    About ten evaluations of the law. Backed by ``tests/models/compositional/test_theory.py``.
    """
    from scipy.optimize import brentq

    if not 0 < level < 1:
        raise InvalidParameter(f"level is {level}; allowed: strictly between 0 and 1.")

    def excess(log_samples: float) -> float:
        return float(law.spikes(np.exp(log_samples)).squared_overlap.mean()) - level

    low, high = np.log(law.n_features), np.log(law.n_features) + np.log(LARGEST_RATIO)
    if excess(high) < 0:
        return float("inf")
    while excess(low) > 0:
        low -= 1.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-3)))
