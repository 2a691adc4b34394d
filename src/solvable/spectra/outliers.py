"""Outliers of a label-weighted moment matrix by the resolvent formula, from draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData
from solvable.spectra.structured_spikes import SpikePrediction, compress_sample, predict_spikes


def resolvent_outliers(
    *,
    labels: np.ndarray,
    squared_features: np.ndarray,
    aspect_ratio: float,
    n_features: int | None = None,
    norm_ratio: np.ndarray | None = None,
) -> SpikePrediction:
    """Compute edges, outliers and overlaps of (1/n) sum T (F F^T - I) from draws of T and h."""
    # With delta = n/D, at the upper end   (spectra 30): L(a) = 1 / (delta a) + E[T / (1 - T a)],
    # R_i(a) = E[T h_i² / (1 - T a)], 0 < a <= a*, L'(a*) = 0. The edge is L(a*) - E[T]; outlier i
    # exists if and only if R_i(a*) > L(a*). Its position is L(a_i) - E[T], where L = R_i, with overlap
    # c_i² = -L' / (-L' + R_i'). At the lower end, T -> -T. For fluctuating norms,
    # T -> T |F|² / D in the bulk and in the noise of the spikes.
    T, h2 = np.asarray(labels, np.float64), np.asarray(squared_features, np.float64)
    ratio = np.ones_like(T) if norm_ratio is None else np.asarray(norm_ratio, np.float64)
    if T.ndim != 1 or h2.ndim != 2 or h2.shape[0] != T.size or ratio.shape != T.shape:
        raise InvalidData(
            f"labels have shape {T.shape}, squared_features {h2.shape} and norm_ratio "
            f"{ratio.shape}; allowed: (m,), (m, p) and (m,)."
        )
    check_positive(aspect_ratio=aspect_ratio)
    # With this number of features the rounding of the transition is not visible.
    features = 10**12 if n_features is None else n_features
    weights = T * ratio
    # This shift is common to the bulk and the spikes of the plain matrix and is not noise.
    shift = float(weights.mean() - T.mean())
    heights = (T @ h2 - T.sum()) / T.size - shift
    # couplings T² |F|² h² / D for the draws of one weight
    couplings = (T * weights)[:, None] * h2
    prediction = predict_spikes(
        sample=compress_sample(weights, couplings),
        heights=heights,
        n_samples=aspect_ratio * features,
        n_features=features,
    )
    lower, upper = prediction.bulk_edges
    return replace(
        prediction,
        bulk_edges=(lower + shift, upper + shift),
        eigenvalues=prediction.eigenvalues + shift,
    )
