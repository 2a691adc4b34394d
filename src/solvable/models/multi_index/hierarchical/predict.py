"""Predictions for the hierarchical model at finite size: overlaps, spectrum, errors, thresholds."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil, log

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.message_passing.channels import MOST_CROSS, AdditiveChannel
from solvable.message_passing.moments import ConditionalMoments
from solvable.models.multi_index.best_overlaps import (
    INFORMED,
    STEP,
    SumEvolution,
    best_overlaps,
    oracle_overlaps,
    weighted_error,
)
from solvable.models.multi_index.hierarchical.parameters import NEURONS, HierarchicalParameters
from solvable.models.multi_index.overlaps import (
    SpectralPrediction,
    mapped_labels,
    predict_spectral,
)
from solvable.models.multi_index.reduced_learner import Fit, deflated, one_shot_risk
from solvable.operators.labels import label_function
from solvable.spectra.label_emergence import emergence_ratio


def predict(parameters: HierarchicalParameters) -> Metrics:
    """Predict overlaps, spectrum, risk and thresholds of the two-stage learner."""
    channel = parameters.channel
    moments = _moments(channel)
    even = moments.cross is None
    spectral = partial(
        predict_spectral,
        moments,
        label_map=parameters.label_map,
        sample_ratio=parameters.samples / parameters.dimension,
        dimension=parameters.dimension,
    )
    found = spectral()
    metrics = (
        _spectral(parameters, found)
        | _thresholds(channel, parameters.label_map, parameters.dimension)
        | _bounds(parameters)
    )
    metrics |= _trained(parameters, found, spectral)
    if parameters.readout == "none":
        return metrics | {"risk": None}
    fit = Fit(parameters.readout, NEURONS, parameters.regularisation, parameters.samples)
    weights_of = moments.labels, mapped_labels(moments, parameters.label_map)
    # All points of a curve use the same draws, so that lines are smooth.
    rng = random_stream("hierarchical multi-index", "effective sample")
    if not parameters.deflation:
        return metrics | {"risk": one_shot_risk(channel, found, weights_of, fit, rng)}
    if not even:
        reason = (
            "with deflation the theory covers even links only: residuals of others mix directions"
        )
        empty = dict.fromkeys(("squared_overlap", "subspace_error", "eigenvalues", "risk"))
        return metrics | empty | {NO_PREDICTION: f"{reason}; allowed: an even link or deflation=0"}
    label_map, d = label_function(parameters.label_map), parameters.dimension
    second = deflated(channel, found, weights_of, label_map, d, fit, rng)
    return metrics | {
        "squared_overlap": second.squared_overlap.tolist(),
        "subspace_error": weighted_error(channel, second.squared_overlap),
        "eigenvalues": second.eigenvalues.tolist(),
        "risk": second.risk,
    }


def _trained(
    parameters: HierarchicalParameters,
    found: SpectralPrediction,
    spectral: Callable[..., SpectralPrediction],
) -> Metrics:
    """Predict overlaps of gradient descent with the features, and with the estimator's directions."""
    if not parameters.trained:
        return {"gradient_overlap": None, "estimator_overlap": None}
    # At small learning rates it finds the eigenvectors of largest modulus   (multi-index 33).
    overlaps = spectral(ranking="modulus").squared_overlap.tolist()
    low, high = np.abs(found.bulk_edges)
    if min(low, high) > 0.8 * max(low, high):
        return {"gradient_overlap": overlaps, "estimator_overlap": 1.0}
    reason = (
        f"gradient descent ranks by modulus, the estimator by distance from the edges of the bulk, "
        f"{-low:.3g} and {high:.3g}: it may find a direction beyond the nearer edge that gradient "
        "descent does not find; no prediction of estimator_overlap"
    )
    return {"gradient_overlap": overlaps, "estimator_overlap": None, NO_PREDICTION: reason}


def _moments(channel: AdditiveChannel) -> ConditionalMoments:
    """Conditional moments of the channel, with moments of feature pairs if links are not even."""
    if channel.n_directions > MOST_CROSS and channel.links[0].parity != "even":
        raise InvalidParameter(
            f"features is {channel.n_directions} with the link {channel.links[0].name!r}, which is not "
            f"even and needs moments of all pairs; allowed: up to {MOST_CROSS} features, or an even link."
        )
    return channel.pair_moments


def _spectral(parameters: HierarchicalParameters, found: SpectralPrediction) -> Metrics:
    low, high = found.bulk_edges
    at_upper = found.eigenvalues[0] > (low + high) / 2
    return {
        "squared_overlap": found.squared_overlap.tolist(),
        "subspace_error": weighted_error(parameters.channel, found.squared_overlap),
        "eigenvalues": found.eigenvalues.tolist(),
        "bulk_edge": float(high if at_upper else low),
    }


MOST_BEST = 64
"""Largest number of features for which the Bayes-optimal overlaps are computed."""


def _bounds(parameters: HierarchicalParameters) -> Metrics:
    """Errors of the best estimator and of the oracle bound, and thresholds of the best estimator."""
    names = ("best_error", "oracle_error", "message_passing_error")
    empty: Metrics = dict.fromkeys(names) | {
        "information_threshold_ratio": [None] * parameters.features
    }
    channel, ratio = parameters.channel, parameters.samples / parameters.dimension
    if channel.links[0].parity != "even" or not channel.noise > 0:
        return empty
    try:
        empty |= {"oracle_error": weighted_error(channel, oracle_overlaps(channel, ratio))}
        if channel.n_directions > MOST_BEST:
            return empty
        # One table serves all sample ratios of a study up to STEP^18 = 1478.
        table = best_overlaps(channel, max(18, 6 * ceil(log(ratio, STEP) / 6)))
    except InvalidParameter:  # too little noise for the quadrature
        return empty
    return empty | {
        "best_error": weighted_error(channel, table.at(ratio)),
        "information_threshold_ratio": listed(table.threshold_ratio),
        "message_passing_error": _informed_error(channel, ratio)
        if parameters.message_passing
        else None,
    }


@lru_cache(maxsize=256)
def _informed_error(channel: AdditiveChannel, ratio: float) -> float:
    """Error of message passing that starts near the true directions."""
    start = np.full(channel.n_directions, INFORMED)
    return weighted_error(channel, SumEvolution(channel).fixed_point(ratio, start)[0])


@lru_cache(maxsize=32)
def _thresholds(channel: AdditiveChannel, label_map: str, dimension: int) -> Metrics:
    """Return each feature's threshold in n/d, for this label map and for the feature's best map."""
    moments = _moments(channel)
    T = mapped_labels(moments, label_map)
    law = moments.law(T)
    if moments.cross is not None:
        # The directions are eigenvectors of E[T G], which combine features, by decreasing strength.
        strengths, rotation = np.linalg.eigh(
            np.einsum("m,mab->ab", moments.probabilities * T, moments.cross)
        )
        rotation = rotation[:, np.argsort(-np.abs(strengths))]
        along = np.einsum("ak,mab,bk->mk", rotation, moments.cross, rotation, optimize=True)
        law = type(law)(T, moments.probabilities, np.maximum(1 + along, 0.0))
    bounded = label_map in ("tanh", "square")
    # 1 / alpha_k = E[T² / (lambda - T)²] = E[T G_kk / (lambda - T)]   (multi-index 21)
    ratios = emergence_ratio(law, dimension=None if bounded else dimension)
    return {
        "threshold_ratio": listed(ratios),
        "first_threshold_ratio": listed([np.min(ratios, initial=np.inf)])[0],
        "optimal_threshold_ratio": listed(moments.weak_recovery_ratio),
    }


def chance(parameters: HierarchicalParameters, prediction: Metrics) -> Metrics:
    """Return the metrics that random directions and the mean label as prediction would give."""
    p, share = parameters.features, parameters.features / parameters.dimension
    a2 = np.array(parameters.channel.amplitudes) ** 2
    z, weight = parameters.channel.links[0].nodes()
    sigma = parameters.channel.links[0](z)
    variance = float(weight @ sigma**2 - (weight @ sigma) ** 2)
    trained: Metrics = {"gradient_overlap": [share] * p, "estimator_overlap": share}
    metrics: Metrics = {
        "squared_overlap": [share] * p,
        "subspace_error": float(a2.sum() * (1 - share)),
        "message_passing_error": None
        if prediction.get("message_passing_error") is None
        else float(a2.sum()),
        "risk": None if prediction.get("risk") is None else float(a2.sum() * variance),
        # If there is no outlier, the leading eigenvalue is at the edge.
        "eigenvalues": [prediction.get("bulk_edge")] * p,  # type: ignore[list-item]
    }
    return metrics | (trained if parameters.trained else {})
