"""Figures of attention-indexed models: theory as lines, measurement as points."""

from __future__ import annotations

from solvable.frame.panels import Panel
from solvable.frame.traces import Trace

PANELS = (
    Panel(
        "error",
        "What samples tell of the weights of attention",
        "error of the weights per dimension",
        [
            Trace("matrix_error", "", theory="finite_size_matrix_error"),
            Trace("matrix_error", "d to infinity", measured=False, dashed=True),
        ],
        "Error E of message passing against samples over d^2; 1 is that of the prior mean. Dashed: the "
        "limit of state evolution. Vertical lines: perfect recovery without noise.",
        markers={"recovery_ratio": "recovery"},
        y_range=(0, 1.1),
    ),
    Panel(
        "attention",
        "How well attention is predicted",
        "error of attention matrices",
        [Trace("test_error", "", theory="finite_size_test_error")],
        "Squared error of the mean attention matrix of fresh samples, without their noise.",
        overlay=("tokens",),
    ),
)
