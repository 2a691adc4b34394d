r"""The second layer: a quadratic function of latent features, fitted or read off the spectrum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from solvable.errors import InvalidData
from solvable.models.sequential.spectral_layer import SpectralLayer

ROWS_PER_COLUMN = 10
"""Held-back rows per coefficient above which cross terms are worth their variance."""


@dataclass(frozen=True)
class SecondLayer:
    r"""The index :math:`s(h) = b + a^\top h + h^\top Q h`, in the units of the labels.

    Parameters
    ----------
    intercept : float
        :math:`b`.
    linear : ndarray of shape (k,)
        :math:`a`, zero unless linear terms were asked for.
    quadratic : ndarray of shape (k, k)
        :math:`Q`, symmetric.
    kind : str
        How it was made: "least-squares", "in-sample", "shrinkage" or "constant".

    Examples
    --------
    >>> layer = SecondLayer(1.0, np.zeros(2), np.diag([1.0, -1.0]), "least-squares")
    >>> layer(np.array([[2.0, 1.0]]))
    array([4.])
    """

    intercept: float
    linear: np.ndarray
    quadratic: np.ndarray
    kind: str

    def __call__(self, latent: np.ndarray) -> np.ndarray:
        """Index of latent features, shape (n, k) to (n,)."""
        forms = np.einsum("ni,ni->n", latent @ self.quadratic, latent)
        return np.asarray(forms + latent @ self.linear + self.intercept)


def constant_layer(mean: float) -> SecondLayer:
    """The mean of the labels, for want of latent features.

    Parameters
    ----------
    mean : float
        Mean of the labels.

    Returns
    -------
    SecondLayer
        Of no latent features.
    """
    return SecondLayer(mean, np.zeros(0), np.zeros((0, 0)), "constant")


def layer_from_spectrum(
    layer: SpectralLayer,
    kind: Literal["in-sample", "shrinkage"],
    *,
    mean: float,
    scale: float,
) -> SecondLayer:
    r"""Second layer read off the eigenvalues, without further data.

    .. math:: s(h) = \bar y + \tfrac{\sigma}{2}\sum_i \hat\lambda_i (h_i^2 - 1),

    with the eigenvalues as they are ("in-sample": on the same data the moment
    :math:`\frac1n\sum_\mu T_\mu(\hat h_\mu\hat h_\mu^\top-I)` is exactly their diagonal matrix, and
    biased away from zero), or with :math:`\hat\lambda_i\to
    \mathrm{sign}(\hat\lambda_i)\sqrt{(\hat\lambda_i^2-4s^2)_+}` ("shrinkage").

    Parameters
    ----------
    layer : SpectralLayer
        Eigenvalues, and the scale and centre of the noise about which they are shrunk.
    kind : {"in-sample", "shrinkage"}
        Which.
    mean, scale : float
        :math:`\bar y` and :math:`\sigma` of the labels that were standardised.

    Returns
    -------
    SecondLayer
        In the units of the labels if the label map is the identity, else of the mapped labels times
        :math:`\sigma`.

    Notes
    -----
    arXiv:2605.14567 eqs. 2.12, 2.13 (in-sample); the shrinkage is derived (note 3.4); backed by
    ``tests/models/sequential/test_second_layer.py``.
    """
    values = layer.eigenvalues
    if kind == "shrinkage":
        moved = values - layer.noise_centre
        values = np.sign(moved) * np.sqrt(np.maximum(moved**2 - 4 * layer.noise_scale**2, 0.0))
    half = scale * values / 2
    return SecondLayer(float(mean - half.sum()), np.zeros(values.size), np.diag(half), kind)


def count_columns(n_latent: int, *, cross_terms: bool, linear_terms: bool) -> int:
    """Number of coefficients beside the intercept.

    Parameters
    ----------
    n_latent : int
        :math:`k`.
    cross_terms, linear_terms : bool
        Which are fitted.

    Returns
    -------
    int
        Coefficients.

    Examples
    --------
    >>> count_columns(4, cross_terms=True, linear_terms=False)
    10
    """
    quadratic = n_latent * (n_latent + 1) // 2 if cross_terms else n_latent
    return quadratic + (n_latent if linear_terms else 0)


def wants_cross_terms(
    cross_terms: bool | Literal["auto"], n_latent: int, n_rows: int, *, linear_terms: bool
) -> bool:
    """Whether products of different latent features are fitted.

    Parameters
    ----------
    cross_terms : bool or "auto"
        What was asked for.
    n_latent, n_rows : int
        Latent features and held-back rows.
    linear_terms : bool
        Whether linear terms are fitted too.

    Returns
    -------
    bool
        For "auto", whether there are :data:`ROWS_PER_COLUMN` rows per coefficient.
    """
    if cross_terms == "auto":
        columns = count_columns(n_latent, cross_terms=True, linear_terms=linear_terms)
        return columns * ROWS_PER_COLUMN <= n_rows
    return cross_terms


def fit_least_squares(
    chunks: Iterable[tuple[np.ndarray, np.ndarray]],
    n_latent: int,
    *,
    cross_terms: bool,
    linear_terms: bool,
    regularisation: float,
) -> SecondLayer:
    r"""Ridge regression of labels on 1 and products of latent features, on fresh rows.

    Parameters
    ----------
    chunks : iterable of (ndarray of shape (m, k), ndarray of shape (m,))
        Latent features and labels of rows that the directions do not know; read once.
    n_latent : int
        :math:`k`.
    cross_terms : bool
        All :math:`h_i h_j`, or the squares only.
    linear_terms : bool
        Also :math:`h_i`.
    regularisation : float
        Ridge on standardised columns, relative to their variance of one, at least 0.

    Returns
    -------
    SecondLayer
        The fit.

    Raises
    ------
    InvalidData
        If there are no rows.

    Notes
    -----
    Normal equations in float64, :math:`O(m\,c^2)` for c columns and memory of a chunk. Derived
    (note 2.4); backed by ``tests/models/sequential/test_second_layer.py``.
    """
    rows_i, rows_j = np.triu_indices(n_latent) if cross_terms else (np.arange(n_latent),) * 2

    def design(latent: np.ndarray) -> np.ndarray:
        quadratic = latent[:, rows_i] * latent[:, rows_j]
        return np.concatenate([quadratic, latent], axis=1) if linear_terms else quadratic

    mean, moment, count = None, None, 0
    for latent, labels in chunks:
        table = np.concatenate([design(latent), labels[:, None]], axis=1)
        # Moments about the mean so far (Chan's update), so that large offsets do not cancel.
        here = table.mean(axis=0)
        centred = table - here
        if mean is None or moment is None:
            mean, moment, count = here, centred.T @ centred, len(table)
            continue
        total = count + len(table)
        step = here - mean
        moment += centred.T @ centred + np.outer(step, step) * (count * len(table) / total)
        mean = mean + step * (len(table) / total)
        count = total
    if mean is None or moment is None:
        raise InvalidData("there are no held-back rows; at least one is needed.")
    coefficients = _ridge(moment / count, regularisation)
    k = rows_i.size
    quadratic = np.zeros((n_latent, n_latent))
    np.add.at(quadratic, (rows_i, rows_j), coefficients[:k] / 2)
    np.add.at(quadratic, (rows_j, rows_i), coefficients[:k] / 2)
    linear = coefficients[k:] if linear_terms else np.zeros(n_latent)
    intercept = float(mean[-1] - mean[:-1] @ coefficients)
    return SecondLayer(intercept, linear, quadratic, "least-squares")


def _ridge(covariance: np.ndarray, regularisation: float) -> np.ndarray:
    """Coefficients of the last variable on the others, whose columns are standardised first."""
    scale = np.sqrt(np.diag(covariance)[:-1])
    safe = np.where(scale > 0, scale, 1.0)
    matrix = covariance[:-1, :-1] / np.outer(safe, safe)
    target = covariance[:-1, -1] / safe
    values, vectors = np.linalg.eigh(matrix)
    # Directions that the rows do not determine get no weight, whatever the ridge.
    determined = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    inverse = np.where(determined, 1 / np.where(determined, values + regularisation, 1.0), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ target)) / safe)
