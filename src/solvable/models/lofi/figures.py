"""Figures of filters on Gaussian inputs: theory as lines, measurement as points."""

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
    """Curves of a target, with a lift or without."""
    return lambda curve: curve.setting.target == target and (curve.setting.lift != "none") == lifted


def fitted(curve: Curve) -> bool:
    """Whether networks were fitted at some point of a subspace target."""
    return of("subspace")(curve) and bool(np.isfinite(curve.measured("error")[0]).any())


OVERLAP = Panel(
    "overlap",
    "The first filter finds its direction at a definite size",
    "squared overlap",
    [Trace("subspace_overlap", "first filter")],
    "Squared overlap of the leading eigenvector with the direction. Vertical lines: the threshold of "
    "the filter, and for one curve that of the best label map.",
    markers={"emergence_ratio": ""},
    y_range=(-0.02, 1.02),
)


def overlaps(curves: Sequence[Curve]) -> list[Figure]:
    """One figure of all single-index curves, or one for each label map where they are many."""
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
    """Sign of the end of the spectrum that a direction belongs to."""
    return 1.0 if label_law(setting).strengths[0] >= 0 else -1.0


ENDS = [Trace("eigenvalue", "outlier"), Trace("bulk_edge", "edge")]

PANELS = (
    overlaps,
    Panel(
        "spectrum",
        "An eigenvalue leaves the bulk",
        "eigenvalue",
        [*ENDS, Trace("opposite_edge", "opposite edge")],
        "The leading eigenvalue at the direction's end, the next one there (the edge of the bulk), and "
        "the extreme one at the other end. Extreme eigenvalues of a bulk lie a little inside its edge at "
        "finite d.",
        when=of("single-index"),
    ),
    Panel(
        "spectrum-after-lift",
        "An eigenvalue leaves the bulk",
        "eigenvalue times n",
        ENDS,
        "The leading eigenvalue at the direction's end, and the next one there (the edge of the bulk).",
        when=of("single-index", lifted=True),
    ),
    Panel(
        "null-after-lift",
        "What a direction has to exceed",
        "modulus of the eigenvalue, times n",
        [
            Trace("eigenvalue", "direction", scale=end_of),
            Trace("null_eigenvalue", "largest with shuffled labels", dashed=True),
        ],
        "A direction is found where its eigenvalue exceeds the largest of shuffled labels (dashed). With "
        "the constant part of an activation in the features that is the noise of constant x linear, of "
        "order sqrt(n); of centred features it is the edge of the bulk.",
        when=of("single-index", lifted=True),
        overlay=("features",),
    ),
    Panel(
        "hidden-overlap",
        "Strong irrelevant directions hide a feature",
        "squared overlap of the best eigenvector",
        [
            Trace("best_squared_overlap", "all directions"),
            Trace("deflated_squared_overlap", "strong ones removed"),
        ],
        "The noise of strong irrelevant directions spreads the feature over many eigenvectors. Removing "
        "them shows it.",
        when=of("hidden"),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "hidden-rank",
        "A hidden feature ranks behind the noise of strong directions",
        "eigenvalues of larger modulus",
        [
            Trace("best_rank", "all directions"),
            Trace("deflated_rank", "strong ones removed", theory=None),
        ],
        "A filter that keeps fewer eigenvectors than this misses the feature. Without a feature to be "
        "found, at few samples, the best eigenvector is any.",
        when=of("hidden"),
    ),
    Panel(
        "subspace-overlap",
        "Both ends of the spectrum carry the subspace",
        "mean squared overlap with the subspace",
        [
            Trace("subspace_overlap", "largest moduli"),
            Trace("upper_subspace_overlap", "upper end alone"),
        ],
        "Four eigenvectors of the raw second moment against the four directions of the label. Keeping "
        "positive eigenvalues alone loses half of them.",
        when=of("subspace"),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "subspace-error",
        "One filter makes a target of degree two easy",
        "test error",
        [
            Trace("error", "filter, then one layer", theory=None),
            Trace("kernel_error", "NNGP, one layer", theory=None),
            Trace("deep_kernel_error", "NNGP, three layers", theory=None),
            Trace("error_floor", "floor of the filter", measured=False, dashed=True, colour=0),
        ],
        "Infinitely wide networks with a filter of the raw inputs and without. Dashed: the Bayes error "
        "given the learned coordinates.",
        when=fitted,
        y_range=(0.0, 0.55),
    ),
)
