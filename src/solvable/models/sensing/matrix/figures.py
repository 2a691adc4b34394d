"""Figures of matrix sensing: theory as lines, measurement as points."""

from __future__ import annotations

from solvable.frame.panels import Panel
from solvable.frame.traces import Trace

MARKERS = {"recovery_ratio": "recovery without noise"}

CAPTION = (
    "Error of the estimated matrix against measurements per squared dimension. The vertical line is "
    "where the estimator finds the signal exactly when nothing is added to its labels. "
)

PANELS = (
    Panel(
        "error",
        "What measurements tell of a matrix",
        "error per dimension E",
        [
            Trace("matrix_error", "message passing"),
            Trace("finite_size_matrix_error", "at this dimension", measured=False, dashed=True),
        ],
        CAPTION + "Dashed: with what a finite dimension adds, in first order.",
        markers=MARKERS,
        when=lambda curve: curve.setting.estimator == "bayes",
    ),
    Panel(
        "error-of-nuclear-norm",
        "What the nuclear norm makes of measurements",
        "error per dimension E",
        [
            Trace("matrix_error", "nuclear norm"),
            Trace("bayes_matrix_error", "Bayes-optimal", measured=False, dashed=True),
        ],
        CAPTION + "Dashed: the best that any estimator can do in the limit.",
        markers=MARKERS,
        when=lambda curve: curve.setting.estimator == "nuclear-norm",
    ),
    Panel(
        "spectrum",
        "Eigenvalues of the estimate",
        "mean eigenvalue of a group",
        [Trace("eigenvalues", "group")],
        "Eigenvalues of the estimate in eight groups of equally many, from the largest.",
    ),
    Panel(
        "train-error",
        "Training error",
        "mean squared residual",
        [Trace("train_error", "training error")],
        "What the estimate leaves of the labels that it was made from.",
    ),
    Panel(
        "rank",
        "Rank of the estimate",
        "rank over d",
        [Trace("rank_fraction", "nuclear norm")],
        "Share of the eigenvalues that the nuclear norm keeps.",
        when=lambda curve: curve.setting.estimator == "nuclear-norm",
        y_range=(0, 1.02),
    ),
)
