"""Predicted overlaps of the spectral estimator, with rounding and mixing at finite size."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.late_interaction.moments import LateMoments
from solvable.spectra.near_semicircle import threshold_ratio
from solvable.spectra.structured_spikes import (
    SpikePrediction,
    WeightedSample,
    compress_sample,
    predict_spikes,
)


def threshold_queries(moments: LateMoments, dimension: int) -> np.ndarray:
    """Number n_k of queries at which each direction leaves the bulk, shape (r,)."""
    # n_k = d tau_2 / theta_k² = d L_d v / (2 L_q gamma² lambda_k²)   (late-interaction 17)
    return dimension * threshold_ratio(heights=moments.heights, noise=moments.noise)


def predicted_overlaps(
    moments: LateMoments, *, dimension: int, queries: float, span: bool
) -> np.ndarray:
    """Squared overlap of each direction with the learned one of its rank, or with the span of all."""
    r = moments.heights.size
    alone = _spikes(moments, moments.heights, moments.couplings, dimension, queries)
    # H_kl = theta_k delta_kl + noise of variance products_kl / (n c²), c² = max(c_k², c_l², 1/2)
    # (late-interaction 19): eigenvectors of a weak spike are as noisy as those of the stronger one.
    c2 = alone.squared_overlap
    share = np.maximum(np.maximum(c2[:, None], c2), 0.5)
    draws = int(np.clip(4_000 / r, 16, 400))
    normal = random_stream("late interaction", "levels", r).standard_normal((draws, r, r))
    noise = (normal + normal.transpose(0, 2, 1)) / np.sqrt(2)
    H = np.diag(moments.heights) + noise * np.sqrt(moments.products / (queries * share))
    levels, vectors = np.linalg.eigh(H)
    levels, squares = levels[:, ::-1], vectors[:, :, ::-1] ** 2
    heights = np.geomspace(0.02 * moments.heights.min(), 4 * moments.heights.max(), 80)
    order = np.argsort(moments.heights)
    couplings = np.interp(heights, moments.heights[order], moments.couplings[order])
    curve = _spikes(moments, heights, couplings, dimension, queries)
    place = np.log(np.maximum(levels, heights[0]))
    held = squares * np.interp(place, np.log(heights), curve.squared_overlap)[:, None, :]
    # Directions inside the bulk spread over all learned directions inside it.
    out = levels > np.min(heights[curve.recovered], initial=np.inf)
    inside = np.einsum("nkm,nm->nk", held, ~out)
    if span:
        overlap = np.einsum("nkm,nm->nk", held, out) + inside * (r - out.sum(axis=1))[:, None]
    else:
        overlap = np.where(out, np.einsum("nkk->nk", held), inside)
    return np.asarray(np.clip(overlap.mean(axis=0), 0, 1))


def _spikes(
    moments: LateMoments,
    heights: np.ndarray,
    couplings: np.ndarray,
    dimension: int,
    queries: float,
) -> SpikePrediction:
    """Spikes of these heights, each alone, in the noise of n queries."""
    # M = (1/2n) sum omega (g g^T - g' g'^T): 2n samples of weights +-omega   (late-interaction 18)
    weights = np.concatenate([-moments.weights, moments.weights])
    sample = compress_sample(weights, np.outer(weights**2, couplings))
    return predict_spikes(
        sample=sample,
        heights=heights,
        n_samples=2 * queries,
        n_features=dimension - moments.heights.size,
    )
