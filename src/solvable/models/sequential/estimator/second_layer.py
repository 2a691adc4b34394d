"""Second layer: a quadratic function of latent features, fitted or made of the eigenvalues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from solvable.errors import InvalidData
from solvable.models.sequential.estimator.spectral_layer import SpectralLayer


@dataclass(frozen=True)
class SecondLayer:
    """The index s(h) = b + a^T h + h^T Q h, in the units of the labels."""

    intercept: float  # intercept b
    linear: np.ndarray  # linear coefficients a, zero without linear terms, (k,)
    quadratic: np.ndarray  # symmetric matrix Q, (k, k)
    kind: str  # "least-squares", "in-sample", "shrinkage" or "constant"

    def __call__(self, latent: np.ndarray) -> np.ndarray:
        """Return the index, shape (n,), of latent features of shape (n, k)."""
        forms = np.einsum("ni,ni->n", latent @ self.quadratic, latent)
        return np.asarray(forms + latent @ self.linear + self.intercept)


def constant_layer(mean: float) -> SecondLayer:
    """Second layer that predicts the mean of the labels, used if there are no latent features."""
    return SecondLayer(mean, np.zeros(0), np.zeros((0, 0)), "constant")


def layer_from_spectrum(
    layer: SpectralLayer, kind: Literal["in-sample", "shrinkage"], *, mean: float, scale: float
) -> SecondLayer:
    """Second layer made of the eigenvalues, unchanged or shrunk, without further data."""
    # The index is s(h) = y_mean + (sigma / 2) sum_i lambda_i (h_i² - 1), in the units of the labels if
    # the label map is the identity   (sequential 14; arXiv:2605.14567, Equations 2.12 and 2.13): on the
    # training rows the moment (1/n) sum_mu T_mu (h h^T - I) of the learned features is the diagonal
    # matrix of the eigenvalues. Shrinkage maps an eigenvalue lambda to sign(lambda) sqrt((lambda² - 4
    # s²)_+)   (sequential 15).
    values = layer.eigenvalues
    if kind == "shrinkage":
        moved = values - layer.noise_centre
        values = np.sign(moved) * np.sqrt(np.maximum(moved**2 - 4 * layer.noise_scale**2, 0.0))
    half = scale * values / 2
    return SecondLayer(float(mean - half.sum()), np.zeros(values.size), np.diag(half), kind)


def fit_least_squares(
    chunks: Iterable[tuple[np.ndarray, np.ndarray]],
    n_latent: int,
    *,
    cross_terms: bool,
    linear_terms: bool,
    regularisation: float,
) -> SecondLayer:
    """Fit the labels of fresh rows by ridge regression on a constant and products of latent features."""
    rows_i, rows_j = np.triu_indices(n_latent) if cross_terms else (np.arange(n_latent),) * 2
    mean, moment, count = None, None, 0
    for latent, labels in chunks:
        table = _design(latent, labels, cross_terms=cross_terms, linear_terms=linear_terms)
        # Moments about the running mean (Chan's update) avoid cancellation for large offsets.
        here = table.mean(axis=1)
        table -= here[:, None]
        if mean is None or moment is None:
            mean, moment, count = here, table @ table.T, len(labels)
            continue
        total = count + len(labels)
        step = here - mean
        moment += table @ table.T + np.outer(step, step) * (count * len(labels) / total)
        mean = mean + step * (len(labels) / total)
        count = total
    if mean is None or moment is None:
        raise InvalidData(
            "there are no held-back rows; the second layer needs at least one. Raise held_back."
        )
    coefficients = _ridge(moment / count, regularisation)
    k = rows_i.size
    quadratic = np.zeros((n_latent, n_latent))
    np.add.at(quadratic, (rows_i, rows_j), coefficients[:k] / 2)
    np.add.at(quadratic, (rows_j, rows_i), coefficients[:k] / 2)
    linear = coefficients[k:] if linear_terms else np.zeros(n_latent)
    intercept = float(mean[-1] - mean[:-1] @ coefficients)
    return SecondLayer(intercept, linear, quadratic, "least-squares")


def _design(
    latent: np.ndarray, labels: np.ndarray, *, cross_terms: bool, linear_terms: bool
) -> np.ndarray:
    """Products of pairs i <= j of latent features, the features, and the labels, as contiguous rows."""
    features = np.ascontiguousarray(latent.T)
    products = (
        [one * features[i:] for i, one in enumerate(features)] if cross_terms else [features**2]
    )
    return np.concatenate([*products, *([features] if linear_terms else []), labels[None]])


def _ridge(covariance: np.ndarray, regularisation: float) -> np.ndarray:
    """Coefficients of a ridge regression of the last variable on all other, standardised variables."""
    from scipy.linalg import solve

    scale = np.sqrt(np.diag(covariance)[:-1])
    safe = np.where(scale > 0, scale, 1.0)
    matrix = covariance[:-1, :-1] / np.outer(safe, safe)
    target = covariance[:-1, -1] / safe
    if _determined(matrix):
        penalised = matrix + regularisation * np.eye(len(matrix))
        return np.asarray(solve(penalised, target, assume_a="pos") / safe)
    values, vectors = np.linalg.eigh(matrix)
    # Directions that the rows do not determine get weight zero, whatever the ridge penalty is.
    determined = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    inverse = np.where(determined, 1 / np.where(determined, values + regularisation, 1.0), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ target)) / safe)


def _determined(matrix: np.ndarray) -> bool:
    """Return True if the smallest eigenvalue of a covariance matrix is clearly above rounding errors."""
    from scipy.linalg.lapack import dpocon, dpotrf

    factor, failed = dpotrf(matrix)
    return not failed and dpocon(factor, np.linalg.norm(matrix, 1))[0] > 1e-10
