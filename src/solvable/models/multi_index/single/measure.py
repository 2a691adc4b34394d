"""Measure one replicate of a single-index model: draw data, estimate the direction, score it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.frame.points import Metrics
from solvable.message_passing.channels import additive_output
from solvable.message_passing.loop import (
    Denoiser,
    GaussianSensors,
    MessagePassingResult,
    Start,
    settle,
)
from solvable.message_passing.outputs import Messages
from solvable.message_passing.preimages import PreimagePosterior
from solvable.models.multi_index.best_overlaps import direction_output
from solvable.models.multi_index.overlaps import mapped_labels, optimal_map
from solvable.models.multi_index.preprocessing import Lamp, scalar_directions
from solvable.models.multi_index.single.parameters import SingleIndexParameters
from solvable.models.multi_index.single.theory import INFORMED, optimal_overlap
from solvable.models.multi_index.target import draw_target
from solvable.operators.labels import apply_label_map

METRICS = ("squared_overlap", "informed_overlap", "outlier", "bulk_edge", "converged")
"""Metrics of a replicate; a metric is None if it is not defined for the estimator."""


class _Sample(NamedTuple):
    """Samples, true direction and random stream of one replicate."""

    X: np.ndarray
    y: np.ndarray
    direction: np.ndarray
    rng: np.random.Generator


def measure(parameters: SingleIndexParameters, rng: np.random.Generator) -> Metrics:
    """Return the metrics measured in one replicate."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng)
    sample = _Sample(X, y, target.directions[:, 0], rng)
    empty: Metrics = dict.fromkeys(METRICS)
    if parameters.estimator == "amp":
        return empty | _message_passing(parameters, sample)
    if parameters.linear:
        # linear estimator w = sum_i m(y_i) x_i   (multi-index 5)
        found = X.T @ label_moments(parameters, y)[0]
        return empty | {"squared_overlap": overlap(found, sample.direction)}
    if parameters.estimator == "lamp":
        return empty | _lamp(parameters, sample)
    return empty | _spectral(parameters, sample)


def label_moments(
    parameters: SingleIndexParameters, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First moment m(y) and second moment G(y) at the observed labels, each of shape (n,)."""
    moments = parameters.moments
    if parameters.noise == 0:
        # Near an extremum of the link, a cell of the label grid may contain nodes of only one preimage,
        # which biases the moments. If a label has finitely many preimages, they give exact moments.
        try:
            outputs = PreimagePosterior(additive_output(parameters.channel), y)
            found = outputs(np.zeros((len(y), 1)), np.eye(1))
        except InvalidParameter:
            return moments.first_at(y)[:, 0], moments.at(y)[:, 0]
        mean = found.mean[:, 0]
        return mean, found.covariance[:, 0, 0] + mean**2 - 1
    return moments.first_at(y)[:, 0], moments.at(y)[:, 0]


def overlap(found: np.ndarray, direction: np.ndarray) -> float:
    """Squared overlap of an estimate with the true unit direction; 0 if the estimate is zero."""
    return float((found @ direction) ** 2 / max(float(found @ found), 1e-300))


def _spectral(parameters: SingleIndexParameters, sample: _Sample) -> Metrics:
    """Overlap and eigenvalue of the leading eigenvector; the next eigenvalue is the edge."""
    X, y, direction, rng = sample
    moments = parameters.moments
    if parameters.estimator == "optimal":
        T, unit = optimal_map(label_moments(parameters, y)[1]), 1.0
    else:
        T = apply_label_map(y, parameters.estimator)  # type: ignore[arg-type]
        # The eigenvalues belong to (1/n) sum T x x^T. A negative strength gives an outlier at the lower
        # end.
        strength = moments.probabilities @ (
            mapped_labels(moments, parameters.estimator) * moments.second[:, 0]
        )
        unit = float(np.copysign(X.shape[1] / len(X), strength))
    values, vectors = scalar_directions(X, np.sign(unit) * T, 2, rng=rng)
    return {
        "squared_overlap": overlap(vectors[:, 0], direction),
        "outlier": unit * float(values[0]),
        "bulk_edge": unit * float(values[1]),
    }


def _lamp(parameters: SingleIndexParameters, sample: _Sample) -> Metrics:
    """Overlap of LAMP, eigenvalue of largest real part, and median of the next eigenvalues' moduli."""
    X, y, direction, rng = sample
    G = label_moments(parameters, y)[1]
    lamp = Lamp(X, G, rng)
    outlier, found = lamp.leading()
    # A single label of large G may put an eigenvalue outside the disc; the median ignores it.
    moduli = lamp.moduli(min(6, len(X) - 2))
    others = moduli[moduli < 0.999 * outlier] if outlier >= 0.999 * moduli[0] else moduli
    return {
        "squared_overlap": overlap(found, direction),
        "outlier": outlier,
        "bulk_edge": float(np.median(others)) if others.size else None,
    }


def _message_passing(parameters: SingleIndexParameters, sample: _Sample) -> Metrics:
    """Overlaps of Bayes message passing from a spectral start and from a start near the direction."""
    X, y, direction, rng = sample
    n, d = X.shape
    sensors = GaussianSensors(X)
    messages = direction_output(parameters.channel).messages(y)
    nothing = Start.nothing(sensors, n)
    start = nothing if parameters.linear else warm_start(parameters, X, y, rng)
    truth = direction[:, None] * np.sqrt(d)
    # The start near the direction is independent of the samples, so its messages are 0.
    near = INFORMED * truth + np.sqrt(INFORMED * (1 - INFORMED)) * rng.standard_normal((d, 1))
    informed = Start(near, np.array([[1 - INFORMED]]), np.zeros((n, 1)))

    def denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = parameters.entries.denoise(b, float(A[0, 0]))
        return mean, np.array([[variance.mean()]])

    found, best = (settled(sensors, messages, s, denoiser) for s in (start, informed))
    return {
        "squared_overlap": None if found is None else overlap(found.estimate[:, 0], direction),
        "informed_overlap": None if best is None else overlap(best.estimate[:, 0], direction),
        "converged": float(found is not None),
    }


def warm_start(
    parameters: SingleIndexParameters, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Start:
    """Start at the best label map's eigenvector, with the messages of this linear fixed point."""
    d = X.shape[1]
    T = optimal_map(label_moments(parameters, y)[1])
    vectors = scalar_directions(X, T, 1, rng=rng)[1]
    # The start has an overlap of at least 0.02, because 0 is a fixed point of message passing.
    q = max(optimal_overlap(parameters.moments, len(X) / d), 0.02)
    h = np.sqrt(q * d) * vectors
    # start h = sqrt(q d) w, V = 1 - q, g_old = T* (X h)   (multi-index 12)
    return Start(h, np.array([[1 - q]]), T[:, None] * (X @ h) / np.sqrt(d))


def settled(
    sensors: GaussianSensors, messages: Messages, start: Start, denoiser: Denoiser
) -> MessagePassingResult | None:
    """Fixed point of message passing; a second attempt uses more damping; None if both fail."""
    # With damping 0.3 the link he2 circles for n/d from 50 on; with 0.5 it settles in about ten steps.
    schedule = ((0.5, 300), (0.8, 600))
    try:
        return settle(
            sensors, messages, start, schedule=schedule, tolerance=1e-3, denoiser=denoiser
        )
    except NotConverged:
        return None
