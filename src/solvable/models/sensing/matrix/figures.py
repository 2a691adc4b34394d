"""Figures of matrix sensing: lines are theory, points are measurements."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.sensing import information
from solvable.models.sensing.information import bayes

MARKERS = {"recovery_ratio": "recovery without noise"}

CAPTION = (
    "Error of the estimated matrix against measurements per squared dimension. Vertical line: sample "
    "ratio above which the estimator recovers the signal from labels without noise. "
)


PANELS = (
    Panel(
        "error",
        "Error of Bayes message passing",
        "matrix error E (per dimension)",
        [
            Trace("matrix_error", "message passing"),
            Trace("finite_size_matrix_error", "first order in 1/d", measured=False, dashed=True),
        ],
        CAPTION + "Dashed: limit plus the first order in 1/d.",
        markers=MARKERS,
        when=bayes,
    ),
    Panel(
        "error-of-nuclear-norm",
        "Error of the nuclear norm",
        "matrix error E (per dimension)",
        [
            Trace("matrix_error", "nuclear norm"),
            Trace("bayes_matrix_error", "Bayes-optimal", measured=False, dashed=True),
        ],
        CAPTION + "Dashed: Bayes-optimal error in the limit.",
        markers=MARKERS,
        when={"estimator": "nuclear-norm"},
    ),
    Panel(
        "sensors",
        "Error for both kinds of measurements",
        "matrix error E (per dimension)",
        [
            Trace("matrix_error", "limit"),
            Trace("finite_size_matrix_error", "first order", measured=False, dashed=True),
        ],
        CAPTION + "Lines: limit, equal for both kinds. Dashed: limit plus the first order in 1/d.",
        overlay=("sensors",),
        along=Axis("sample_ratio", "sample ratio n/d²"),
        when=bayes,
    ),
    *information.PANELS,
    Panel(
        "spectrum",
        "Eigenvalues of the estimate",
        "mean eigenvalue of a group",
        [Trace("eigenvalues", "group")],
        "Mean eigenvalue of the estimate in each of eight groups of equal size; group 1 has the largest.",
    ),
    Panel(
        "train-error",
        "Training error",
        "training error (mean squared)",
        [Trace("train_error", "training error")],
        "Mean squared residual of the estimate on its training labels.",
        when={"output": "linear"},
    ),
    Panel(
        "rank",
        "Rank of the estimate",
        "rank / d",
        [Trace("rank_fraction", "nuclear norm")],
        "Fraction of the nuclear-norm estimate's eigenvalues that are not 0.",
        when={"estimator": "nuclear-norm"},
        y_range=(0, 1.02),
    ),
)
