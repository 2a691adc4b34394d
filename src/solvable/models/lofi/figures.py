"""Figures of filters on Gaussian inputs: lines show the theory, points the measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import MOST_CURVES, Panel
from solvable.frame.traces import Trace
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.target import label_law
from solvable.plots.figure import Figure


def of(target: str, *, lifted: bool = False) -> Callable[[Curve], bool]:
    """Return a function that is True for curves of the given target, with or without a lift."""
    return lambda curve: curve.setting.target == target and (curve.setting.lift != "none") == lifted


def fitted(curve: Curve) -> bool:
    """Return True for the subspace target if networks were fitted at some point of the curve."""
    return of("subspace")(curve) and bool(np.isfinite(curve.measured("error")[0]).any())


OVERLAP = Panel(
    "overlap",
    "The first filter finds the direction above a threshold sample size",
    "squared overlap",
    [Trace("subspace_overlap", "first filter")],
    "Squared overlap of the leading eigenvector with the direction. Vertical lines: threshold of the "
    "filter and, if there is one curve, threshold of the best label map.",
    markers={"emergence_ratio": ""},
    y_range=(-0.02, 1.02),
)


def overlaps(curves: Sequence[Curve]) -> list[Figure]:
    """Draw all single-index curves in one figure, or in one figure per label map if they are many."""
    single = [curve for curve in curves if curve.setting.target == "single-index"]
    maps = ("label_map",) if len(single) <= MOST_CURVES else ()
    markers = {"emergence_ratio": ""}
    if len(single) == 1:
        markers["weak_recovery_ratio"] = ""
    return replace(
        OVERLAP,
        overlay=("channel", "lift", "features", "noise", "dimension", *maps),
        markers=markers,
    )(single)


def end_of(setting: NeuralLoFiParameters) -> float:
    """Return 1 if the direction appears at the upper end of the spectrum, -1 if at the lower end."""
    return 1.0 if label_law(setting).strengths[0] >= 0 else -1.0


ENDS = [Trace("eigenvalue", "outlier"), Trace("bulk_edge", "edge")]

PANELS = (
    overlaps,
    Panel(
        "spectrum",
        "An outlier eigenvalue leaves the bulk",
        "eigenvalue",
        [*ENDS, Trace("opposite_edge", "opposite edge")],
        "The leading eigenvalue at the end of the spectrum where the direction appears, the next "
        "eigenvalue there (the edge of the bulk), and the extreme eigenvalue at the other end. At finite "
        "d the extreme eigenvalues of a bulk lie slightly inside its edge.",
        when=of("single-index"),
    ),
    Panel(
        "spectrum-after-lift",
        "An outlier eigenvalue leaves the bulk",
        "eigenvalue × n",
        ENDS,
        "The leading eigenvalue at the end of the spectrum where the direction appears, and the next "
        "eigenvalue there (the edge of the bulk).",
        when=of("single-index", lifted=True),
    ),
    Panel(
        "null-after-lift",
        "Eigenvalue of the direction and of shuffled labels",
        "modulus of the eigenvalue × n",
        [
            Trace("eigenvalue", "direction", scale=end_of),
            Trace("null_eigenvalue", "largest with shuffled labels", dashed=True),
        ],
        "A direction is detected if its eigenvalue exceeds the largest with shuffled labels (dashed). If "
        "the features keep the constant part of the activation, the largest is noise of order sqrt(n) "
        "from products of the constant and linear features; with centred features it is the edge of the "
        "bulk.",
        when=of("single-index", lifted=True),
        overlay=("features",),
    ),
    Panel(
        "hidden-overlap",
        "Strong irrelevant directions hide a feature",
        "squared overlap of the best eigenvector",
        [
            Trace("best_squared_overlap", "all directions"),
            Trace("deflated_squared_overlap", "strong directions removed"),
        ],
        "The noise of strong irrelevant directions spreads the feature over many eigenvectors. Removing "
        "these directions recovers the feature.",
        when=of("hidden"),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "hidden-rank",
        "A hidden feature ranks behind the noise of strong directions",
        "number of eigenvalues of larger modulus",
        [
            Trace("best_rank", "all directions"),
            Trace("deflated_rank", "strong directions removed", theory=None),
        ],
        "A filter that keeps this many eigenvectors or fewer misses the feature. At few samples no "
        "eigenvector has a large overlap, and the rank of the best one is arbitrary.",
        when=of("hidden"),
    ),
    Panel(
        "subspace-overlap",
        "Both ends of the spectrum carry the subspace",
        "mean squared overlap with the subspace",
        [
            Trace("subspace_overlap", "four largest moduli"),
            Trace("upper_subspace_overlap", "four largest eigenvalues"),
        ],
        "Squared overlap of four eigenvectors of the second moment of the inputs with the four "
        "directions of the label. A filter of positive eigenvalues alone loses two of the directions.",
        when=of("subspace"),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "subspace-error",
        "One filter lowers the test error of a target of degree two",
        "test error",
        [
            Trace("error", "filter, then one layer", theory=None),
            Trace("kernel_error", "NNGP, one layer", theory=None),
            Trace("deep_kernel_error", "NNGP, three layers", theory=None),
            Trace(
                "error_floor", "Bayes error after the filter", measured=False, dashed=True, colour=0
            ),
        ],
        "Infinitely wide networks with and without a filter of the inputs (NNGP: network without "
        "filter). Dashed: Bayes error given the learned coordinates.",
        when=fitted,
        y_range=(0.0, 0.55),
    ),
)
