"""Figures of attention-indexed models: lines are theory, points are measurements."""

from __future__ import annotations

from solvable.frame.panels import Panel
from solvable.frame.traces import Trace

PANELS = (
    Panel(
        "error",
        "Error of the estimated weights",
        "matrix error E (per dimension)",
        [
            Trace("matrix_error", "", theory="finite_size_matrix_error"),
            Trace("matrix_error", "limit", measured=False, dashed=True),
        ],
        "Matrix error E of message passing against samples per squared dimension. The prior mean has E = "
        "1."
        " Dashed: state evolution in the limit. Vertical lines: ratios above which recovery without "
        "noise is "
        "exact.",
        markers={"recovery_ratio": "recovery"},
        y_range=(0, 1.1),
    ),
    Panel(
        "attention",
        "Test error of the attention matrix",
        "squared error of the attention matrix",
        [Trace("test_error", "", theory="finite_size_test_error")],
        "Squared error of the posterior mean of the attention matrix, on noiseless test samples.",
        overlay=("tokens",),
    ),
)
