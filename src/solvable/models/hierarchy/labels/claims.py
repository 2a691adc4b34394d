"""Claims of the cascade, each with the reason for its tolerance."""

from __future__ import annotations

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Contrast, Lead
from solvable.frame.points import Point


def sure(point: Point) -> bool:
    """Return True if the features of no fit are uncertain, and few inputs are drawn twice."""
    few = point.setting.samples <= 2 ** (point.setting.dimension - 3)
    return bool(few and point.predicted("uncertain") <= 0.5)


def certain(cell: Cell) -> bool:
    """Return True if fluctuations of out-of-fold errors do not change the predicted error."""
    return sure(cell.point) and cell.predicted("error_range") <= 0.005


def certainly_accepted(cell: Cell) -> bool:
    """Return True if fluctuations of out-of-fold errors do not change the accepted labels."""
    return sure(cell.point) and cell.predicted("accepted_range") <= 0.005


def spread(cell: Cell) -> float:
    """Scatter of an error rate up to a factor."""
    rate = min(max(cell.expected, 0.002), 0.998)
    return float((rate * (1 - rate)) ** 0.5)


NEAR = (
    "at every point a label has an out-of-fold error near the threshold, or samples exceed 2^d / 8; "
    "change samples"
)
REASON = (
    "The theory takes products of signs as Gaussian, and errors of accepted labels as independent."
)

# fmt: off
CLAIMS = (
    Agreement(
        "error",
        "The error of each level on fresh inputs equals the prediction.",
        "error", "derivations/hierarchy (31)", within=0.015, because=REASON, where=certain,
        missing=NEAR, entry="level", scatter=spread,
    ),
    Agreement(
        "out-of-fold-error",
        "The out-of-fold error of each level equals the prediction.",
        "out_of_fold_error", "derivations/hierarchy (31), (32)", within=0.015, where=certain,
        because=REASON, missing=NEAR, entry="level", scatter=spread,
    ),
    Agreement(
        "accepted",
        "The cascade accepts the predicted share of the labels of each level.",
        "accepted", "derivations/hierarchy (29), (31)", within=0.08, where=certainly_accepted, power=0.3,
        because="Errors of accepted labels are taken as independent, which changes few acceptances.",
        missing=NEAR, entry="level", scatter=lambda cell: 1.0,
    ),
    Contrast(
        "last-level",
        "The error of the last level falls where the predicted number of samples accepts all levels.",
        "derivations/hierarchy (29), (31)", metric="last_error",
        across="last_required", along="samples", within=0.02, because=REASON, where=sure,
        missing="needs blocks for all levels, and samples on both sides of the required number",
    ),
    Lead(
        "held-out-predictions",
        "Predictions of held-out samples lower the error of the last level by the predicted amount.",
        "derivations/hierarchy (31), (32)", metric="last_error", of={"folds": 2}, over={"folds": 1},
        least=0.05, within=0.01, power=0.2, because=REASON, where=sure,
        missing="no pair of folds 1 and 2 has different predictions; run with --preset folds",
    ),
)
