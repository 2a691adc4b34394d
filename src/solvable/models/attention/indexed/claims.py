"""Claims of attention-indexed models, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, below, not_
from solvable.frame.estimates import Contrast, Estimate
from solvable.frame.points import Point
from solvable.models.attention.indexed.theory import peakedness


def collapsed(points: Sequence[Point]) -> tuple[float, float] | None:
    """Mean difference of errors between numbers of tokens at equal n/d², minus that at equal k n/d²."""
    rows = np.array(
        [
            (p.mean("matrix_error"), p.predicted("finite_size_matrix_error"), p.setting.tokens,
             p.setting.sample_ratio, p.setting.shown_ratio)
            for p in points
            if p.prediction.get("finite_size_matrix_error") is not None
        ]
    )  # fmt: skip
    if not len(rows):
        return None
    fewer = rows[:, None, 2] < rows[None, :, 2]
    difference = rows[:, None, :2] - rows[None, :, :2]
    at_equal = [
        fewer & (np.abs(np.log(rows[:, None, k] / rows[None, :, k])) < 0.02) for k in (3, 4)
    ]
    if not all(pairs.any() for pairs in at_equal):
        return None
    ratio, shown = (difference[pairs].mean(axis=0) for pairs in at_equal)
    return float(ratio[0] - shown[0]), float(ratio[1] - shown[1])


def extrapolated(metric: str) -> Callable[[Sequence[Point]], tuple[float, float] | None]:
    """Estimate of a metric of two layers: intercept of its line in 1/d, averaged over sample ratios."""

    def estimate(points: Sequence[Point]) -> tuple[float, float] | None:
        ratios = sorted({p.setting.sample_ratio for p in points})
        pairs = []
        for ratio in ratios:
            rows = [p for p in points if p.setting.sample_ratio == ratio]
            sizes = np.array([1 / p.setting.dimension for p in rows])
            if np.ptp(sizes) > 0:
                line = np.polynomial.polynomial.polyfit(sizes, [p.mean(metric) for p in rows], 1)
                largest = rows[int(np.argmin(sizes))]
                pairs.append((float(line[0]), float(largest.predicted(metric))))
        if not pairs:
            return None
        measured, expected = np.mean(pairs, axis=0)
        return float(measured), float(expected)

    return estimate


def lead_of_last_layer(point: Point) -> np.ndarray | None:
    """Error of the first layer minus that of the last layer, for each replicate."""
    if point.setting.layers == 1:
        return None
    return point.values("first_layer_error") - point.values("last_layer_error")


JUDGED = {
    "estimator": not_("gradient-descent"),
    "dimension": at_least(30),
    "finite_size_matrix_error": above(0.005),
}


def allowed(cell: Cell) -> float:
    """Relative tolerance: 0.04 plus 1.5 times the square of the relative first-order term in 1/d."""
    grown = cell.predicted("finite_size_matrix_error") / cell.predicted("matrix_error") - 1
    return float(0.04 + min(1.5 * grown**2, 0.06))


SECOND = (
    "0.04, plus 1.5 times the square of the first-order term in 1/d as a bound on the next order."
)


LINE = "6 % for terms of order 1/d² on a line in 1/d."

TWO_LAYERS = {"layers": 2, "dimension": at_least(40)}
NO_LAYERS = "needed: layers=2 in two or more dimensions of at least 40; run with --preset layers"


def _limit(name: str, words: str, metric: str) -> Estimate:
    return Estimate(
        name, f"The {words}, extrapolated to infinite dimension, equals the prediction.",
        "derivations/attention (21), (22)", estimate=extrapolated(metric),
        apart=("dimension", "sample_ratio"), fewest=2, where=TWO_LAYERS, within=0.06, relative=True,
        power=0.25, because=LINE, missing=NO_LAYERS,
    )  # fmt: skip


CLAIMS = (
    Agreement(
        "error-of-weights",
        "The error of the estimated weights equals the prediction, which includes the first order in "
        "1/d.",
        "matrix_error", "derivations/attention (1), (4); derivations/sensing (3), (22)",
        expected="finite_size_matrix_error", within=allowed, relative=True,
        because=SECOND, where=JUDGED, power=0.2,
        missing="lower sample_ratio or raise noise",
    ),
    Agreement(
        "error-of-attention",
        "The test error of the posterior mean of the attention matrix equals the prediction.",
        "test_error", "derivations/attention (6), (7)", expected="finite_size_test_error", relative=True,
        within=lambda cell: allowed(cell) + 0.02 * peakedness(cell.setting),
        because=SECOND + " Plus 0.02 times the excess kurtosis of a diagonal index.",
        where={**JUDGED, "activation": not_("linear")}, power=0.2,
    ),
    Contrast(
        "recovery-without-noise",
        "Without noise the weights are recovered exactly above recovery_ratio, but not below.",
        "derivations/attention (1), (5)", metric="matrix_error", expected="finite_size_matrix_error",
        where={"estimator": "message-passing"}, across="recovery_ratio", along="sample_ratio",
        below=(0.5, 0.9), above=(1.0, inf),
        within=0.06, relative=True, power=0.2,
        because="6 % for terms of order 1/d, which the prediction leaves out.",
        missing="needed: points with noise 0 at 0.5 to 0.9 times recovery_ratio, and points above "
        "recovery_ratio; set noise=0 and widen sample_ratio",
    ),
    Estimate(
        "collapse",
        "The errors of different numbers of tokens differ at equal n/d², and agree at equal k n/d² up to "
        "the first order in 1/d.",
        "derivations/attention (1), (5)", estimate=collapsed, apart=("tokens", "sample_ratio"), fewest=3,
        where={"estimator": "message-passing", "activation": "softmax"}, within=0.03,
        power=0.25,
        because="Terms of second order in 1/d of the four errors.",
        missing="needed: two numbers of tokens with points at equal n/d² and at equal k n/d²; run with "
        "--preset tokens",
    ),
    Agreement(
        "average-of-gradient-descent",
        "Below half of recovery_ratio, the average of gradient descent over 16 random starts has the "
        "error of an average of 16 draws from the posterior.",
        "matrix_error", "derivations/attention (18)", relative=True, within=0.15,
        expected="finite_size_matrix_error", power=0.3,
        where={"estimator": "gradient-descent", "sample_ratio": below(0.5, "recovery_ratio")},
        because="15 %, because gradient descent draws from the posterior only approximately.",
        missing="run with --preset descent",
    ),
    _limit("error-of-first-layer", "error of the first of two layers", "first_layer_error"),
    _limit("error-of-last-layer", "error of the last of two layers", "last_layer_error"),
    _limit("error-of-two-layers", "test error of two layers", "test_error"),
    Agreement(
        "last-layer-first",
        "Of two layers the last one is learned first: its error is below that of the first layer by the "
        "predicted difference.",
        lead_of_last_layer, "derivations/attention (22)",
        expected=lambda point: None
        if point.prediction.get("last_layer_error") is None
        else point.predicted("first_layer_error") - point.predicted("last_layer_error"),
        within=0.05, where=TWO_LAYERS, power=0.5,
        because="Most of the terms of order 1/d of the two errors cancel.",
        missing="run with --preset layers",
    ),
)  # fmt: skip
