"""Figures of sums of equal directions: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, Trace
from solvable.models.multi_index.separable.claims import thresholds_measured
from solvable.plots.figure import Figure, Series


def odd(curve: Curve) -> bool:
    """Whether the link of a curve is not even."""
    return bool(curve.setting.model.pair.any())


def thresholds_against_number(curves: Sequence[Curve]) -> list[Figure]:
    """Thresholds against the number of directions: of second moments, by information, measured."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        first = curve.points[0]
        if not first.refused and first.setting.label_map == "optimal":
            groups.setdefault(curve.setting.link, []).append(curve)
    series: list[Series] = []
    for colour, (link, group) in enumerate(groups.items()):
        rows = {}
        for curve in group:
            told = [
                thresholds_measured(point).mean()
                for point in curve.points
                if 0.4 < float(point.predicted("single_overlap")) < 0.95
            ]
            names = ("optimal_threshold_ratio", "information_threshold_ratio")
            first = curve.points[0]
            rows[curve.setting.directions] = (
                *(float(first.predicted(name)) for name in names),
                float(np.mean(told)) if told else np.nan,
            )
        if len(rows) < 2:
            continue
        p = sorted(rows)
        exact, information, measured = np.array([rows[k] for k in p]).T
        series += [
            Series(f"{link}, second moments", p, exact, colour=colour),
            Series(f"{link}, by information", p, information, "dashed", colour=colour),
            Series(f"{link}, from overlaps", p, measured, "points", colour=colour),
        ]
    if not series:
        return []
    return [
        Figure(
            "thresholds",
            "What telling directions apart costs",
            "directions p",
            "samples per dimension n/d",
            series,
            "Thresholds of the best label map, of which each link has its power of p; any method "
            "could do with samples in proportion to p.",
            x_scale="log",
            y_scale="log",
        )
    ]


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
    thresholds_against_number,
)
