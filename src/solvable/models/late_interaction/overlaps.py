"""Predicted overlaps of the spectral estimator, with rounding and mixing at finite size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive, random_stream
from solvable.errors import InvalidParameter
from solvable.models.late_interaction.moments import LateMoments, late_moments
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.teacher import LateInteractionTeacher
from solvable.spectra.near_semicircle import threshold_ratio
from solvable.spectra.structured_spikes import SpikePrediction, compress_sample, predict_spikes


@dataclass(frozen=True)
class LateInteractionPrediction:
    r"""Prediction of the spectral estimator for a number of queries."""

    squared_overlap: np.ndarray
    """Mean squared overlap of each direction with the learned direction of its rank; with the span of
    the r learned directions if all strengths are equal; shape (r,)."""
    threshold_queries: np.ndarray
    """Number :math:`n_k` of queries at which each direction leaves the bulk; shape (r,)."""
    heights: np.ndarray
    r"""Eigenvalues :math:`\theta_k` of the mean of the moment matrix; shape (r,)."""
    noise_scale: float
    r"""Noise scale :math:`s=\sqrt{d\,vL_qL_d/2n}`; the half-width of the bulk is 2s."""


def predict_late_interaction(
    teacher: LateInteractionTeacher, *, candidates: int, queries: float, label: LabelKind = "scores"
) -> LateInteractionPrediction:
    r"""Predict overlaps and thresholds of the spectral estimator of a teacher's kernel.

    .. math:: n_k=\frac{d\,vL_qL_d}{2\theta_k^2},\qquad \text{overlap}^2\to1-\frac{n_k}n\quad(d\ll n_k<n),

    with the spikes :math:`\theta_k=\lambda_kE[\gamma(Q)\hat q_k^2]` of the moment matrix, and
    corrections for few queries per dimension, rounding at the threshold, noise that is larger along the
    directions, and mixing. Within 0.06 of simulations for n of at least 3d;
    derivations/late-interaction (14) to (20).

    Parameters
    ----------
    teacher : LateInteractionTeacher
        Teacher with independent tokens and a rank of at most half of its dimension.
    candidates, queries : int and float
        Number K of documents of a query, at least 3, and number n of queries, above 0.
    label : {"scores", "top-1", "random-negative", "runner-up"}
        Labels of the candidates.

    Returns
    -------
    LateInteractionPrediction
        Overlaps, thresholds, heights and noise.

    Examples
    --------
    >>> teacher = LateInteractionTeacher(dimension=100, rank=4, decay=1.0)
    >>> prediction = predict_late_interaction(teacher, candidates=8, queries=10_000)
    >>> prediction.threshold_queries.round()
    array([ 44., 177., 397., 706.])
    >>> prediction.squared_overlap.round(2)
    array([0.99, 0.98, 0.95, 0.92])
    """
    check_positive(queries=queries)
    if 2 * teacher.rank > teacher.dimension:
        raise InvalidParameter(
            f"rank is {teacher.rank} and dimension is {teacher.dimension}; allowed for predictions: a "
            "rank of at most half of the dimension."
        )
    moments = late_moments(teacher, candidates=candidates, label=label)
    overlap = predicted_overlaps(
        moments, dimension=teacher.dimension, queries=queries, span=teacher.decay == 0
    )
    return LateInteractionPrediction(
        squared_overlap=overlap,
        threshold_queries=threshold_queries(moments, teacher.dimension),
        heights=moments.heights,
        noise_scale=float(np.sqrt(teacher.dimension * moments.noise / queries)),
    )


def threshold_queries(moments: LateMoments, dimension: int) -> np.ndarray:
    """Number n_k of queries at which each direction leaves the bulk, shape (r,)."""
    # n_k = d tau_2 / theta_k² = d L_d v / (2 L_q gamma² lambda_k²)   (late-interaction 18)
    return dimension * threshold_ratio(heights=moments.heights, noise=moments.noise)


def predicted_overlaps(
    moments: LateMoments, *, dimension: int, queries: float, span: bool
) -> np.ndarray:
    """Squared overlap of each direction with the learned one of its rank, or with the span of all."""
    r = moments.heights.size
    alone = _spikes(moments, moments.heights, moments.couplings, dimension, queries)
    # H_kl = theta_k delta_kl + noise of variance products_kl / (n c²), c² = max(c_k², c_l², 1/2)
    # (late-interaction 20): eigenvectors of a weak spike are as noisy as those of the stronger one.
    c2 = alone.squared_overlap
    share = np.maximum(np.maximum(c2[:, None], c2), 0.5)
    draws = int(np.clip(4_000 / r, 16, 400))
    normal = random_stream("late interaction", "levels", r).standard_normal((draws, r, r))
    noise = (normal + normal.transpose(0, 2, 1)) / np.sqrt(2)
    H = np.diag(moments.heights) + noise * np.sqrt(moments.products / (queries * share))
    levels, vectors = np.linalg.eigh(H)
    levels, squares = levels[:, ::-1], vectors[:, :, ::-1] ** 2
    # A grid of heights from far below the threshold s on, where overlaps are those of chance
    scale = np.sqrt(dimension * moments.noise / queries)
    heights = np.geomspace(0.02 * scale, 4 * max(scale, moments.heights[0]), 120)
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
    moments: LateMoments, heights: np.ndarray, couplings: np.ndarray, dimension: int, queries: float
) -> SpikePrediction:
    """Spikes of these heights, each alone, in the noise of n queries."""
    # M = (1/2n) sum omega (g g^T - g' g'^T): 2n samples of weights +-omega   (late-interaction 19)
    weights = np.concatenate([-moments.weights, moments.weights])
    sample = compress_sample(weights, np.outer(weights**2, couplings))
    return predict_spikes(
        sample=sample,
        heights=heights,
        n_samples=2 * queries,
        n_features=dimension - moments.heights.size,
    )
