"""Scaling laws of the population flow and of online descent, as claims across points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvable.frame.conditions import above
from solvable.frame.estimates import Estimate, Slope, grouped_but
from solvable.frame.points import Point
from solvable.spectra.roots import bracketed_root


def front(setting: Any) -> float:
    """Rank k, a real number, of the feature that is half learned at the time of the setting."""
    # t = log(lambda_k / g_0) / (2 lambda_k) with lambda_k = k^-a and g_0 = sigma²  (quadratic 35):
    # l = 2 t lambda_k solves l - log l = -log(2 t g_0).
    start = -np.log(2 * setting.time * setting.initial_scale**2)
    if start <= 1:
        return float("nan")
    exponent = bracketed_root(lambda place: place - np.log(place) - start, 1.0, 2 * start + 10)
    return float((2 * setting.time / exponent) ** (1 / setting.exponent))


def in_time(point: Point) -> bool:
    """Return True if at least two features are learned, but few compared with all features and units."""
    setting = point.setting
    few = min(setting.features, setting.dimension) / 8
    small = setting.initial_scale <= 0.01 and setting.exponent > 0.5
    return bool(small and 2 <= front(setting) <= min(few, setting.width / 3))


def at_floor(point: Point) -> bool:
    """Return True if a narrow network has learned as many features as it has units."""
    setting = point.setting
    few = 3 <= setting.width <= min(setting.features, setting.dimension) / 8
    # Twice the time at which the last of these features is half learned.
    last = front(setting) >= 2 ** (1 / setting.exponent) * setting.width
    return bool(few and last and setting.initial_scale <= 0.01)


def diverged(point: Point) -> np.ndarray:
    """Return 1 for each replicate whose online descent diverged, and 0 for the others."""
    shares = point.values("online_captured").reshape(point.replicates, -1)
    return (~np.isfinite(shares).all(axis=1)).astype(float)


def smallest_batch(points: Sequence[Point]) -> float:
    """Samples in each step below which more than half of all replicates diverge; NaN if unknown."""
    rows = sorted(points, key=lambda point: -point.setting.batch)
    share = np.array([diverged(point).mean() for point in rows])
    logs = np.log([point.setting.batch for point in rows])
    for k in range(1, len(rows)):
        if share[k - 1] <= 0.5 < share[k]:
            part = (0.5 - share[k - 1]) / (share[k] - share[k - 1])
            return float(np.exp(logs[k - 1] + part * (logs[k] - logs[k - 1])))
    return float("nan")


def power_of_dimension(points: Sequence[Point]) -> tuple[float, float] | None:
    """Slope of the logarithm of the smallest batch of a descent that stays finite, against log d."""
    groups = grouped_but(points, ("batch",))
    needed = [(group[0].setting.dimension, smallest_batch(group)) for group in groups]
    table = np.log(np.array(needed, dtype=float).reshape(-1, 2))
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) < 3 or np.ptp(table[:, 0]) < np.log(3.9):
        return None
    return float(np.polyfit(table[:, 0], table[:, 1], 1)[0]), 1.0


SCALING_CLAIMS = (
    Slope(
        "time-exponent",
        "The risk falls with time as k^(1 - 2a), where k ~ (t / log t)^(1/a) features are learned.",
        "derivations/quadratic (35), (36)",
        metric="risk",
        expected=lambda point: front(point.setting) ** (1 - 2 * point.setting.exponent),
        along="time",
        where=in_time,
        span=3.9,
        within=0.15,
        because="The sum over few unlearned features is not yet an integral.",
        power=0.25,
        missing="no curve has three times, a factor of 4 apart, with 2 to an eighth of the features "
        "learned; run with --preset scaling",
    ),
    Slope(
        "width-exponent",
        "At late times the risk falls with the width r as r^(1 - 2a).",
        "derivations/quadratic (36)",
        metric="risk",
        expected=lambda point: point.setting.width ** (1 - 2 * point.setting.exponent),
        along="width",
        where=at_floor,
        span=3.0,
        within=0.2,
        because="The sum over the features beyond r is (r + 1/2)^(1 - 2a) to leading order.",
        power=0.25,
        missing="no three widths, a factor of 3 apart and below an eighth of the features, have reached "
        "their floor; run with --preset scaling",
    ),
    Estimate(
        "samples-and-dimension",
        "The smallest number of samples in a step with which online descent stays finite is "
        "proportional to d.",
        "derivations/quadratic (37)",
        estimate=power_of_dimension,
        apart=("batch", "dimension"),
        fewest=9,
        where={"batch": above(0)},
        within=0.15,
        because="Gradients of few samples have heavy tails, and numbers of samples are integers.",
        power=0.3,
        missing="no three dimensions, a factor of 4 apart, were run with several batches; run with "
        "--preset samples",
    ),
)
