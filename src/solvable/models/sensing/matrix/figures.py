"""Figures of matrix sensing: lines are theory, points are measurements."""

from __future__ import annotations

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace

MARKERS = {"recovery_ratio": "recovery without noise"}

CAPTION = (
    "Error of the estimated matrix against measurements per squared dimension. Vertical line: sample "
    "ratio above which the estimator recovers the signal from labels without noise. "
)


def bayes(curve: Curve) -> bool:
    """Return True for curves of Bayes message passing."""
    return bool(curve.setting.estimator == "bayes")


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
        when=lambda curve: curve.setting.estimator == "bayes",
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
        when=lambda curve: curve.setting.estimator == "nuclear-norm",
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
    Panel(
        "free-entropy",
        "Free entropy",
        "free entropy per squared dimension",
        [Trace("free_entropy", "", measured=False)],
        "Predicted free entropy against the overlap q = 1 - E/E(0) of the estimate with the signal, "
        "minus its value at q = 0. The highest maximum is the Bayes-optimal overlap.",
        against=lambda point: point.predicted("overlap"),
        x_label="overlap q",
        when=bayes,
    ),
    Panel(
        "information",
        "Information of the labels",
        "information (nats)",
        [
            Trace("mutual_information", "all labels, per squared dimension", measured=False),
            Trace("information_rate", "one more label"),
        ],
        "Predicted mutual information of all labels and the signal, and its derivative, the "
        "information of one more label. Points: expected score of fresh labels.",
        when=lambda curve: (
            bayes(curve) and curve.setting.output == "linear" and curve.setting.label_noise > 0
        ),
    ),
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
        when=lambda curve: curve.setting.output == "linear",
    ),
    Panel(
        "rank",
        "Rank of the estimate",
        "rank / d",
        [Trace("rank_fraction", "nuclear norm")],
        "Fraction of the nuclear-norm estimate's eigenvalues that are not 0.",
        when=lambda curve: curve.setting.estimator == "nuclear-norm",
        y_range=(0, 1.02),
    ),
)
