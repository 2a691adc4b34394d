"""Figures of bilinear sequence regression: lines are theory, points are measurements."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace

THRESHOLDS = {"recovery_ratio": "recovery", "nuclear_norm_ratio": "nuclear norm"}
"""Thresholds for noiseless labels, drawn as vertical lines."""

PANELS = (
    Panel(
        "matrix-error",
        "Error of the weight matrix",
        "matrix error E",
        [
            Trace("matrix_error", "Bayes-optimal"),
            Trace("ridge_error", "ridge on all entries", dashed=True),
        ],
        "Matrix error against samples per entry. Lines: predicted errors of the Bayes-optimal estimator "
        "and "
        "of ridge regression; points: measured errors of message passing and ridge regression. Vertical "
        "lines: sample ratios above which the Bayes-optimal estimator and the least nuclear norm recover "
        "the matrix from noiseless labels.",
        markers=THRESHOLDS,
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "test-error",
        "Error on fresh sequences",
        "test error (mean squared)",
        [
            Trace("test_error", "against clean labels"),
            Trace("noisy_test_error", "against noisy labels"),
        ],
        "The test error equals the matrix error; on noisy labels, add the noise variance.",
        markers={"recovery_ratio": "recovery"},
    ),
    Panel(
        "ranks",
        "Matrix error for each rank",
        "matrix error E",
        [Trace("matrix_error", "")],
        "Bayes-optimal error (lines) and error of message passing (points) for each rank ratio.",
        markers={"recovery_ratio": ""},
        overlay=("rank_ratio",),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "matrix-error-by-aspect",
        "Matrix error against aspect ratio",
        "matrix error E",
        [Trace("matrix_error", "")],
        "Bayes-optimal error (line) and error of message passing (points) at fixed samples per entry.",
        along=Axis("aspect", "aspect ratio L/d"),
        y_range=(-0.02, 1.02),
    ),
)
