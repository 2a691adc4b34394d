"""Predictions for a Boltzmann machine with sign units on spiked data, in a finite dimension."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.boltzmann.at_dimension import component_overlaps, overlaps_of, too_near
from solvable.models.boltzmann.dynamics import Moments, ascent_path, message_path, start_moments
from solvable.models.boltzmann.evolution import bayes_overlap
from solvable.models.boltzmann.parameters import ASCENT_RATE, Algorithm, BoltzmannParameters
from solvable.models.boltzmann.partition import predicted_gap
from solvable.models.boltzmann.phase import phase_of


def predict(parameters: BoltzmannParameters) -> Metrics:
    """Predict the machine's overlaps, norm and replicon, the components' overlaps and the Bayes bound."""
    ratio = parameters.samples / parameters.dimension
    strengths = parameters.strengths
    drawn = component_overlaps(strengths, parameters, parameters.hidden_units)
    metrics: Metrics = {
        "pca_overlap": listed(drawn.mean(axis=0)),
        "bayes_overlap": [bayes_overlap(strength, ratio) for strength in strengths],
        "threshold_ratio": [strength**-2 for strength in strengths],
        "threshold_spike": ratio**-0.5,
        **dict.fromkeys(("overlap_matrix", "partition_gap", "replicon", "converged")),
    }
    if parameters.steps:
        return metrics | _steps(parameters, ratio)
    phase = phase_of(strengths, ratio, parameters.hidden_units, parameters.weight_decay)
    overlap: list[float | None] = [None] * len(strengths)
    reason, norm = too_near(phase, parameters, ratio), phase.norm
    if not reason and not phase.reason:
        overlap, reason = overlaps_of(phase, parameters, ratio)
    norm, reason = None if reason else norm, reason or phase.reason
    fitted: Metrics = {
        "overlap": overlap,
        "norm": None if norm is None else float(norm),
        "partition_gap": None if norm is None else predicted_gap(phase, parameters.dimension),
        "replicon": None if phase.replicon is None else float(phase.replicon),
        "converged": None if norm is None else 1.0,
    }
    return metrics | fitted | ({NO_PREDICTION: reason} if reason else {})


def _steps(parameters: BoltzmannParameters, ratio: float) -> Metrics:
    """Predict the moments after a given number of steps (boltzmann 14 to boltzmann 16)."""
    moments = _path(
        parameters.strengths, ratio, parameters.hidden_units, parameters.weight_decay,
        parameters.algorithm, parameters.steps,
    )  # fmt: skip
    return {
        "overlap": listed(moments.span_cosines),
        "overlap_matrix": listed(moments.cosines.ravel()),
        "norm": float(np.trace(moments.Q)),
    }


@lru_cache(maxsize=1024)
def _path(
    strengths: tuple[float, ...],
    ratio: float,
    hidden_units: int,
    weight_decay: float,
    algorithm: Algorithm,
    steps: int,
) -> Moments:
    start = start_moments(strengths, hidden_units)
    if algorithm == "amp":
        path = message_path(strengths, ratio, steps, start, weight_decay=weight_decay)
    else:
        path = ascent_path(
            strengths, ratio, steps, start, rate=ASCENT_RATE, weight_decay=weight_decay
        )
    return path[-1]


def chance(parameters: BoltzmannParameters, prediction: Metrics) -> Metrics:
    """Metrics of random weights, which have no overlap with the spikes beyond chance."""
    count = min(parameters.hidden_units, len(parameters.strengths))
    random = float(np.sqrt(count / parameters.dimension))
    overlap: list[float | None] = [random] * len(parameters.strengths)
    return {
        "overlap": overlap,
        "pca_overlap": overlap,
        "overlap_matrix": [0.0] * (parameters.hidden_units * len(parameters.strengths)),
        "norm": 1.0,
        # Gaussian weights of norm 1 have the fourth moment 3   (boltzmann 17)
        "partition_gap": 1 / (4 * parameters.dimension),
    }
