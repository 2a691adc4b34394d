"""Figures of single-index models: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from solvable.frame.conditions import covers, one_of
from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.multi_index.single.claims import (
    SHOWS_ALGORITHM,
    algorithm_threshold,
    information_threshold,
    shows_information,
)
from solvable.plots.figure import Marker


def at_rest(point: Point) -> np.ndarray:
    """Overlaps of replicates in which message passing converged; all overlaps if few converged."""
    values = point.values("squared_overlap")
    settled = np.isfinite(values)
    return values[settled] if 2 * settled.sum() >= values.size else values


def thresholds(curves: Sequence[Curve]) -> list[Marker]:
    """Return vertical lines at the algorithmic and the information-theoretic threshold."""
    found: list[Marker] = []
    for name, label in (
        ("threshold_ratio", "algorithms"),
        ("information_threshold_ratio", "information"),
    ):
        places = [
            float(point.predicted(name))
            for curve in curves
            for point in curve.points[:1]
            if not point.refused and point.prediction.get(name) is not None
        ]
        inside = [x for x in places if curves[0].grid[0] < x < curves[0].grid[-1]]
        # The lowest threshold is the threshold of the best estimator.
        if inside and min(inside) == min(places):
            found.append(Marker(min(inside), label, len(found)))
    if len(found) == 2 and abs(found[0].x - found[1].x) < 0.01 * found[0].x:
        return [replace(found[0], label="algorithms and information")]
    return found


def mean_threshold(
    shows: Callable[[Point], bool], measure: Callable[[Point], np.ndarray]
) -> Callable[[Sequence[Point]], tuple[float, float]]:
    """Return the function that averages measured thresholds over n/d, with its standard error."""

    def reduce(points: Sequence[Point]) -> tuple[float, float]:
        values = [measure(point) for point in points if not point.refused and shows(point)]
        if not values:
            return np.nan, np.nan
        means = np.mean(values, axis=0)  # one mean for each replicate
        error = means.std(ddof=1) / np.sqrt(means.size) if means.size > 1 else np.nan
        return float(means.mean()), float(error)

    return reduce


def of_estimator(name: str) -> Callable[[Curve, str, np.ndarray], np.ndarray]:
    """Return the function that leaves out the theory line of curves of another estimator."""
    return lambda curve, _, line: (
        line if curve.setting.estimator == name else np.full_like(line, np.nan)
    )


PANELS = (
    Panel(
        "overlap",
        "Overlap of each estimator with the direction",
        "squared overlap with the direction",
        [Trace("squared_overlap", "", value=at_rest)],
        "Squared overlap of each estimator against samples per dimension. Dashed: largest overlap of any "
        "estimator. Vertical lines: thresholds of algorithms and of any estimator. For message passing "
        "the mean is over the samples on which it converges, shown if these are at least half.",
        markers=thresholds,
        overlay=("estimator",),
        once=[Trace("best_overlap", "best possible", measured=False, dashed=True, colour=7)],
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "spectrum",
        "Outlier and edge of the spectrum",
        "eigenvalue",
        [Trace("outlier", "outlier"), Trace("bulk_edge", "edge")],
        "For the best label map the outlier stays at 1 while the edge decreases. For other maps the "
        "outlier separates from the edge.",
        when={"estimator": one_of("optimal", "tanh", "square", "identity"), "linear": False},
    ),
    Panel(
        "disc",
        "Outlier and disc of linearised message passing",
        "modulus of the eigenvalue",
        [Trace("outlier", "outlier"), Trace("bulk_edge", "radius of the disc")],
        "The outlier is n/d divided by the threshold. The radius of the disc is its square root.",
        when={"estimator": "lamp", "linear": False},
        y_scale="log",
    ),
    Panel(
        "good-start",
        "Message passing from two starts",
        "squared overlap with the direction",
        [
            Trace("squared_overlap", "spectral start"),
            Trace("informed_overlap", "start near the direction"),
        ],
        "Where the two differ, the samples determine the direction but no known efficient algorithm "
        "finds it.",
        when={"estimator": "amp"},
        markers={"threshold_ratio": "algorithms", "information_threshold_ratio": "information"},
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "noise",
        "Samples against noise, for algorithms and for any method",
        "sample ratio n/d",
        [
            Trace(
                "threshold_ratio",
                "threshold",
                shown=of_estimator("optimal"),
                reduce=mean_threshold(partial(covers, SHOWS_ALGORITHM), algorithm_threshold),
            ),
            Trace(
                "information_threshold_ratio",
                "any method",
                dashed=True,
                shown=of_estimator("amp"),
                reduce=mean_threshold(shows_information, information_threshold),
            ),
        ],
        "Threshold of the best label map (solid), which grows as a power of the noise, and of any method "
        "(dashed), in proportion to the noise. Points: from measured overlaps, for any method those of "
        "message passing that starts near the direction.",
        along=Axis("noise", "noise variance", resolution=9, margin=1.2),
        overlay=("link", "estimator"),
        when={"estimator": one_of("optimal", "amp"), "linear": False},
        y_scale="log",
    ),
)
