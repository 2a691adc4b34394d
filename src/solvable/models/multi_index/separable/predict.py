"""Predictions for the label-weighted second moment of a sum of equal directions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.points import Metrics
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.best_overlaps import INFORMED, SumEvolution
from solvable.models.multi_index.equal_directions import pair_exponent
from solvable.models.multi_index.overlaps import arranged
from solvable.models.multi_index.separable.label_map import label_weights
from solvable.models.multi_index.separable.parameters import SeparableParameters
from solvable.spectra.label_emergence import emergence_ratio
from solvable.spectra.label_law import LabelLaw


def predict(parameters: SeparableParameters) -> Metrics:
    """Predict overlaps, eigenvalues and edge at one point, and the thresholds in n/d."""
    p, d = parameters.directions, parameters.dimension
    law = parameters.model.law(label_weights(parameters))
    found = arranged(law, _sum_first(p), parameters.sample_ratio * d, d)
    # If the link is not even, one eigenvector estimates the sum of all directions.
    first = int(np.argmax(np.abs(found.rotation.sum(axis=0))))
    separate = bool(parameters.model.pair.any())
    span = found.span_overlap
    others = np.delete(span, first) if separate else span
    single, whole = float(others.mean()), float(span[first] if separate else others.mean())
    at_upper = found.eigenvalues[0] > np.mean(found.bulk_edges)
    return {
        "squared_overlap": (whole + (p - 1) * single) / p,
        "sum_overlap": whole,
        "single_overlap": single,
        "informed_overlap": _informed(parameters.channel, parameters.sample_ratio)
        if parameters.informed
        else None,
        "eigenvalues": found.eigenvalues.tolist(),
        "bulk_edge": float(found.bulk_edges[int(at_upper)]),
        **_thresholds(parameters.model_copy(update={"sample_ratio": 1.0})),
    }


@lru_cache(maxsize=256)
def _informed(channel: AdditiveChannel, ratio: float) -> float | None:
    """Overlap of message passing that starts near the directions; None if the noise is too small."""
    try:
        start = np.full(channel.n_directions, INFORMED)
        return float(SumEvolution(channel).fixed_point(ratio, start)[0].mean())  # (multi-index 34)
    except InvalidParameter:
        return None


@lru_cache(maxsize=64)
def _thresholds(parameters: SeparableParameters) -> Metrics:
    """Thresholds n/d of this label map, of the best label map and of any method."""
    model, law = parameters.model, parameters.model.law(label_weights(parameters))
    # The sum of all directions comes first in the law; all other directions have the same moments.
    two = LabelLaw(law.weights, law.probabilities, law.second_moments[:, :2])
    # For unbounded label maps the threshold depends on the dimension.
    bounded = parameters.label_map in ("tanh", "square")
    dimension = None if bounded else parameters.dimension
    sum_ratio, ratio = emergence_ratio(two, dimension=dimension)
    return {
        "threshold_ratio": _finite(ratio),
        "sum_threshold_ratio": _finite(sum_ratio),
        "optimal_threshold_ratio": _finite(model.weak_recovery_ratio),
        "first_order_threshold_ratio": _finite(model.first_order_ratio),
        "leading_threshold_ratio": _finite(model.leading_ratio),
        "information_threshold_ratio": _finite(model.information_ratio),
        # A linear part of the link may change the exponent.   (multi-index 18)
        "exponent": _finite(pair_exponent(model.link)),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@lru_cache(maxsize=32)
def _sum_first(directions: int) -> np.ndarray:
    """Square matrix with orthonormal columns, of which the first is parallel to (1, ..., 1)."""
    start = np.eye(directions)
    start[:, 0] = 1.0
    return np.asarray(np.linalg.qr(start)[0])


def chance(parameters: SeparableParameters, prediction: Metrics) -> Metrics:
    """Return the metrics that random directions would give."""
    share = parameters.directions / parameters.dimension
    edge = prediction.get("bulk_edge")
    edges = [edge if isinstance(edge, float) else None] * parameters.directions
    return {
        **dict.fromkeys(("squared_overlap", "sum_overlap", "single_overlap"), share),
        "eigenvalues": edges,
        "informed_overlap": None if prediction.get("informed_overlap") is None else share,
    }
