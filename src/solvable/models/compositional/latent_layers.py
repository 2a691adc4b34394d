"""Later layers of a compositional target, computed on draws of latent numbers.

The learned representation has p numbers per sample, so the second step is computed without further
draws of the d inputs.
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
    """Overlaps and features of the second spectral step on a learned representation."""

    squared_overlap: np.ndarray  # share of each true feature in the span of learned ones, (k,)
    features: np.ndarray  # learned features of the second representation, shape (m, k)


def transported(layers: np.ndarray, alignment: np.ndarray) -> np.ndarray:
    """Transform true forms N_j, (k, p, p), to a learned representation with alignment C, (r, p).

    Columns are coordinates of ``HermiteFeatures(2, r)``, with squared norm at most 1.
    """
    C = np.asarray(alignment, dtype=float)
    # E[w_j(h) F(hat h)] = vec(C N_j C^T), C = E[hat h h^T], for Gaussian h   (compositional 11)
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
    """Second spectral step on draws of the learned representation; `weights` belong to the first m."""
    if correction not in ("none", "wick"):
        raise InvalidParameter(unknown_choice("correction", correction, ("none", "wick")))
    p, m = features.shape[1], len(weights)
    # The steps are those of the learner: inputs are divided by the norm |F|, the correction is used for
    # widths of at least 20, directions are ranked by the distance beyond the edges, and they are applied
    # to the original features.
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
    # At small widths the overlap is set by the terms of order 1/p of the population matrix, which these
    # draws contain in full, with the noise of order sqrt(p² / 2m) of m weights.
    rng = random_stream("compositional-target", "second solver")
    layer = fit_spectral_layer(Part(ArraySource(equal), weights), 2, settings, rng)
    truth = transported(layers, alignment)
    # |hat N^T vec(C N_j C^T)|²   (compositional 12)
    overlap = np.sum((truth.T @ layer.directions) ** 2, axis=1)
    moved = (features - features[:m].mean(axis=0)) / features[:m].std(axis=0)
    return InnerLayer(overlap, np.asarray(HermiteFeatures(2, p).project(moved, layer.directions)))


def _standardised(columns: np.ndarray) -> np.ndarray:
    deviation = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
