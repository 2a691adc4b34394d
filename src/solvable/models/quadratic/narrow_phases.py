"""Phases and exponents of narrow quadratic networks in the width and the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.estimates import Slope, grouped_but
from solvable.frame.panels import suffix_of
from solvable.frame.points import Point
from solvable.plots.figure import Figure, Series

PHASES = ("missing features", "noise of few units", "noise of a wide network")


def missing_share(point: Point) -> float:
    """Share of the predicted error that is due to features beyond the width; NaN without prediction."""
    if point.prediction.get("matrix_error") is None:
        return np.nan
    return float(point.predicted("missing_features")) / float(point.predicted("matrix_error"))


def phase_of(point: Point) -> str:
    """Name what dominates the predicted error, or an empty text without a prediction."""
    share = missing_share(point)
    if not np.isfinite(share):
        return ""
    if share >= 0.5:
        return PHASES[0]
    return PHASES[1] if point.setting.width < point.predicted("wide_rank") else PHASES[2]


def determined(point: Point) -> bool:
    """Return True for more than 2 samples per degree of freedom and 10 samples per input coordinate."""
    enough = point.setting.sample_ratio * point.setting.dimension >= 10
    return bool(enough and point.predicted("freedom_left") > 0.5)


def misses_features(point: Point) -> bool:
    """Return True if missing features are most of the error of a determined fit."""
    return phase_of(point) == PHASES[0] and determined(point)


def learns_noise(point: Point) -> bool:
    """Return True if noise is nine tenths of the error of a determined fit."""
    return missing_share(point) <= 0.1 and determined(point)


PHASE_CLAIMS = (
    Slope(
        "exponent-in-width",
        "Where missing features dominate, the error falls with the width by the predicted exponent, "
        "which tends to 1 - 2 gamma with many samples.",
        "derivations/quadratic (29), (19), (20)",
        metric="matrix_error",
        along="width",
        where=misses_features,
        within=0.05,
        because="The second order in 1/d.",
        missing="no curve has three widths at which missing features are half of the error; run with "
        "--preset phases",
    ),
    Slope(
        "exponent-in-samples",
        "Where noise dominates, the error falls with the number of samples by the predicted exponent.",
        "derivations/quadratic (29), (19), (20)",
        metric="matrix_error",
        along="sample_ratio",
        where=learns_noise,
        within=0.1,
        power=0.25,
        because="The second order in 1/d.",
        missing="no curve has three sample sizes at which noise is nine tenths of the error; run with "
        "--preset phases",
    ),
)


def phases(curves: Sequence[Curve]) -> list[Figure]:
    """Draw the settings of a study over samples and width, in the colours of their phases."""
    points = [point for curve in curves for point in curve.points]
    figures = []
    for group in grouped_but(points, ("width", "sample_ratio")):
        places = {(point.setting.sample_ratio, point.setting.width) for point in group}
        if min(len({place[axis] for place in places}) for axis in (0, 1)) < 3:
            continue
        series = []
        for colour, phase in enumerate(PHASES):
            chosen = [p.setting for p in group if phase_of(p) == phase]
            if chosen:
                x, y = [s.sample_ratio for s in chosen], [float(s.width) for s in chosen]
                series.append(Series(phase, x, y, "points", None, colour))
        ranks = {p.setting.sample_ratio: float(p.predicted("wide_rank")) for p in group}
        ratios = sorted(ranks)
        rank = [ranks[ratio] for ratio in ratios]
        series.append(Series("rank of a wide network", ratios, rank, "line", colour=7))
        measured = [[p for p in group if p.setting.sample_ratio == r and p.metrics] for r in ratios]
        best = [min(column, key=_error) for column in measured if column]
        series.append(
            Series(
                "measured width of the smallest error",
                [p.setting.sample_ratio for p in best],
                [float(p.setting.width) for p in best],
                "dashed",
                colour=4,
            )
        )
        setting = group[0].setting
        words = f"d = {setting.dimension}, exponent {setting.exponent:g}, noise {setting.noise:g}"
        figures.append(
            Figure(
                f"phases{suffix_of(words)}",
                f"What limits the error, over samples and width ({words})",
                "sample ratio n/d²",
                "width p",
                series,
                "Points: measured settings. Missing features: at least half of the predicted error comes "
                "from features beyond the width. Above the rank of a wide network the width has no "
                "effect. Settings without a prediction are left out.",
                x_scale="log",
                y_scale="log",
            )
        )
    return figures


def _error(point: Point) -> float:
    """Return the measured error."""
    return float(point.mean("matrix_error"))
