"""Figures of sums of equal directions: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.multi_index.separable.claims import thresholds_measured


def odd(curve: Curve) -> bool:
    """Whether the link of a curve is not even."""
    return bool(curve.setting.model.pair.any())


def threshold(points: Sequence[Point]) -> float:
    """Mean threshold that overlaps in the middle of their range give."""
    values = [
        thresholds_measured(point).mean()
        for point in points
        if 0.4 < float(point.predicted("single_overlap")) < 0.95
    ]
    return float(np.mean(values)) if values else np.nan


def by_best_map(curve: Curve) -> bool:
    """Curves of the optimal label map that have a prediction."""
    return curve.setting.label_map == "optimal" and not curve.points[0].refused


PANELS = (
    Panel(
        "overlap",
        "Directions of a sum are told apart at once",
        "squared overlap of single directions",
        [Trace("single_overlap", "")],
        "Mean squared projection of directions beside the sum on the span of the leading eigenvectors. "
        "Vertical lines: thresholds of the label map.",
        markers={"threshold_ratio": ""},
        overlay=("directions",),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "sum-overlap",
        "A link that is not even shows the sum first",
        "squared overlap",
        [Trace("sum_overlap", "sum of all"), Trace("single_overlap", "directions beside it")],
        "Second moments see the sum of all directions from fewer samples than what tells these apart.",
        markers={"threshold_ratio": "", "sum_threshold_ratio": ""},
        when=odd,
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "thresholds",
        "What telling directions apart costs",
        "samples per dimension n/d",
        [
            Trace("optimal_threshold_ratio", "second moments", reduce=threshold),
            Trace("information_threshold_ratio", "by information", measured=False, dashed=True),
        ],
        "Thresholds of the best label map, of which each link has its power of p; any method could do "
        "with samples in proportion to p. Points: from the measured overlaps.",
        along=Axis("directions", "directions p", resolution=9),
        overlay=("link",),
        when=by_best_map,
        y_scale="log",
    ),
)
