"""Figures of hierarchical multi-index models: theory as lines, measurement as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, Trace
from solvable.plots.figure import Figure

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


def spectra(curves: Sequence[Curve]) -> list[Figure]:
    """Eigenvalues of one pass; a second pass has a spectrum of its own."""
    panel = Panel(
        "spectrum",
        "Eigenvalues leave the bulk one after another",
        "eigenvalue of the second moment",
        [Trace("eigenvalues", "eigenvalue"), Trace("bulk_edge", "edge", dashed=True, colour=7)],
        "The eigenvalues farthest from the bulk, and the edge of the spectrum with permuted labels.",
    )
    shown = []
    for curve in curves:
        thresholds = np.asarray(curve.points[-1].predicted("threshold_ratio"), dtype=float)
        first = np.min(thresholds[np.isfinite(thresholds)], initial=np.inf)
        # Before anything is found the farthest eigenvalues are of either end.
        points = tuple(p for p in curve.points if p.setting.sample_ratio >= 2 * first)
        if points and not curve.setting.deflation and not points[0].refused:
            shown.append(Curve(points, curve.axis, curve.predict))
    return panel(shown)


def overlaps(curves: Sequence[Curve]) -> list[Figure]:
    """A staircase for each setting, with the thresholds of its label map."""
    panel = Panel(
        "overlap",
        "Features are found one after another",
        "squared overlap with the span of the directions found",
        [Trace("squared_overlap", "feature")],
        "Squared projection of each true direction on the span of as many eigenvectors. Vertical "
        "lines: the sample ratio from which second moments of this label map find it, in the limit "
        "of many dimensions.",
        markers={"threshold_ratio": ""},
        y_range=(-0.02, 1.02),
    )
    one_pass = [curve for curve in curves if not curve.setting.deflation]
    two = [curve for curve in curves if curve.setting.deflation]
    caption = (
        "The same after a second pass on the residuals. Vertical lines: thresholds of one pass."
    )
    return [
        *panel(one_pass),
        *replace(
            panel, name="overlap-deflated", title="A second pass finds what strong features hide",
            caption=caption,
        )(two),
    ]  # fmt: skip


PANELS = (overlaps, ERROR, RISK, spectra)
