"""Figures of hierarchical multi-index models, with theory as lines and measurements as points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace

ERROR = Panel(
    "subspace-error",
    "The error of the subspace falls step by step, then as a power law",
    "weighted subspace error",
    [Trace("subspace_error", "")],
    "Sum over features of the squared amplitude times 1 minus the squared overlap. It is constant up "
    "to the first threshold, a power law between the thresholds, and proportional to p d/n above them.",
    overlay=("deflation", "decay"),
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
    when=lambda curve: curve.setting.readout != "none",
    y_scale="log",
)


def found(point: Point) -> bool:
    """Return True above twice the first threshold; below it the leading eigenvalue may change ends."""
    thresholds = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    first = np.min(thresholds[np.isfinite(thresholds)], initial=np.inf)
    return not point.refused and bool(point.setting.sample_ratio >= 2 * first)


def one_pass(curve: Curve) -> bool:
    """Return True for curves that have no second pass on the residuals."""
    return not curve.setting.deflation


def slow(point: Point) -> bool:
    """Return True if a network was trained at a learning rate of at most 0.01."""
    return point.setting.trained and bool(point.setting.learning_rate <= 0.01)


OVERLAP = Panel(
    "overlap",
    "Overlap of each feature against samples",
    "squared overlap with the estimated span",
    [Trace("squared_overlap", "feature")],
    "Squared projection of each true direction on the span of the leading p eigenvectors. Vertical "
    "lines: thresholds of the features for this label map in the limit of many dimensions.",
    markers={"threshold_ratio": ""},
    when=one_pass,
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
        when=lambda curve: not one_pass(curve),
    ),
    ERROR,
    RISK,
    Panel(
        "spectrum",
        "Leading eigenvalues and edge of the bulk",
        "eigenvalue of the second moment",
        [Trace("eigenvalues", "eigenvalue"), Trace("bulk_edge", "edge", dashed=True, colour=7)],
        "Eigenvalues farthest from the bulk. Dashed: edge of the spectrum with permuted labels.",
        when=one_pass,
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
        when=one_pass,
        where=slow,
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
        when=one_pass,
        where=lambda point: point.setting.trained,
        x_scale="log",
        y_range=(-0.02, 1.02),
    ),
)
