"""Later layers of a compositional target, computed on draws of a few latent numbers per sample.

Given the squared overlaps of the first spectral step, the learned representation is the true one
plus noise along random directions. What later layers make of it needs no d inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import ArraySource, random_stream
from solvable.errors import InvalidParameter, unknown_choice
from solvable.fitting.row_subsets import Part
from solvable.models.sequential.estimator.spectral_layer import LayerSettings, fit_spectral_layer
from solvable.operators import HermiteFeatures


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
    norms: np.ndarray,
    weights: np.ndarray,
    layers: np.ndarray,
    alignment: np.ndarray,
    correction: str = "wick",
) -> InnerLayer:
    """Second spectral step on draws of the learned first representation, the first of weights T."""
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ("none", "wick")))
    p, m = features.shape[1], len(weights)
    # As the learner does: directions are sought at equal norms |F|² of the input, without correction
    # where the width is small, ranked by their distance beyond the edges, and applied to the features
    # themselves.
    equal = _standardised(features[:m] / np.sqrt(norms[:m] / norms[:m].mean())[:, None])
    settings = LayerSettings(
        n_directions=layers.shape[0],
        selection="forced",
        label_map="identity",  # the labels are mapped already
        correction="wick" if correction == "wick" and p >= 20 else "none",
        solver="auto",
        tolerance=1e-3,
        max_products=None,
    )
    # The width is small, so that the terms of order 1/p of the population matrix, not noise, set the
    # overlap: they are kept whole here, and so is the noise of order sqrt(p² / 2m) of m weights.
    rng = random_stream("compositional-target", "second solver")
    layer = fit_spectral_layer(Part(ArraySource(equal), weights), 2, settings, rng)
    truth = transported(layers, alignment)
    overlap = np.sum((truth.T @ layer.directions) ** 2, axis=1)
    moved = (features - features[:m].mean(axis=0)) / features[:m].std(axis=0)
    return InnerLayer(overlap, np.asarray(HermiteFeatures(2, p).project(moved, layer.directions)))


def _standardised(columns: np.ndarray) -> np.ndarray:
    deviation = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
