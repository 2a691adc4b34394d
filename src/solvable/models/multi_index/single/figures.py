"""Figures of single-index models: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.plots.figure import Marker


def at_rest(point: Point) -> np.ndarray:
    """Overlaps of those replicates on which message passing came to rest, if half did."""
    values = point.values("squared_overlap")
    settled = np.isfinite(values)
    return values[settled] if 2 * settled.sum() >= values.size else values


def thresholds(curves: Sequence[Curve]) -> list[Marker]:
    """Lines at the thresholds of algorithms and of information."""
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
        # The lowest of all estimators is that of the best of them.
        if inside and min(inside) == min(places):
            found.append(Marker(min(inside), label, len(found)))
    if len(found) == 2 and abs(found[0].x - found[1].x) < 0.01 * found[0].x:
        return [replace(found[0], label="algorithms and information")]
    return found


def spectral(*estimators: str) -> Callable[[Curve], bool]:
    """Curves of estimators that have a spectrum."""
    return lambda curve: curve.setting.estimator in estimators and not curve.setting.linear


PANELS = (
    Panel(
        "overlap",
        "What each estimator finds of the direction",
        "squared overlap with the direction",
        [Trace("squared_overlap", "", value=at_rest)],
        "Squared overlap of each estimator against samples per dimension. Dashed: the best that any "
        "estimator can do. Vertical lines: samples from which algorithms, and from which any estimator, "
        "find something. Of message passing near its threshold: the mean of those samples on which it "
        "comes to rest, where these are half or more.",
        markers=thresholds,
        overlay=("estimator",),
        once=[Trace("best_overlap", "best possible", measured=False, dashed=True, colour=7)],
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "spectrum",
        "An eigenvalue leaves the bulk",
        "eigenvalue",
        [Trace("outlier", "outlier"), Trace("bulk_edge", "edge")],
        "Of the best label map the outlier is at 1 and the edge falls away from it; of other maps the "
        "outlier leaves the edge.",
        when=spectral("optimal", "tanh", "square", "identity"),
    ),
    Panel(
        "disc",
        "Linearised message passing: an eigenvalue leaves a disc",
        "modulus of eigenvalues",
        [Trace("outlier", "outlier"), Trace("bulk_edge", "radius of the disc")],
        "The outlier is n/d over that at threshold, the radius its square root.",
        when=spectral("lamp"),
        y_scale="log",
    ),
    Panel(
        "good-start",
        "What message passing keeps of a good start",
        "squared overlap with the direction",
        [
            Trace("squared_overlap", "from what it finds"),
            Trace("informed_overlap", "from near the truth"),
        ],
        "Where the two differ the samples hold the direction, and no efficient algorithm that is known "
        "finds it.",
        when=lambda curve: curve.setting.estimator == "amp",
        markers={"threshold_ratio": "algorithms", "information_threshold_ratio": "information"},
        y_range=(-0.02, 1.02),
    ),
)
