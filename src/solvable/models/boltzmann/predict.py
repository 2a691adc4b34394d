"""Predictions for a Boltzmann machine with sign units on spiked data, in a finite dimension."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.boltzmann.at_dimension import component_overlaps, overlaps_of, too_near
from solvable.models.boltzmann.dynamics import ascent_path
from solvable.models.boltzmann.evolution import bayes_overlap
from solvable.models.boltzmann.parameters import ASCENT_RATE, ASCENT_START, BoltzmannParameters
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
        "replicon": None if phase.replicon is None else float(phase.replicon),
        "converged": None if norm is None else 1.0,
    }
    return metrics | fitted | ({NO_PREDICTION: reason} if reason else {})


def _steps(parameters: BoltzmannParameters, ratio: float) -> Metrics:
    """Predict overlap and norm after a given number of steps (boltzmann 14, boltzmann 15)."""
    strengths = parameters.strengths
    largest = int(np.argmax(strengths))
    m, q = _path(strengths[largest], ratio, parameters.weight_decay, parameters.steps)
    overlap: list[float | None] = [None] * len(strengths)
    overlap[largest] = float(m / np.sqrt(q))
    return {"overlap": overlap, "norm": q, "replicon": None, "converged": None}


@lru_cache(maxsize=1024)
def _path(spike: float, ratio: float, weight_decay: float, steps: int) -> tuple[float, float]:
    m, q = ASCENT_START
    path = ascent_path(spike, ratio, steps, m=m, q=q, rate=ASCENT_RATE, weight_decay=weight_decay)
    return float(path[0][-1]), float(path[1][-1])


def chance(parameters: BoltzmannParameters, prediction: Metrics) -> Metrics:
    """Metrics of random weights, which have no overlap with the spikes beyond chance."""
    count = min(parameters.hidden_units, len(parameters.strengths))
    random = float(np.sqrt(count / parameters.dimension))
    overlap: list[float | None] = [random] * len(parameters.strengths)
    return {"overlap": overlap, "pca_overlap": overlap, "norm": ASCENT_START[1]}
