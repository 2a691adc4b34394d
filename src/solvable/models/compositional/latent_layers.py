"""Later layers of a compositional target, computed on draws of a few latent numbers per sample.

Given the squared overlaps of the first spectral step, the learned representation is the true one
plus noise along random directions. What later layers make of it needs no d inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.operators import HermiteFeatures, MomentOperator


@dataclass(frozen=True)
class LatentDraws:
    """Draws of what the later layers are made of."""

    labels: np.ndarray  # y, shape (m,)
    signal: np.ndarray  # rotated latent features u_k, shape (m, p)
    # Features along random directions orthogonal to the latent ones, shape (m, p): uncorrelated with
    # the signal, not independent, as both share the norm of x: a tenth of the error at finite d.
    noise: np.ndarray

    def learned(self, squared_overlap: np.ndarray) -> np.ndarray:
        """Learned features of a learner with these overlaps, up to a rotation; shape (m, p)."""
        overlap = np.clip(squared_overlap, 0.0, 1.0)
        # hat u_k = c_k u_k + sqrt(1 - c_k^2) zeta_k
        return np.asarray(np.sqrt(overlap) * self.signal + np.sqrt(1 - overlap) * self.noise)


@dataclass(frozen=True)
class LastLayer:
    """Least squares of the label on the products of a representation."""

    matrix: np.ndarray  # hat B, symmetric, in hat y = a + h^T hat B h
    normalised_mse: float  # residual over the variance of the label, after a readout of the index


def fit_last_layer(features: np.ndarray, labels: np.ndarray, *, readout: bool = True) -> LastLayer:
    """Last quadratic layer, fitted on the even draws, and its error on the odd ones."""
    # Gaussian features, identity readout: diag(b_k c_k^2), and the error 1 - sum_k lambda_k^2 c_k^4.
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
    knots = np.unique(np.quantile(index, np.linspace(0, 1, 41)))
    if knots.size < 3:
        return fresh
    basis = np.stack([np.interp(index, knots, row) for row in np.eye(knots.size)], axis=1)
    heights = np.linalg.lstsq(basis, labels, rcond=None)[0]
    return np.interp(fresh, knots, heights)


@dataclass(frozen=True)
class InnerLayer:
    """What the second spectral step finds on a learned representation."""

    squared_overlap: np.ndarray  # share of each true feature that lies in the learned ones, (k,)
    features: np.ndarray  # learned features of the second representation, shape (m, k)


def transported(layers: np.ndarray, alignment: np.ndarray) -> np.ndarray:
    """True forms N_j, (k, p, p), in the coordinates of a learned representation of alignment C.

    Columns in those of ``HermiteFeatures(2, r)`` for C of shape (r, p), of squared norm at most 1.
    """
    C = np.asarray(alignment, dtype=float)
    # E[w_j(h) F(hat h)] = vec(C N_j C^T), C = E[hat h h^T], for Gaussian h
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
    """Second spectral step on m draws of the learned first representation, of weights T."""
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ("none", "wick")))
    basis = HermiteFeatures(2, features.shape[1])
    T = weights - weights.mean()
    # The width p is small, so that the terms of order 1/p of the population matrix, not noise, set the
    # overlap: they are kept whole here. The draws add an error of order sqrt(p^2 / 2m).
    operator = MomentOperator(features, T, basis, correction=correction)  # type: ignore[arg-type]
    values, vectors = np.linalg.eigh(operator.dense())
    chosen = np.argsort(-np.abs(values))[: layers.shape[0]]
    truth = transported(layers, alignment)
    overlap = np.sum((truth.T @ vectors[:, chosen]) ** 2, axis=1)
    return InnerLayer(overlap, np.asarray(basis.project(features, vectors[:, chosen])))
