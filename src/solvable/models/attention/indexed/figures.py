"""Figures of attention-indexed models: lines are theory, points are measurements."""

from __future__ import annotations

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace


def one_layer(curve: Curve) -> bool:
    """Return True for message passing on one layer of attention."""
    return bool(curve.setting.estimator == "message-passing" and curve.setting.layers == 1)


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
        when=one_layer,
        y_range=(0, 1.1),
    ),
    Panel(
        "layers",
        "Errors of two layers of attention",
        "matrix error E (per dimension)",
        [Trace("first_layer_error", "first layer"), Trace("last_layer_error", "last layer")],
        "Matrix errors of message passing (points) and of state evolution in the limit (lines). Points "
        "lie above the lines by a term of order 1/d.",
        when={"layers": 2},
        y_range=(0, 1.1),
    ),
    Panel(
        "layers-attention",
        "Test error of two layers of attention",
        "squared error of the attention matrix",
        [Trace("test_error", "")],
        "Squared error of the posterior mean of the attention matrix of the last layer, on noiseless "
        "test samples.",
        overlay=("dimension",),
        when={"layers": 2},
    ),
    Panel(
        "collapse",
        "Error for each number of tokens against the number of indices shown",
        "matrix error E (per dimension)",
        [Trace("matrix_error", "", theory="finite_size_matrix_error")],
        "Errors against k n/d², where a sample of T tokens shows k = T (T + 1) / 2 - 1 indices (one "
        "more for linear labels). In the limit all numbers of tokens have one curve.",
        along=Axis(
            "sample_ratio", "sample ratio × shown indices (k n/d²)", value=lambda s: s.shown_ratio
        ),
        overlay=("tokens",),
        when=lambda curve: one_layer(curve) and curve.setting.activation != "hardmax",
        y_range=(0, 1.1),
    ),
    Panel(
        "descent",
        "Gradient descent from random starts",
        "matrix error E (per dimension)",
        [
            Trace("matrix_error", "average of 16 starts", theory="finite_size_matrix_error"),
            Trace("start_error", "one start"),
        ],
        "Errors of gradient descent (points), and of as many draws from the posterior (lines).",
        when={"estimator": "gradient-descent"},
        markers={"recovery_ratio": "recovery"},
    ),
    Panel(
        "attention",
        "Test error of the attention matrix",
        "squared error of the attention matrix",
        [Trace("test_error", "", theory="finite_size_test_error")],
        "Squared error of the posterior mean of the attention matrix, on noiseless test samples.",
        overlay=("tokens",),
        when=one_layer,
    ),
)
