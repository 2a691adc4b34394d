"""Claims of the cascade, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.conditions import above, at_least, at_most
from solvable.frame.estimates import Contrast, Estimate, Lead
from solvable.frame.points import Point


def few(place: Cell | Point) -> bool:
    """Return True if few inputs are drawn twice, which is predicted for majorities only."""
    products = place.setting.gate == "product"
    return bool(place.setting.samples <= 2 ** (place.setting.dimension - (6 if products else 3)))


FEW = {"samples of at most 2^d / 64 (2^d / 8 for majorities)": few}

SURE = {
    **FEW,
    "uncertain_labels": at_most(0.5),
}
"""The features of no fit are uncertain, and few inputs are drawn twice."""

CERTAIN = {**SURE, "error_range": at_most(0.005)}
"""Fluctuations of out-of-fold errors do not change the predicted error."""


def spread(cell: Cell) -> float:
    """Scatter of an error rate up to a factor."""
    rate = min(max(cell.expected, 0.002), 0.998)
    return float((rate * (1 - rate)) ** 0.5)


def half_learned(samples: np.ndarray, errors: np.ndarray) -> float:
    """Logarithm of the samples at which an error that falls from 1/2 is 1/4; NaN if outside."""
    below = int(np.argmax(errors < 0.25))
    if below == 0:
        return np.nan
    x, y = np.log(samples[below - 1 : below + 1]), errors[below - 1 : below + 1]
    return float(x[0] + (y[0] - 0.25) / (y[0] - y[1]) * (x[1] - x[0]))


def power_of_depth(points: Sequence[Point]) -> tuple[float, float] | None:
    """Measured and predicted slope in log(depth) of log(samples) at which the last error is 1/4."""
    rows = []
    for depth in sorted({point.setting.depth for point in points}):
        curve = [point for point in points if point.setting.depth == depth]
        curve.sort(key=lambda point: point.setting.samples)
        samples = np.array([point.setting.samples for point in curve], dtype=float)
        measured = np.array([float(point.mean("last_error")) for point in curve])
        expected = np.array([float(point.predicted("last_error")) for point in curve])
        rows.append(
            [np.log(depth), half_learned(samples, measured), half_learned(samples, expected)]
        )
    x, *crossings = np.array([row for row in rows if np.isfinite(row).all()]).reshape(-1, 3).T
    if len(x) < 3 or np.ptp(x) < np.log(3) - 1e-9:
        return None
    measured_slope, expected_slope = (float(np.polyfit(x, y, 1)[0]) for y in crossings)
    return measured_slope, expected_slope


NEAR = "change samples"
REASON = (
    "The theory takes products of signs as Gaussian, and errors of accepted labels as independent."
)

# fmt: off
CLAIMS = (
    Agreement(
        "error",
        "The error of each level on fresh inputs equals the prediction.",
        "error", "derivations/hierarchy (31)", within=0.015, because=REASON, where=CERTAIN,
        missing=NEAR, entry="level", scatter=spread,
    ),
    Agreement(
        "out-of-fold-error",
        "The out-of-fold error of each level equals the prediction.",
        "out_of_fold_error", "derivations/hierarchy (31), (32)", within=0.015, where=CERTAIN,
        because=REASON, missing=NEAR, entry="level", scatter=spread,
    ),
    Agreement(
        "accepted",
        "The cascade accepts the predicted share of the labels of each level.",
        "accepted", "derivations/hierarchy (29), (31)", within=0.08, power=0.3,
        where={**SURE, "accepted_range": at_most(0.005)},
        because="Errors of accepted labels are taken as independent, which changes few acceptances.",
        missing=NEAR, entry="level", scatter=lambda cell: 1.0,
    ),
    Contrast(
        "last-level",
        "The error of the last level falls where the predicted number of samples accepts all levels.",
        "derivations/hierarchy (29), (31)", metric="last_error",
        across="last_required", along="samples", within=0.02, because=REASON,
        where={**SURE, "gate": "product"},
        missing="needs blocks for all levels, and samples on both sides of the required number",
    ),
    Estimate(
        "samples-against-depth",
        "The number of samples at which the last level is half learned grows with the predicted power "
        "of the depth.",
        "arXiv:2601.00455, Theorem 4.3; derivations/hierarchy (29), (31)", estimate=power_of_depth,
        apart=("depth", "samples"), fewest=6, within=0.15, because=REASON,
        where={"folds": above(1), "blocks": at_least(1, "depth"), "gate": "product", **FEW},
        missing="fewer than three depths, up to three times the smallest, whose last level passes the "
        "error 1/4; run with --preset depth",
    ),
    Lead(
        "held-out-predictions",
        "Predictions of held-out samples lower the error of the last level by the predicted amount.",
        "derivations/hierarchy (31), (32)", metric="last_error", of={"folds": 2}, over={"folds": 1},
        least=0.05, within=0.01, power=0.2, because=REASON, where=SURE,
        missing="no pair of folds 1 and 2 has different predictions; run with --preset folds",
    ),
)
