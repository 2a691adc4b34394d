"""Predictions for the estimators of a single-index model at finite size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.models.multi_index.best_overlaps import direction_curve
from solvable.models.multi_index.overlaps import mapped_labels, optimal_map
from solvable.models.multi_index.single.parameters import SingleIndexParameters
from solvable.models.multi_index.single.theory import INFORMED, lamp_prediction
from solvable.spectra.label_emergence import emergence_ratio
from solvable.spectra.label_weighted import label_weighted_spectrum

METRICS = (
    "squared_overlap", "informed_overlap", "threshold_ratio", "outlier", "bulk_edge", "steepness",
)  # fmt: skip
"""Predicted metrics; a metric is None if it is not defined for the estimator."""


def predict(parameters: SingleIndexParameters) -> Metrics:
    """Predict the overlap, the thresholds and, for spectral estimators, the outlier and the edge."""
    metrics, reason = _bounds(parameters)
    if parameters.estimator == "amp":
        found = _message_passing(parameters)
    elif parameters.linear:
        found = _linear(parameters)
    elif parameters.estimator == "lamp":
        found = _lamp(parameters)
    else:
        found = _spectral(parameters)
    empty = dict.fromkeys(METRICS)
    return metrics | empty | found | ({NO_PREDICTION: reason} if reason else {})


def _bounds(parameters: SingleIndexParameters) -> tuple[Metrics, str]:
    """Bounds that hold for every estimator, or the reason why the bounds are not known."""
    names = ("information_threshold_ratio", "best_overlap")
    try:
        # threshold alpha_IT = inf_q (-q - log(1 - q)) / (2 I(q)), and the overlap that maximises the
        # potential (multi-index 13)
        curve = direction_curve(parameters.channel, prior=parameters.entries)
        values = (curve.positive_ratio, curve.overlap(_ratio(parameters), "best"))
    except InvalidParameter as error:
        if parameters.estimator == "amp":
            raise
        return dict.fromkeys(names), f"the information-theoretic threshold is not known: {error}"
    return dict(zip(names, values, strict=True)), ""


def _ratio(parameters: SingleIndexParameters) -> float:
    """Ratio n/d after n is rounded to an integer."""
    return parameters.samples / parameters.dimension


def _message_passing(parameters: SingleIndexParameters) -> Metrics:
    curve = direction_curve(parameters.channel, prior=parameters.entries)
    ratio = _ratio(parameters)
    threshold = 0.0 if parameters.linear else curve.start_ratio
    near = [curve.overlap(factor * ratio) for factor in (0.93, 1.07)]
    return {
        "squared_overlap": curve.overlap(ratio),
        "informed_overlap": curve.overlap(ratio, INFORMED),
        "threshold_ratio": threshold,
        # Change of the overlap if n/d changes by 7 % either way. The change is large near a jump, where
        # finite samples are far from the limit.
        "steepness": near[1] - near[0],
    }


def _linear(parameters: SingleIndexParameters) -> Metrics:
    # squared overlap alpha I_1 / (1 + alpha I_1) with I_1 = E[m(y)²]   (multi-index 5)
    information = _ratio(parameters) * float(parameters.moments.linear_information[0])
    return {
        "squared_overlap": information / (1 + information),
        "threshold_ratio": 0.0,
    }


def _spectral(parameters: SingleIndexParameters) -> Metrics:
    """Predict the spectrum of (1/n) sum T x x^T, or of (1/d) sum T* x x^T for the best map."""
    moments = parameters.moments
    optimal = parameters.estimator == "optimal"
    T = (
        optimal_map(moments.second[:, 0])
        if optimal
        else mapped_labels(moments, parameters.estimator)
    )
    law, ratio = moments.law(T), _ratio(parameters)
    spectrum = label_weighted_spectrum(law, ratio=ratio, dimension=parameters.dimension)
    end = spectrum.upper if law.strengths[0] >= 0 else spectrum.lower
    # With the factor 1/d the outlier of T* is at 1.   (multi-index 9)
    unit = ratio if optimal else 1.0
    return {
        "squared_overlap": float(end.squared_overlap[0]),
        "threshold_ratio": _threshold(parameters.model_copy(update={"sample_ratio": 1.0})),
        "outlier": unit * float(end.eigenvalues[0]),
        "bulk_edge": unit * float(end.following[0]),
    }


@lru_cache(maxsize=64)
def _threshold(parameters: SingleIndexParameters) -> float | None:
    """Threshold n/d above which an estimator finds the direction; None if it never does."""
    moments, estimator = parameters.moments, parameters.estimator
    if estimator in ("optimal", "lamp"):
        found = float(moments.weak_recovery_ratio[0])
    else:
        # For unbounded label maps the threshold depends on the dimension.
        bounded = estimator in ("tanh", "square")
        law = moments.law(mapped_labels(moments, estimator))
        found = float(emergence_ratio(law, dimension=None if bounded else parameters.dimension)[0])
    return found if np.isfinite(found) else None


def _lamp(parameters: SingleIndexParameters) -> Metrics:
    found = lamp_prediction(
        parameters.moments, sample_ratio=_ratio(parameters), dimension=parameters.dimension
    )
    return {
        "squared_overlap": found.squared_overlap,
        "threshold_ratio": _threshold(parameters.model_copy(update={"sample_ratio": 1.0})),
        "outlier": found.outlier,
        "bulk_edge": found.radius,
    }


def chance(parameters: SingleIndexParameters, prediction: Metrics) -> Metrics:
    """Return the metrics that a random direction would give."""
    return {
        "squared_overlap": 1 / parameters.dimension,
        "informed_overlap": None
        if prediction.get("informed_overlap") is None
        else 1 / parameters.dimension,
        # If there is no outlier, the leading eigenvalue is at the edge.
        "outlier": prediction.get("bulk_edge"),
    }
