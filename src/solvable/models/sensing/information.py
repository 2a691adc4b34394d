"""Claims and figures of the free entropy and the mutual information, for both sensing systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.estimates import Estimate
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.sensing.free_entropy import label_information


def bayes(place: Curve | Point) -> bool:
    """Return True for Bayes message passing."""
    return place.setting.estimator in ("bayes", "message-passing")


def rated(point: Point) -> bool:
    """Return True where the information of one more label is predicted."""
    return bayes(point) and point.prediction.get("information_rate") is not None


def information_gained(points: Sequence[Point]) -> tuple[float, float] | None:
    """Integral of the measured information of a label over the sample ratio, and its prediction."""
    points = sorted(points, key=lambda point: point.setting.ratio)
    alpha = np.array([point.setting.ratio for point in points])
    rates = np.array([float(point.mean("information_rate")) for point in points])
    # the first order in 1/d of the rate, where it is predicted, enters by the same integral
    order = np.array(
        [float(point.predicted("information_rate")) - _limit(point) for point in points]
    )
    first, last = (float(points[k].predicted("mutual_information")) for k in (0, -1))
    if not np.isfinite([*rates, *order, first, last]).all():
        return None
    return polynomial_integral(alpha, rates), last - first + polynomial_integral(alpha, order)


def _limit(point: Point) -> float:
    """Information of one more label in the limit."""
    channel = point.setting.channel
    variance = float(channel.variances[0]) * float(point.predicted("matrix_error"))
    return label_information(float(channel.noises[0]), variance)


def polynomial_integral(x: np.ndarray, y: np.ndarray) -> float:
    """Integral of the polynomial through a few points, from the first to the last."""
    middle = x.mean()
    primitive = np.polyint(np.polyfit(x - middle, y, x.size - 1))
    low, high = np.polyval(primitive, [x[0] - middle, x[-1] - middle])
    return float(high - low)


def mutual_information(within: float) -> Estimate:
    """Return the claim on the mutual information, with its relative tolerance."""
    return Estimate(
        "mutual-information",
        "Between the fewest and the most samples, the labels add the predicted mutual information.",
        "derivations/sensing (24)",
        estimate=information_gained,
        apart=("sample_ratio",),
        fewest=4,
        within=within,
        relative=True,
        because="Terms beyond the predicted order in 1/d, and the integral of a polynomial through at "
        "least four points.",
        where=rated,
        missing="needed: at least four sample ratios with Bayes message passing, output=linear where "
        "there is a choice, and noise above 0",
    )


PANELS = (
    Panel(
        "free-entropy",
        "Free entropy",
        "free entropy per entry",
        [Trace("free_entropy", "", measured=False)],
        "Predicted free entropy against the overlap q = 1 - E/E(0) of the estimate with the matrix, "
        "minus its value at q = 0. The maximum is at the Bayes-optimal overlap; with one maximum, "
        "message passing reaches it.",
        against=lambda point: point.predicted("overlap"),
        x_label="overlap q",
        when=bayes,
    ),
    Panel(
        "information",
        "Information of the labels",
        "information (nats)",
        [
            Trace("mutual_information", "all labels, per entry", measured=False),
            Trace("information_rate", "one more label"),
        ],
        "Predicted mutual information of all labels and the matrix, and its derivative, the "
        "information of one more label. Points: information from the score of fresh labels.",
        when=lambda curve: any(rated(point) for point in curve.points),
    ),
)
