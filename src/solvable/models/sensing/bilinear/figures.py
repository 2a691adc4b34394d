"""Figures of bilinear sequence regression: theory as lines, measurement as points."""

from __future__ import annotations

from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace

THRESHOLDS = {"recovery_ratio": "recovery", "nuclear_norm_ratio": "nuclear norm"}
"""Vertical lines; both are those of labels without noise."""

PANELS = (
    Panel(
        "matrix-error",
        "What a product of two matrices is worth",
        "error of the matrix E",
        [
            Trace("matrix_error", "Bayes-optimal"),
            Trace("ridge_error", "ridge on all entries", dashed=True),
        ],
        "Error per entry of the weights against samples per entry. Message passing (points) is on the "
        "line of the best that is possible; ridge regression does not know the rank. Vertical lines: "
        "from where labels without noise give the matrix exactly, at all and by its nuclear norm.",
        markers=THRESHOLDS,
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "test-error",
        "Error on fresh sequences",
        "squared error of answers",
        [
            Trace("test_error", "against clean labels"),
            Trace("noisy_test_error", "against noisy labels"),
        ],
        "Answers err as the matrix does; against noisy labels by the noise more.",
        markers={"recovery_ratio": "recovery"},
    ),
    Panel(
        "ranks",
        "The lower the rank, the fewer samples",
        "error of the matrix E",
        [Trace("matrix_error", "")],
        "Message passing and the Bayes-optimal line, for each rank.",
        markers={"recovery_ratio": ""},
        overlay=("rank_ratio",),
        y_range=(-0.02, 1.02),
    ),
    Panel(
        "matrix-error-by-aspect",
        "Error against the shape of the matrix",
        "error of the matrix E",
        [Trace("matrix_error", "")],
        "Message passing and the Bayes-optimal line, at the same samples per entry.",
        along=Axis("aspect", "aspect ratio L/d"),
        y_range=(-0.02, 1.02),
    ),
)
