"""Predictions for online gradient descent at finite size, averaged over random starts."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Metrics
from solvable.models.multi_index.emergence.flow import flow_step, population_flow
from solvable.models.multi_index.emergence.link import amplitudes, even_link
from solvable.models.multi_index.emergence.noise import noise_delays
from solvable.models.multi_index.emergence.parameters import EmergenceParameters
from solvable.models.multi_index.emergence.theory import (
    SgdEmergence,
    draw_overlaps,
    match_students,
    sgd_emergence,
)

# Limits of the range in which the theory is valid; refuse_noise and predict apply them.
MOST_KICK = 0.3
MOST_DIFFUSION = 0.15
MOST_INITIAL = 0.1
MOST_GROWTH = 0.5


@lru_cache(maxsize=32)
def _starts(dimension: int, features: int, width: int, decay: float, link: str) -> np.ndarray:
    """Draws (up to 512) of each feature's initial squared overlap with the student that learns it."""
    pairs = width * features
    draws = int(np.clip(1e6 / pairs, max(1.0, min(8.0, 2e7 / pairs)), 512))
    rng = random_stream("emergence-in-sgd", "starts")
    overlaps = draw_overlaps(dimension, features, width, draws, rng)
    return match_students(overlaps, amplitudes(features, decay), even_link(link))


def _independent(
    parameters: EmergenceParameters, starts: np.ndarray, time: float, *, steps: bool = True
) -> SgdEmergence:
    """Time courses of independent features from given starts, with or without finite steps."""
    p = parameters
    spare, rate = max(0, p.width - p.features), p.rate if steps else 0.0
    return sgd_emergence(
        p.strengths, starts, time, link=p.link, spare=spare, learning_rate=rate, **p.courses
    )


@lru_cache(maxsize=64)
def _courses(parameters: EmergenceParameters) -> SgdEmergence:
    """Time courses of independent features from random starts, up to the time of the parameters."""
    p = parameters
    starts = _starts(p.dimension, p.features, p.width, p.decay, p.link)
    return _independent(p, starts, p.time)


Coupling = tuple[np.ndarray, dict[str, np.ndarray]]
"""Times, and the change that pairs of students cause in the mean of each metric."""

COURSES = ("loss", "captured", "squared_overlap")


@lru_cache(maxsize=64)
def _coupling(parameters: EmergenceParameters) -> Coupling | None:
    """Mean of the flow of all pairs minus mean of independent features; None if the flow is too slow."""
    p, link = parameters, even_link(parameters.link)
    a = p.strengths
    # One pair takes 50 ns per stage. With this number of draws the flow takes a few seconds.
    draws = int(min(48, 1e8 / (4 * p.time / flow_step(a, link) * p.width * (p.width + p.features))))
    if draws < 4:
        return None
    rng = random_stream("emergence-in-sgd", "pairs")
    squares = draw_overlaps(p.dimension, p.features, p.width, draws, rng)
    cosines = np.sqrt(squares) * rng.choice([-1.0, 1.0], squares.shape)
    # Finite steps delay both theories equally, so their difference is computed without steps.
    flow = population_flow(a, cosines, link, p.time, **p.courses)
    alone = _independent(p, match_students(squares, a, link), p.time, steps=False)
    return flow.times, {
        name: getattr(flow, name) - _columns(flow.times, alone.times, getattr(alone, name))
        for name in COURSES
    }


def _until(parameters: EmergenceParameters, time: float) -> EmergenceParameters:
    """Return parameters up to the given time; points that differ only in time share their course."""
    p = parameters
    free = {"time": time, "learning_rate": p.rate, "tuned": False}
    return EmergenceParameters.model_construct(**{**dict(p), **free})


def _lone_courses(parameters: EmergenceParameters, time: float) -> SgdEmergence:
    """Time courses of independent features up to a time after most escapes."""
    p, link = parameters, even_link(parameters.link)
    k = link.information_exponent
    starts = _starts(p.dimension, p.features, p.width, p.decay, p.link)
    # From a small start the escape time is T = 1 / (k (k - 2) mu_k² a s_0^(k - 2))   (multi-index 30).
    rates = k * (k - 2) * link.energies[k // 2] * p.strengths
    escaped = rates * np.median(starts, axis=0) ** (k / 2 - 1)
    if not (escaped > 0).any():
        # If few students learn different features in each draw, all medians over draws are 0.
        escaped = np.median(np.max(rates * starts ** (k / 2 - 1), axis=1), keepdims=True)
    slowest = np.max(1 / escaped[escaped > 0])
    horizon = max(float(slowest), time)
    return _courses(_until(p, 4.0 ** (np.ceil(np.log(horizon) / np.log(4)) + 1)))


def refuse_noise(parameters: EmergenceParameters) -> None:
    """Raise InvalidParameter if neglected effects of noise or of initial norms are large."""
    p, link = parameters, even_link(parameters.link)
    initial = p.width * p.initial_norm**2
    if initial > MOST_INITIAL:
        raise InvalidParameter(
            f"initial_norm is {p.initial_norm:g}, so the initial network of {p.width} students has a "
            f"mean square of {initial:.2g}; allowed for a prediction: up to {MOST_INITIAL}. Set "
            f"initial_norm <= {np.sqrt(MOST_INITIAL / p.width):.2g}"
        )
    # Gradient noise makes the students' squared norms n grow as dn/dt = kappa (d - 1) n. Norms of
    # students that have learned a feature relax at the rate 4 a.
    growth = p.rate / p.batch * link.activity * (1 + p.noise) * p.dimension
    if growth > MOST_GROWTH:
        raise InvalidParameter(
            f"batch is {p.batch} at a learning rate of {p.rate:.3g}: noise of the gradient makes the "
            f"norms of students grow at a rate of {growth:.2g}; allowed for a prediction: up to "
            f"{MOST_GROWTH}. Set batch >= {int(np.ceil(p.batch * growth / MOST_GROWTH))}"
        )
    # Mean squared errors are stable while (eta / B) d E sigma'⁴ / E sigma'² < 2.
    kick = p.rate / p.batch * p.dimension * link.kick
    if kick > MOST_KICK:
        raise InvalidParameter(
            f"batch is {p.batch} at a learning rate of {p.rate:.3g}: single samples of the link "
            f"{p.link} move the weights so far that training may blow up ({kick:.2g}; allowed for a "
            f"prediction: up to {MOST_KICK}). Set batch >= {int(np.ceil(p.batch * kick / MOST_KICK))}"
        )


def _displacement(parameters: EmergenceParameters, courses: SgdEmergence, time: float) -> float:
    """Change of overlaps that gradient noise causes before escape, relative to the initial overlaps."""
    p = parameters
    starts = _starts(p.dimension, p.features, p.width, p.decay, p.link)
    until = np.minimum(courses.escape_times, time)
    spent = np.interp(until, courses.times, courses.diffusion)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(starts > 0, spent / starts, np.nan)
    known = (starts > 0).any(axis=0)
    return float(np.sqrt(np.nanmedian(shares[:, known], axis=0).max()))


def _noise_delay(
    parameters: EmergenceParameters, courses: SgdEmergence, time: float
) -> list[float | None]:
    """Mean relative delay by gradient noise of each feature, over the starts from which it escapes."""
    p, link = parameters, even_link(parameters.link)
    starts = _starts(p.dimension, p.features, p.width, p.decay, p.link)
    delays: list[float | None] = []
    for place, strength in enumerate(p.strengths):
        times = courses.escape_times[:, place]
        known = times <= time
        # The mean rate of isotropic noise up to the escape.
        kappa = np.interp(times[known], courses.times, courses.diffusion) / times[known]
        late = noise_delays(
            strength, starts[known, place], link,
            kappa=kappa, gradient_noise=p.rate / p.batch, dimension=p.dimension,
        )  # fmt: skip
        delays.append(float(np.mean(late / times[known])) if known.any() else None)
    return delays


def predict(parameters: EmergenceParameters) -> Metrics:
    """Predict means over random starts: independent features plus a correction for pairs of students."""
    (metrics,) = curve(parameters, np.array([parameters.time]))
    moved = metrics["displacement"]
    assert isinstance(moved, float)
    if moved > MOST_DIFFUSION:
        p, factor = parameters, (moved / MOST_DIFFUSION) ** 2
        raise InvalidParameter(
            f"batch is {p.batch} at a learning rate of {p.rate:.3g}: noise of the gradient moves "
            f"overlaps by {moved:.2g} times their start before features escape; allowed for a "
            f"prediction: up to {MOST_DIFFUSION}. Set batch >= {int(np.ceil(p.batch * factor))}"
        )
    return metrics


def curve(parameters: EmergenceParameters, coordinates: np.ndarray) -> list[Metrics]:
    """Predict all times of a curve from one integration."""
    # A tuned learning rate depends on the time. Here all times have the learning rate of the setting's
    # time. A point's own prediction does not depend on this.
    p, latest = parameters, float(np.max(coordinates))
    refuse_noise(p)
    a, courses = p.strengths, _lone_courses(p, latest)
    # The number of flow steps is a power of two, so that nearby times share one flow.
    step = flow_step(a, even_link(p.link))
    pairs = _coupling(_until(p, step * 2.0 ** max(0.0, np.ceil(np.log2(latest / step)))))
    lines = {}
    for name in COURSES:
        lines[name] = _columns(coordinates, courses.times, getattr(courses, name))
        if pairs is not None:
            lines[name] = lines[name] + _columns(coordinates, pairs[0], pairs[1][name])
    median = np.median(courses.escape_times, axis=0)
    common: Metrics = {
        "escape_time": [float(t) if np.isfinite(t) else None for t in median],
        "width_floor": float(0.5 * np.sum(a[p.width :] ** 2)),
        "coupling": float(pairs is not None),
    }
    return [
        {
            "loss": max(float(lines["loss"][place]), 0.0),
            "captured": lines["captured"][place].tolist(),
            "squared_overlap": np.clip(lines["squared_overlap"][place], 0, 1).tolist(),
            **common,
            "samples": p.batch * time / p.model_copy(update={"time": time}).rate,
            "displacement": _displacement(p, courses, float(time)),
            "noise_delay": _noise_delay(p, courses, float(time)),
        }
        for place, time in enumerate(coordinates)
    ]


def _columns(times: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Interpolate values of shape (T,) or (T, P) in time."""
    if values.ndim == 1:
        return np.asarray(np.interp(times, known, values))
    return np.stack([np.interp(times, known, column) for column in values.T], axis=1)


def chance(parameters: EmergenceParameters, prediction: Metrics) -> Metrics:
    """Return the metrics of a network whose output is zero."""
    return {
        "loss": 0.5,
        "captured": [0.0] * parameters.features,
        "squared_overlap": [1 / parameters.dimension] * parameters.features,
        "escape_time": [None] * parameters.features,
    }
