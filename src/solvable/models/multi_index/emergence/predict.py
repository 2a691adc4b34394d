"""Prediction of online gradient descent at a size: features from the law of their random starts."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Metrics
from solvable.models.multi_index.emergence.link import amplitudes, even_link
from solvable.models.multi_index.emergence.parameters import EmergenceParameters
from solvable.models.multi_index.emergence.theory import (
    Emergence,
    draw_overlaps,
    follow_features,
    match_students,
)

MOST_KICK = 0.3
MOST_DIFFUSION = 0.15
MOST_INITIAL = 0.1


@lru_cache(maxsize=32)
def _starts(dimension: int, features: int, width: int, decay: float, link: str) -> np.ndarray:
    """Squared overlaps from which the features are learned, for as many draws as are quick."""
    draws = int(np.clip(1e6 / (width * features), 8, 512))
    rng = random_stream("emergence-in-sgd", "starts")
    overlaps = draw_overlaps(dimension, features, width, draws, rng)
    return match_students(overlaps, amplitudes(features, decay), even_link(link))


@lru_cache(maxsize=64)
def _courses(parameters: EmergenceParameters) -> Emergence:
    """Courses of the features up to the time of the parameters."""
    p = parameters
    return follow_features(
        amplitudes(p.features, p.decay),
        _starts(p.dimension, p.features, p.width, p.decay, p.link),
        even_link(p.link),
        p.time,
        initial_norm=p.initial_norm,
        spare=max(0, p.width - p.features),
        dimension=p.dimension,
        gradient_noise=p.learning_rate / p.batch,
        label_noise=p.noise,
    )


def _until(parameters: EmergenceParameters, time: float) -> Emergence:
    """Courses beyond a time and most escapes, shared by the times of a study."""
    p, link = parameters, even_link(parameters.link)
    k = link.information_exponent
    typical = np.median(_starts(p.dimension, p.features, p.width, p.decay, p.link), axis=0)
    # T = 1 / (k (k - 2) mu_k^2 a s_0^(k - 2)) of a small start
    rates = k * (k - 2) * link.energies[k // 2] * amplitudes(p.features, p.decay)
    slowest = np.max(1 / (rates * typical ** (k / 2 - 1))[typical > 0])
    horizon = max(float(slowest), time)
    horizon = 4.0 ** (np.ceil(np.log(horizon) / np.log(4)) + 1)
    free = {"time": horizon, "batch": 1, "learning_rate": p.learning_rate / p.batch}
    return _courses(EmergenceParameters.model_construct(**{**dict(p), **free}))


def refuse_noise(parameters: EmergenceParameters) -> None:
    """InvalidParameter where courses depend on what the theory leaves out."""
    p, link = parameters, even_link(parameters.link)
    initial = p.width * p.initial_norm**2
    if initial > MOST_INITIAL:
        raise InvalidParameter(
            f"initial_norm is {p.initial_norm:g}, so that the {p.width} students have a mean square of "
            f"{initial:.2g} before they learn; predicted: up to {MOST_INITIAL}. Set initial_norm <= "
            f"{np.sqrt(MOST_INITIAL / p.width):.2g}"
        )
    # Mean squares of errors are stable while eta / B (d E sigma'^4) / E sigma'^2 < 2
    kick = p.learning_rate / p.batch * p.dimension * link.kick
    if kick > MOST_KICK:
        raise InvalidParameter(
            f"batch is {p.batch} at learning_rate = {p.learning_rate:g}: single samples of the link "
            f"{p.link} move the weights so far that training may blow up ({kick:.2g}; predicted: up to "
            f"{MOST_KICK}). Set batch >= {int(np.ceil(p.batch * kick / MOST_KICK))}"
        )


def _displacement(parameters: EmergenceParameters, courses: Emergence) -> float:
    """Deviation that noise gives to overlaps before they escape, over the start."""
    p = parameters
    starts = _starts(p.dimension, p.features, p.width, p.decay, p.link)
    until = np.minimum(courses.escape_times, p.time)
    spent = np.interp(until, courses.times, courses.diffusion)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(starts > 0, spent / starts, np.nan)
    known = (starts > 0).any(axis=0)
    return float(np.sqrt(np.nanmedian(shares[:, known], axis=0).max()))


def predict(parameters: EmergenceParameters) -> Metrics:
    """Means over random starts of what independent features become."""
    p = parameters
    refuse_noise(p)
    courses = _until(p, p.time)
    moved = _displacement(p, courses)
    if moved > MOST_DIFFUSION:
        factor = (moved / MOST_DIFFUSION) ** 2
        raise InvalidParameter(
            f"batch is {p.batch} at learning_rate = {p.learning_rate:g}: noise of the gradient moves "
            f"overlaps by {moved:.2g} of their start before features escape; predicted: up to "
            f"{MOST_DIFFUSION}. Set batch >= {int(np.ceil(p.batch * factor))}"
        )
    return {**_at(p, courses, p.time), "displacement": moved}


def _at(parameters: EmergenceParameters, courses: Emergence, time: float) -> Metrics:
    a = amplitudes(parameters.features, parameters.decay)
    median = np.median(courses.escape_times, axis=0)
    loss = float(np.interp(time, courses.times, courses.loss))
    return {
        "loss": loss,
        "captured": _interpolated(courses, courses.captured, time),
        "squared_overlap": _interpolated(courses, courses.squared_overlap, time),
        "escape_time": [float(t) if np.isfinite(t) else None for t in median],
        "width_floor": float(0.5 * np.sum(a[parameters.width :] ** 2)),
        "samples": float(time / parameters.learning_rate * parameters.batch),
    }


def _interpolated(courses: Emergence, values: np.ndarray, time: float) -> list[float | None]:
    return [float(np.interp(time, courses.times, column)) for column in values.T]


def curve(parameters: EmergenceParameters, coordinates: np.ndarray) -> list[Metrics]:
    """Predictions along time from one integration."""
    refuse_noise(parameters)
    courses = _until(parameters, float(np.max(coordinates)))
    moved = _displacement(parameters, courses)
    return [{**_at(parameters, courses, float(t)), "displacement": moved} for t in coordinates]


def chance(parameters: EmergenceParameters, prediction: Metrics) -> Metrics:
    """Metrics of a student that is zero."""
    return {
        "loss": 0.5,
        "captured": [0.0] * parameters.features,
        "squared_overlap": [1 / parameters.dimension] * parameters.features,
        "escape_time": [None] * parameters.features,
    }
