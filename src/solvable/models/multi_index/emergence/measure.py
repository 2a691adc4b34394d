"""Measure one replicate of online gradient descent, and compute two theories from its start."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.frame.points import Metrics, listed
from solvable.models.multi_index.emergence.descent import population_descent
from solvable.models.multi_index.emergence.learner import captured, draw_student, train
from solvable.models.multi_index.emergence.link import even_link
from solvable.models.multi_index.emergence.parameters import EmergenceParameters
from solvable.models.multi_index.emergence.theory import match_students, sgd_emergence

MOST_PAIRS = 1e9
"""Largest number of pairs times steps in a replicate's descent, about a minute of work."""


def draw_teacher(
    parameters: EmergenceParameters, rng: np.random.Generator
) -> Mapping[str, np.ndarray]:
    """Directions and amplitudes of the teacher; inputs are isotropic, so the directions are axes."""
    return {
        "directions": np.eye(parameters.dimension)[:, : parameters.features],
        "amplitudes": parameters.strengths,
    }


def measure(parameters: EmergenceParameters, rng: np.random.Generator) -> Metrics:
    """Train one network and compute both theories; measured metrics are None if the weights diverge."""
    link, a = even_link(parameters.link), parameters.strengths
    start = draw_student(parameters, rng)
    names = ("loss", "captured", "squared_overlap", "escape_time", "flow_loss")
    metrics: Metrics = dict.fromkeys(names)
    for name in names[1:4]:
        metrics[name] = [None] * a.size
    cosines = start[:, : a.size] / np.sqrt(parameters.initial_norm)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # weights may diverge
        metrics |= _theories(parameters, cosines)
        student = train(start, parameters, rng)
    if student is None:
        return metrics
    return metrics | {
        "loss": student.loss(link, a),
        "captured": captured(student.weights, link, a).tolist(),
        "squared_overlap": student.squared_overlaps(a.size).max(axis=0).tolist(),
        "escape_time": listed(student.escape_times),
    }


def _theories(parameters: EmergenceParameters, cosines: np.ndarray) -> Metrics:
    """Compute both theories from this replicate's start: independent features, and all pairs."""
    p, link = parameters, even_link(parameters.link)
    a = p.strengths
    starts = match_students(cosines[None] ** 2, a, link)
    spare = max(0, p.width - p.features)
    settings = p.courses | {"learning_rate": p.rate}
    independent = sgd_emergence(a, starts, p.time, link=link, spare=spare, **settings)
    found: Metrics = {
        "ode_loss": listed(independent.loss)[-1],
        "ode_captured": listed(independent.captured[-1]),
        "ode_escape_time": listed(independent.escape_times[0]),
    }
    if p.steps * p.width * (p.width + p.features) <= MOST_PAIRS:
        descent = population_descent(a, cosines, link, p.steps, **settings)
        found |= {
            "flow_loss": listed(np.array([descent.loss]))[0],
            "flow_escape_time": listed(descent.escape_times),
        }
    return found
