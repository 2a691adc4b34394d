"""Prediction of a Boltzmann machine of sign units on spiked data, at a size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.models.boltzmann.components import drawn_components
from solvable.models.boltzmann.dynamics import ascent_path
from solvable.models.boltzmann.evolution import (
    bayes_overlap,
    bulk_edge,
    component_overlap,
    outlier,
    unit_state,
)
from solvable.models.boltzmann.parameters import ASCENT_RATE, ASCENT_START, BoltzmannParameters
from solvable.models.boltzmann.phase import Phase, phase_of


def predict(parameters: BoltzmannParameters) -> Metrics:
    """Overlaps, norm and stability; with them principal components and the Bayes-optimal line."""
    ratio = parameters.samples / parameters.dimension
    strengths = parameters.strengths
    drawn = _components(strengths, parameters, parameters.hidden_units)
    metrics: Metrics = {
        "pca_overlap": listed(drawn.mean(axis=0)),
        "bayes_overlap": [bayes_overlap(strength, ratio) for strength in strengths],
        "threshold_ratio": [strength**-2 for strength in strengths],
    }
    if parameters.steps:
        return metrics | _steps(parameters, ratio)
    phase = phase_of(strengths, ratio, parameters.hidden_units, parameters.weight_decay)
    overlap: list[float | None] = [None] * len(strengths)
    reason, norm = _too_near(phase, parameters, ratio), phase.norm
    if not reason and not phase.reason:
        overlap, reason = _overlaps(phase, parameters, ratio)
    norm, reason = None if reason else norm, reason or phase.reason
    found: Metrics = {
        "overlap": overlap,
        "norm": None if norm is None else float(norm),
        "replicon": None if phase.replicon is None else float(phase.replicon),
        "converged": None if norm is None else 1.0,
    }
    return metrics | found | ({NO_PREDICTION: reason} if reason else {})


def _components(
    strengths: tuple[float, ...], parameters: BoltzmannParameters, count: int
) -> np.ndarray:
    size = (strengths, parameters.samples, parameters.dimension, count)
    drawn = drawn_components(*size, draws=24)
    scatter = float(drawn.std(axis=0).max())
    # Near the threshold, and where spikes are nearly equal, samples differ much.
    return drawn if scatter < 0.04 else drawn_components(*size, draws=400 if scatter > 0.12 else 96)


def _too_near(phase: Phase, parameters: BoltzmannParameters, ratio: float) -> str:
    """Reason why samples of this size differ from the limit, or nothing."""
    d, c = parameters.dimension, 1 + parameters.weight_decay
    if phase.reason and phase.norm is None:
        return ""
    replicon = phase.replicon or 0.0
    # Simulated, d = 100 to 1,000: so near the instability some samples are beyond it.
    limit = 1 - 3 * d ** (-1 / 3)
    if replicon > limit:
        return (
            f"unstable in some samples: a small change grows by {replicon:.2g} in a step of message "
            f"passing (predicted at {d} dimensions: up to {max(limit, 0):.2g}). Raise dimension, "
            "sample_ratio or spike."
        )
    learnt = sorted(parameters.strengths)[::-1][: parameters.hidden_units]
    places = [outlier(strength, ratio) for strength in learnt]
    if phase.shared:
        places = places[:1]
    elif parameters.hidden_units > len(places):
        places.append(bulk_edge(ratio))
    # An eigenvalue s of the sample covariance scatters by s (2 / n)^(1/2).
    scatter = np.sqrt(2 / parameters.samples)
    if parameters.weight_decay and any(abs(s - c) < 2.5 * scatter * s for s in places):
        return (
            f"weight decay {parameters.weight_decay:g} leaves weights in some samples and none in "
            f"others (an eigenvalue of the sample covariance is near 1 + weight_decay: "
            f"{min(places, key=lambda s: abs(s - c)):.3g}). Change weight_decay, or raise dimension."
        )
    return ""


def _overlaps(
    phase: Phase, parameters: BoltzmannParameters, ratio: float
) -> tuple[list[float | None], str]:
    """Overlaps at the dimension: those of the limit, rounded as principal components are."""
    strengths, d = parameters.strengths, parameters.dimension
    overlap: list[float | None] = [None] * len(strengths)
    for spike, unit in zip(phase.spikes, phase.units, strict=True):
        limit = component_overlap(strengths[spike], ratio)
        if unit.q > 0:
            # Of the spike alone: components mix nearly equal spikes, signs separate them.
            alone = _components(strengths[spike : spike + 1], parameters, 1)
            rounding = float(alone.mean()) / limit
            overlap[spike] = min(float(unit.overlap) * rounding, 1.0)
    others = [spike for spike in range(len(strengths)) if spike not in phase.spikes]
    if others:
        drawn = _components(strengths, parameters, len(phase.spikes))
        least = drawn[:, list(phase.spikes)].min(axis=1)
        if (drawn[:, others].max(axis=1) > least).any():
            return [None] * len(strengths), (
                "spikes are so nearly equal at this dimension that fewer units may learn either. Raise "
                "dimension or hidden_units."
            )
        if parameters.algorithm == "gradient" and _trapped(phase, parameters, ratio, others):
            return [None] * len(strengths), (
                "gradient ascent from a random start may learn a weaker spike and stay there. Set "
                "algorithm=amp, which starts at the principal components, or raise hidden_units."
            )
    for spike in others:
        # m_b is pushed by noise of the samples and shrunk or kept by what the unit answers
        chance = 0.0
        for unit in phase.units:
            growth = unit.V * strengths[spike] * unit.slope
            variance = (1 - unit.overlap**2) * (1 + strengths[spike]) / d
            chance += variance / (1 - growth) ** 2
        overlap[spike] = float(np.sqrt(2 / np.pi * chance))
    return overlap, ""


def _trapped(
    phase: Phase, parameters: BoltzmannParameters, ratio: float, others: list[int]
) -> bool:
    """Whether a unit that has learnt one of the other spikes would not leave it for a found one."""
    weakest = min(unit.spike for unit in phase.units)
    for spike in others:
        unit = unit_state(
            parameters.strengths[spike], ratio, parameters.weight_decay, partner=phase.shared
        )
        if unit.V * weakest * unit.slope < 1:
            return True
    return False


def _steps(parameters: BoltzmannParameters, ratio: float) -> Metrics:
    """Overlap and norm after a given number of steps."""
    strengths = parameters.strengths
    largest = int(np.argmax(strengths))
    path = _path(strengths[largest], ratio, parameters.weight_decay, parameters.steps)
    overlap: list[float | None] = [None] * len(strengths)
    overlap[largest] = float(path[0])
    return {"overlap": overlap, "norm": float(path[1]), "replicon": None, "converged": None}


@lru_cache(maxsize=1024)
def _path(spike: float, ratio: float, weight_decay: float, steps: int) -> tuple[float, float]:
    m, q = ASCENT_START
    path = ascent_path(spike, ratio, steps, m=m, q=q, rate=ASCENT_RATE, weight_decay=weight_decay)
    return float(path.overlap[-1]), float(path.q[-1])


def chance(parameters: BoltzmannParameters, prediction: Metrics) -> Metrics:
    """Metrics of weights without direction."""
    count = min(parameters.hidden_units, len(parameters.strengths))
    random = float(np.sqrt(count / parameters.dimension))
    overlap: list[float | None] = [random] * len(parameters.strengths)
    return {"overlap": overlap, "pca_overlap": overlap, "norm": ASCENT_START[1]}
