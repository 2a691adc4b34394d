"""Later layers of a compositional target, computed on draws of the latent features.

A learned representation has only p values per sample, so later steps are computed on draws of these
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import ArraySource, random_stream
from solvable.fitting.row_subsets import Part
from solvable.models.sequential.estimator.spectral_layer import LayerSettings, fit_spectral_layer
from solvable.operators import HermiteFeatures


@dataclass(frozen=True)
class InnerLayer:
    """Directions and features of a spectral step on a learned representation with r features."""

    directions: np.ndarray  # learned directions, (r (r + 1) / 2, k)
    features: np.ndarray  # learned features of the next representation, shape (m, k)


def transported(layers: np.ndarray, alignment: np.ndarray) -> np.ndarray:
    """Express true quadratic forms, (k, p, p), in a learned representation with alignment C, (r, p)."""
    # Columns are coordinates of `HermiteFeatures(2, r)`, with squared norm at most 1.
    C = np.asarray(alignment, dtype=float)
    # For Gaussian h the coefficients are E[w_j(h) F(hat h)] = vec(C N_j C^T) with C = E[hat h h^T]
    # (compositional 11).
    moved = np.einsum("ra,jab,sb->jrs", C, layers, C)
    return np.asarray(HermiteFeatures(2, C.shape[0]).from_symmetric(moved))


def form_overlap(truth: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Squared overlap of each column of `truth` with the quadratic form of a symmetric matrix."""
    form = np.asarray(HermiteFeatures(2, len(matrix)).from_symmetric(matrix[None]))[:, 0]
    # |<F, vec(C N_j C^T)>|² / |F|²   (compositional 19)
    return np.asarray((form @ truth) ** 2 / (form @ form))


def inner_layer(
    *,
    features: np.ndarray,
    norms: np.ndarray,
    weights: np.ndarray,
    width: int,
    depth: int = 1,
    correction: str = "wick",
) -> InnerLayer:
    """Spectral step on draws of representation `depth`; the first m draws have `weights`."""
    p, m = features.shape[1], len(weights)
    # The code repeats the learner's steps: inputs of degree 2^(depth - 1) in F are divided by this power
    # of |F|, the correction is used for widths of at least 20, directions are ranked by their distance
    # beyond the edges, and they are applied to the original features.
    shared = (norms[:m] / norms[:m].mean()) ** 2.0 ** (depth - 2)
    equal = _standardised(features[:m] / shared[:, None])
    settings = LayerSettings(
        n_directions=width,
        selection="forced",
        label_map="identity",  # the labels are already mapped
        correction="wick" if correction == "wick" and p >= 20 else "none",
        solver="auto",
        tolerance=1e-3,
        max_products=None,
    )
    # At small widths p, terms of order 1/p in the population matrix determine the overlap. The draws
    # contain these terms completely, and also the noise of order sqrt(p² / 2m) from m weights.
    rng = random_stream("compositional-target", "second solver")
    layer = fit_spectral_layer(Part(ArraySource(equal), weights), 2, settings, rng)
    moved = (features - features[:m].mean(axis=0)) / features[:m].std(axis=0)
    following = np.asarray(HermiteFeatures(2, p).project(moved, layer.directions))
    return InnerLayer(layer.directions, following)


def later_overlaps(
    layers: Sequence[np.ndarray], directions: Sequence[np.ndarray], alignment: np.ndarray
) -> np.ndarray:
    """Squared overlap of each feature of the later representations with the directions of its step."""
    # `alignment` is that of the first representation, (r, p).
    overlaps = []
    for matrices, found in zip(layers, directions, strict=True):
        # The alignment of the next representation, E[hat w w^T] = hat N^T vec(C N_j C^T), has the squared
        # overlap of feature j as the squared norm of column j   (compositional 12).
        alignment = found.T @ transported(matrices, alignment)
        overlaps.append(np.sum(alignment**2, axis=0))
    return np.concatenate(overlaps)


def _standardised(columns: np.ndarray) -> np.ndarray:
    deviation = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
