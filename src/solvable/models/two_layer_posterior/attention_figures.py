"""Figures of blocks of attention: lines are theory, points are Langevin networks."""

from __future__ import annotations

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace


def attends(curve: Curve) -> bool:
    """Return True if the networks of a curve are blocks of attention."""
    return bool(curve.setting.target == "attention")


def sample_label(curve: Curve) -> str:
    """Label of the number of samples over that at which features are learned."""
    return "sample ratio P/(κ√(HLd³))" if attends(curve) else str(curve.axis.label)


ATTENTION = Panel(
    "attention",
    "Alignment of attention with a cubic target",
    "alignment with the target",
    [
        Trace("alignment", "", theory=None),
        Trace("kernel_adaptation_alignment", "kernel adaptation", measured=False, dashed=True),
    ],
    "Points: Langevin networks, from both starts. Dashed: the theory of the target's mode alone. It "
    "needs about half as many samples, and predicts how their number grows. At few tokens the softmax "
    "responds less, so that only curves of many tokens coincide.",
    overlay=("dimension", "context"),
    when=attends,
    x_label=sample_label,
)

ATTENTION_ERROR = Panel(
    "attention-error",
    "Test error of attention on a cubic target",
    "test error",
    [Trace("test_error", "", theory=None)],
    "A network that outputs 0 has a test error of 1, and networks of the prior exceed 2.",
    overlay=("dimension", "context"),
    when=attends,
    x_label=sample_label,
)
