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


def spectral(*estimators: str) -> Callable[[Curve], bool]:
    """Select curves of these estimators if they have a spectrum (not the linear estimator)."""
    return lambda curve: curve.setting.estimator in estimators and not curve.setting.linear


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
        when=spectral("optimal", "tanh", "square", "identity"),
    ),
    Panel(
        "disc",
        "Outlier and disc of linearised message passing",
        "modulus of the eigenvalue",
        [Trace("outlier", "outlier"), Trace("bulk_edge", "radius of the disc")],
        "The outlier is n/d divided by the threshold. The radius of the disc is its square root.",
        when=spectral("lamp"),
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
        when=lambda curve: curve.setting.estimator == "amp",
        markers={"threshold_ratio": "algorithms", "information_threshold_ratio": "information"},
        y_range=(-0.02, 1.02),
    ),
)
