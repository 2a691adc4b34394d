"""Figures of sums of equal directions: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.multi_index.separable.claims import (
    in_the_gap,
    information_measured,
    thresholds_measured,
)


def odd(curve: Curve) -> bool:
    """Return True if the link of a curve is not even."""
    return bool(curve.setting.model.pair.any())


def threshold(points: Sequence[Point]) -> float:
    """Mean of the thresholds that follow from measured overlaps between 0.4 and 0.95."""
    values = [
        thresholds_measured(point).mean()
        for point in points
        if 0.4 < float(point.predicted("single_overlap")) < 0.95
    ]
    return float(np.mean(values)) if values else np.nan


def information(points: Sequence[Point]) -> float:
    """Mean of the thresholds of any method that follow from message passing in the gap."""
    values = [information_measured(point).mean() for point in points if in_the_gap(point)]
    return float(np.mean(values)) if values else np.nan


def by_best_map(curve: Curve) -> bool:
    """Return True for curves with the optimal label map that have a prediction."""
    return curve.setting.label_map == "optimal" and not curve.points[0].refused


PANELS = (
    Panel(
        "overlap",
        "Overlap of the single directions of a sum",
        "squared overlap of single directions",
        [Trace("single_overlap", "")],
        "Mean squared projection of directions orthogonal to the sum on the span of the leading "
        "eigenvectors. Vertical lines: thresholds of the label map.",
        markers={"threshold_ratio": ""},
        overlay=("directions",),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "good-start",
        "Message passing from a start near the directions",
        "squared overlap of single directions",
        [
            Trace("single_overlap", "second moments"),
            Trace("informed_overlap", "message passing from a good start"),
        ],
        "Where the two differ, the samples determine the directions but second moments do not find "
        "them. "
        "Message passing runs between the two thresholds only.",
        markers={
            "optimal_threshold_ratio": "second moments",
            "information_threshold_ratio": "any method",
        },
        when=lambda curve: any(in_the_gap(point) for point in curve.points if not point.refused),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "sum-overlap",
        "Overlaps of the sum and of single directions",
        "squared overlap",
        [Trace("sum_overlap", "sum of all"), Trace("single_overlap", "single directions")],
        "For a link that is not even, second moments need fewer samples to find the sum of all "
        "directions than to find the single directions. Vertical lines: both thresholds.",
        markers={"threshold_ratio": "", "sum_threshold_ratio": ""},
        when=odd,
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "thresholds",
        "Thresholds of single directions against their number",
        "sample ratio n/d",
        [
            Trace("optimal_threshold_ratio", "second moments", reduce=threshold),
            Trace("information_threshold_ratio", "any method", dashed=True, reduce=information),
        ],
        "Solid: threshold of the best label map, which grows as a power of p that depends on the link. "
        "Dashed: threshold with unlimited computing time, proportional to p. Points: thresholds from "
        "measured overlaps, for any method those of message passing that starts near the directions.",
        along=Axis("directions", "directions p", resolution=9),
        overlay=("link",),
        when=by_best_map,
        y_scale="log",
    ),
)
