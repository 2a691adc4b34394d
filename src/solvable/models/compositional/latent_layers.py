r"""Later layers of a compositional target, computed on draws of a few latent numbers per sample.

Given the squared overlaps of the first spectral step, the learned representation is the true one
plus noise along random directions. What later layers make of it needs no d inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.operators import HermiteFeatures, MomentOperator

READOUT_BINS = 40
"""Pieces of the readout that is fitted to the index of the last layer."""


@dataclass(frozen=True)
class LatentDraws:
    r"""Draws of what the later layers are made of.

    Attributes
    ----------
    labels : ndarray of shape (m,)
        :math:`y`.
    signal : ndarray of shape (m, p)
        Rotated latent features :math:`u_k`.
    noise : ndarray of shape (m, p)
        Features along random directions orthogonal to the latent ones. They are uncorrelated with
        the signal, not independent: both share the norm of x, which at finite d adds about a tenth
        to the error.
    """

    labels: np.ndarray
    signal: np.ndarray
    noise: np.ndarray

    def learned(self, squared_overlap: np.ndarray) -> np.ndarray:
        r"""Learned features :math:`\hat u_k=c_ku_k+\sqrt{1-c_k^2}\,\zeta_k`, shape (m, p).

        Parameters
        ----------
        squared_overlap : ndarray of shape (p,)
            :math:`c_k^2` in [0, 1].

        Returns
        -------
        ndarray of shape (m, p)
            What a learner with these overlaps computes, up to a rotation.
        """
        overlap = np.clip(squared_overlap, 0.0, 1.0)
        return np.asarray(np.sqrt(overlap) * self.signal + np.sqrt(1 - overlap) * self.noise)


@dataclass(frozen=True)
class LastLayer:
    r"""Least squares of the label on the products of a representation.

    Attributes
    ----------
    matrix : ndarray of shape (p, p)
        :math:`\hat B`, symmetric, in :math:`\hat y=a+\hat h^\top\hat B\hat h`.
    normalised_mse : float
        Residual over the variance of the label, after a readout of the index.
    """

    matrix: np.ndarray
    normalised_mse: float


def fit_last_layer(features: np.ndarray, labels: np.ndarray, *, readout: bool = True) -> LastLayer:
    r"""Last quadratic layer and readout, as a learner with many fresh samples finds them.

    Parameters
    ----------
    features : ndarray of shape (m, p)
        Learned representation.
    labels : ndarray of shape (m,)
        :math:`y`.
    readout : bool
        Whether a function of the index is fitted after it.

    Returns
    -------
    LastLayer
        Fitted on the even draws, its error measured on the odd ones.

    Notes
    -----
    O(m p^4). For the identity readout and Gaussian features the matrix is
    :math:`\mathrm{diag}(b_kc_k^2)` and the error :math:`1-\sum_k\lambda_k^2c_k^4`; both are tested
    in ``tests/models/compositional/test_latent_layers.py``.

    Examples
    --------
    >>> h = np.random.default_rng(0).standard_normal((4000, 2))
    >>> fit = fit_last_layer(h, h[:, 0] ** 2 - 1)
    >>> np.abs(fit.matrix).round(3), fit.normalised_mse < 0.01
    (array([[1., 0.],
           [0., 0.]]), True)
    """
    count, p = features.shape
    rows, columns = np.triu_indices(p)
    products = np.column_stack([np.ones(count), features[:, rows] * features[:, columns]])
    even, odd = slice(0, None, 2), slice(1, None, 2)
    moment, target = products[even].T @ products[even], products[even].T @ labels[even]
    solution = np.linalg.lstsq(moment, target, rcond=1e-12)[0]
    matrix = np.zeros((p, p))
    matrix[rows, columns] = solution[1:] / 2
    index = products @ solution
    predicted = _readout(index[even], labels[even], index[odd]) if readout else index[odd]
    error = np.mean((labels[odd] - predicted) ** 2) / np.var(labels[odd])
    return LastLayer(matrix + matrix.T, float(error))


def _readout(index: np.ndarray, labels: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Piecewise linear function of the index with knots at its quantiles, on fresh values."""
    knots = np.unique(np.quantile(index, np.linspace(0, 1, READOUT_BINS + 1)))
    if knots.size < 3:
        return fresh
    basis = np.stack([np.interp(index, knots, row) for row in np.eye(knots.size)], axis=1)
    heights = np.linalg.lstsq(basis, labels, rcond=None)[0]
    return np.interp(fresh, knots, heights)


@dataclass(frozen=True)
class InnerLayer:
    r"""What the second spectral step finds on a learned representation.

    Attributes
    ----------
    squared_overlap : ndarray of shape (k,)
        Share of each true feature that lies in the learned ones.
    features : ndarray of shape (m, k)
        The learned features of the second representation.
    """

    squared_overlap: np.ndarray
    features: np.ndarray


def transported(layers: np.ndarray, alignment: np.ndarray) -> np.ndarray:
    r"""True quadratic forms in the coordinates of a learned representation.

    .. math::
        E[w_j(h)F(\hat h)]=\mathrm{vec}(CN_jC^\top),\qquad C=E[\hat hh^\top].

    Parameters
    ----------
    layers : ndarray of shape (k, p, p)
        :math:`N_j`, of unit Frobenius norm.
    alignment : ndarray of shape (r, p)
        :math:`C`: inner products of learned with true directions.

    Returns
    -------
    ndarray of shape (r (r + 1) / 2, k)
        Columns in the coordinates of ``HermiteFeatures(2, r)``, of squared norm at most 1.

    Notes
    -----
    O(k r p (r + p)). Derived for Gaussian h; backed by
    ``tests/models/compositional/test_latent_layers.py``.

    Examples
    --------
    >>> transported(np.array([[[1.0]]]), np.array([[0.5]]))
    array([[0.25]])
    """
    C = np.asarray(alignment, dtype=float)
    moved = np.einsum("ra,jab,sb->jrs", C, layers, C)
    return np.asarray(HermiteFeatures(2, C.shape[0]).from_symmetric(moved))


def inner_layer(
    *,
    features: np.ndarray,
    weights: np.ndarray,
    layers: np.ndarray,
    alignment: np.ndarray,
    correction: str = "wick",
) -> InnerLayer:
    r"""Second spectral step on draws of the learned first representation.

    The leading eigenvectors of the label-weighted moment of the quadratic features of the learned
    representation. Its width p is small, so that the terms of order 1/p of the population matrix,
    not noise, set the overlap: they are kept whole here.

    Parameters
    ----------
    features : ndarray of shape (m, p)
        Learned first representation.
    weights : ndarray of shape (m,)
        :math:`T`, centred mapped labels.
    layers : ndarray of shape (k, p, p)
        :math:`N_j`, the true forms.
    alignment : ndarray of shape (p, p)
        Inner products of learned with true directions.
    correction : {"wick", "none"}
        As for the operator.

    Returns
    -------
    InnerLayer
        With the sampling error of m draws, of order :math:`\sqrt{p^2/2m}`.

    Notes
    -----
    O(m p^4). Derived; backed by ``tests/models/compositional/test_latent_layers.py``.

    Examples
    --------
    >>> h = np.random.default_rng(0).standard_normal((20_000, 4))
    >>> N = np.diag([1.0, -1.0, 1.0, -1.0])[None] / 2
    >>> w = np.sum((h @ N[0]) * h, axis=1) / np.sqrt(2)
    >>> found = inner_layer(features=h, weights=np.tanh(w**2 - 1), layers=N, alignment=np.eye(4))
    >>> bool(found.squared_overlap[0] > 0.9)
    True
    """
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ("none", "wick")))
    basis = HermiteFeatures(2, features.shape[1])
    T = weights - weights.mean()
    operator = MomentOperator(features, T, basis, correction=correction)  # type: ignore[arg-type]
    values, vectors = np.linalg.eigh(operator.dense())
    chosen = np.argsort(-np.abs(values))[: layers.shape[0]]
    truth = transported(layers, alignment)
    overlap = np.sum((truth.T @ vectors[:, chosen]) ** 2, axis=1)
    return InnerLayer(overlap, np.asarray(basis.project(features, vectors[:, chosen])))
