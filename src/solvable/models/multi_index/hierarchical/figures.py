"""Figures of hierarchical multi-index models: theory as lines, measurement as points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.traces import Trace

ERROR = Panel(
    "subspace-error",
    "The error of the subspace falls step by step, then as a power law",
    "weighted subspace error",
    [Trace("subspace_error", "")],
    "Sum of squared amplitudes times one less the squared overlap: a plateau up to the first "
    "threshold, a power law while features come one after another, then p over n/d.",
    overlay=("deflation", "decay"),
    y_scale="log",
)

RISK = Panel(
    "risk",
    "The excess risk follows the overlaps",
    "excess test risk",
    [Trace("risk", "")],
    "Of a ridge readout on the directions found, against labels without noise. The line holds what "
    "fitting the readout to the very samples that found its directions costs.",
    overlay=("deflation", "readout"),
    when=lambda curve: curve.setting.readout != "none",
    y_scale="log",
)


def found(point: Point) -> bool:
    """Whether a feature is clearly found; before, the farthest eigenvalues are of either end."""
    thresholds = np.asarray(point.predicted("threshold_ratio"), dtype=float)
    first = np.min(thresholds[np.isfinite(thresholds)], initial=np.inf)
    return not point.refused and bool(point.setting.sample_ratio >= 2 * first)


def one_pass(curve: Curve) -> bool:
    """Curves without a second pass on the residuals."""
    return not curve.setting.deflation


OVERLAP = Panel(
    "overlap",
    "Features are found one after another",
    "squared overlap with the span of the directions found",
    [Trace("squared_overlap", "feature")],
    "Squared projection of each true direction on the span of as many eigenvectors. Vertical "
    "lines: the sample ratio from which second moments of this label map find it, in the limit "
    "of many dimensions.",
    markers={"threshold_ratio": ""},
    when=one_pass,
    y_range=(-0.02, 1.02),
)

PANELS = (
    OVERLAP,
    replace(
        OVERLAP,
        name="overlap-deflated",
        title="A second pass finds what strong features hide",
        caption="The same after a second pass on the residuals. Vertical lines: thresholds of one pass.",
        when=lambda curve: not one_pass(curve),
    ),
    ERROR,
    RISK,
    Panel(
        "spectrum",
        "Eigenvalues leave the bulk one after another",
        "eigenvalue of the second moment",
        [Trace("eigenvalues", "eigenvalue"), Trace("bulk_edge", "edge", dashed=True, colour=7)],
        "The eigenvalues farthest from the bulk, and the edge of the spectrum with permuted labels.",
        when=one_pass,
        where=found,
    ),
)
