"""Figures of hierarchical multi-index models, with theory as lines and measurements as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvable.frame.conditions import above, not_
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace
from solvable.models.multi_index.hierarchical.claims import SLOW, thresholds_measured

ERROR = Panel(
    "subspace-error",
    "The error of the subspace falls step by step, then as a power law",
    "weighted subspace error",
    [Trace("subspace_error", "")],
    "Sum over features of the squared amplitude times 1 minus the squared overlap. It is constant up "
    "to the first threshold, a power law between the thresholds, and proportional to p d/n above them.",
    overlay=("deflation", "decay", "link"),
    y_scale="log",
)

RISK = Panel(
    "risk",
    "Excess risk against samples",
    "excess test risk",
    [Trace("risk", "")],
    "Excess risk of a ridge readout on the estimated directions, measured against labels without noise. "
    "The prediction accounts for fitting the readout to the same samples as the directions.",
    overlay=("deflation", "readout"),
    when={"readout": not_("none")},
    y_scale="log",
)


def measured_if_known(point: Point, metric: str) -> np.ndarray | None:
    """Return the values of a metric; None if the records of an older version do not have it."""
    known = all(metric in metrics for metrics in point.metrics)
    return point.values(metric) if known else None


GAP = Panel(
    "best-error",
    "Error of the spectral estimator and smallest possible error",
    "weighted subspace error",
    [
        Trace("subspace_error", "spectral estimator"),
        Trace("best_error", "best possible", measured=False, dashed=True, colour=1),
        Trace(
            "message_passing_error",
            "message passing from a good start",
            colour=2,
            value=lambda point: measured_if_known(point, "message_passing_error"),
        ),
        Trace("oracle_error", "oracle bound", measured=False, dashed=True, colour=7),
    ],
    "Best possible: error of the Bayes-optimal estimator, from the largest potential of state evolution. "
    "Oracle bound: error in finding each feature when all other directions are known. Parallel lines "
    "are a constant factor in the number of samples apart.",
    when=lambda curve: not curve.setting.deflation and has_bound(curve.points[0]),
    y_scale="log",
)


def has_bound(point: Point) -> bool:
    """Return True if the oracle bound is predicted."""
    return point.prediction.get("oracle_error") is not None


def ranks(point: Point) -> np.ndarray:
    """Ranks k of the features."""
    return np.arange(1.0, point.setting.features + 1)


def middle_place(places: Sequence[float]) -> list[float]:
    """Return one value of n/d, at which about half of the features are found."""
    return [places[(2 * len(places)) // 3]]


def measured_thresholds(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of the threshold of each feature, from measured overlaps."""
    values = thresholds_measured(point)
    error = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)
    return values.mean(axis=0), error / np.sqrt(len(values))


THRESHOLDS = Panel(
    "thresholds",
    "Threshold of each feature",
    "sample ratio n/d",
    [
        Trace("threshold_ratio", "spectral estimator", value=measured_thresholds),
        Trace("optimal_threshold_ratio", "best first-order method", measured=False, colour=1),
        Trace("information_threshold_ratio", "any method", measured=False, dashed=True, colour=7),
    ],
    "Sample ratio above which each feature is found. Points: thresholds from overlaps measured at one "
    "n/d. Dashed: threshold with unlimited computing time.",
    against=ranks,
    at=middle_place,
    x_label="feature k",
    when={"deflation": 0},
    x_scale="log",
    y_scale="log",
)


def found(point: Point) -> bool:
    """Return True above twice the first threshold; below it the leading eigenvalue may change ends."""
    thresholds = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    first = np.min(thresholds[np.isfinite(thresholds)], initial=np.inf)
    return not point.refused and bool(point.setting.sample_ratio >= 2 * first)


OVERLAP = Panel(
    "overlap",
    "Overlap of each feature against samples",
    "squared overlap with the estimated span",
    [Trace("squared_overlap", "feature")],
    "Squared projection of each true direction on the span of the leading p eigenvectors. Vertical "
    "lines: thresholds of the features for this label map in the limit of many dimensions.",
    markers={"threshold_ratio": ""},
    when={"deflation": 0},
    y_range=(-0.02, 1.02),
)

PANELS = (
    OVERLAP,
    replace(
        OVERLAP,
        name="overlap-deflated",
        title="Overlap of each feature after a second pass",
        caption="Squared projection of each true direction on the span of the estimated directions "
        "after a second pass on the residuals. Vertical lines: thresholds of one pass.",
        when={"deflation": above(0)},
    ),
    ERROR,
    GAP,
    THRESHOLDS,
    RISK,
    Panel(
        "spectrum",
        "Leading eigenvalues and edge of the bulk",
        "eigenvalue of the second moment",
        [Trace("eigenvalues", "eigenvalue"), Trace("bulk_edge", "edge", dashed=True, colour=7)],
        "Eigenvalues farthest from the bulk. Dashed: edge of the spectrum with permuted labels.",
        when={"deflation": 0},
        where=found,
    ),
    Panel(
        "gradient-descent",
        "Slow gradient descent ends where the estimator does",
        "squared overlap with the first layer",
        [Trace("gradient_overlap", "feature")],
        "Squared projection of each true direction on the p leading directions in which ten steps of "
        "gradient descent change the first layer of a quadratic network. Lines: prediction for the "
        "spectral estimator.",
        when={"deflation": 0},
        where=SLOW,
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "learning-rate",
        "Gradient descent leaves the estimator at large learning rates",
        "squared overlap with the first layer",
        [Trace("gradient_overlap", "feature")],
        "Squared projection of each true direction on the p leading directions in which ten steps of "
        "gradient descent change the first layer of a quadratic network. Lines: prediction for the "
        "spectral estimator.",
        along=Axis("learning_rate", "learning rate"),
        at=lambda places: places[-1:],
        when={"deflation": 0},
        where={"trained": True},
        x_scale="log",
        y_range=(-0.02, 1.02),
    ),
)
