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
    r"""Edges, outliers and overlaps of :math:`\frac1n\sum_\mu T_\mu(F_\mu F_\mu^\top-I)`.

    With :math:`\delta=n/D` and expectations over :math:`(T,h)`, on the positive side

    .. math::
        L(a)=\frac1{\delta a}+E\Big[\frac T{1-Ta}\Big],\qquad
        R_i(a)=E\Big[\frac{Th_i^2}{1-Ta}\Big],\qquad 0<a\le a_\star,\ L'(a_\star)=0,

    the edge of the bulk is :math:`L(a_\star)-E[T]`, outlier i exists iff
    :math:`R_i(a_\star)>L(a_\star)`, its place is :math:`L(a_i)-E[T]` at :math:`L(a_i)=R_i(a_i)`, and
    :math:`c_i^2=-L'/(-L'+R_i')` there; on the negative side :math:`T\to-T`. With norms that fluctuate,
    :math:`T\to T\|F\|^2/D` in the bulk and in the noise of the spikes.

    Notes
    -----
    Draws are gathered into at most 4,000 weights first (:func:`~solvable.spectra.compress_sample`),
    which moves overlaps by less than :math:`10^{-3}`: about 0.1 s for :math:`m=3\cdot10^5`, most of
    it for sorting. Derived; backed by ``tests/spectra/test_outliers.py`` (the formula on the raw
    draws, simulated matrices) and ``tests/models/sequential/test_note_theory.py``.
    """
    T, h2 = np.asarray(labels, np.float64), np.asarray(squared_features, np.float64)
    ratio = np.ones_like(T) if norm_ratio is None else np.asarray(norm_ratio, np.float64)
    if T.ndim != 1 or h2.ndim != 2 or h2.shape[0] != T.size or ratio.shape != T.shape:
        raise InvalidData(
            f"labels have shape {T.shape}, squared_features {h2.shape} and norm_ratio "
            f"{ratio.shape}; allowed: (m,), (m, p) and (m,)."
        )
    check_positive(aspect_ratio=aspect_ratio)
    # At so many features the rounding of the transition is invisible.
    features = 10**12 if n_features is None else n_features
    weights = T * ratio
    # Bulk and spikes of the plain matrix sit on this shift, which is no part of the noise.
    shift = float(weights.mean() - T.mean())
    heights = (T @ h2 - T.sum()) / T.size - shift
    # T^2 ||F||^2 / D times h^2, for the draws of one weight.
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
