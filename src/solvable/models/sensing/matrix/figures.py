"""Figures of matrix sensing: theory as lines, measurement as points."""

from __future__ import annotations

from solvable.frame.panels import Panel, Trace

MARKERS = {"recovery_ratio": "recovery without noise"}

PANELS = (
    Panel(
        "error",
        "What measurements tell of a matrix",
        "error per dimension E",
        [
            Trace("matrix_error", "estimate"),
            Trace("finite_size_matrix_error", "at this dimension", measured=False, dashed=True),
            Trace("bayes_matrix_error", "Bayes-optimal", measured=False, dashed=True),
        ],
        "Error of the estimated matrix against measurements per squared dimension; dashed what a finite "
        "dimension adds, and the best that any estimator can do in the limit. The vertical line is "
        "where the estimator finds the signal exactly when nothing is added to its labels.",
        markers=MARKERS,
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
