"""Figures of the cascade: lines are theory, points are measurements."""

from __future__ import annotations

from collections.abc import Sequence

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.hierarchy.labels.parameters import LabelParameters


def levels(setting: LabelParameters) -> Sequence[str]:
    """Names of the levels."""
    return [f"level {level + 1}" for level in range(setting.depth)]


def largest(places: Sequence[float]) -> Sequence[float]:
    """Return the largest number of samples."""
    return [max(places)]


def deep(curve: Curve) -> bool:
    """Return True if the cascade has a block for each level."""
    return bool(curve.setting.blocks >= curve.setting.depth)


PANELS = (
    Panel(
        "error",
        "Error of each level of labels",
        "test error",
        [Trace("error", names=levels)],
        "Vertical lines: samples from which all labels up to a level are predicted to be accepted. Lines "
        "jump where a label is accepted.",
        markers={"required_samples": "level"},
        y_range=(-0.02, 0.55),
    ),
    Panel(
        "error-by-block",
        "Error of each level after each block",
        "test error",
        [Trace("error", names=levels)],
        "One more level is learned in each block.",
        along="blocks",
        at=largest,
        x_scale="linear",
        y_range=(-0.02, 0.55),
    ),
    Panel(
        "accepted",
        "Accepted labels of each level",
        "share of the labels",
        [Trace("accepted", names=levels)],
        "A label is accepted if its out-of-fold error is below the threshold. Vertical lines: samples "
        "from which all labels up to a level are predicted to be accepted.",
        markers={"required_samples": "level"},
        when=deep,
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "folds",
        "Error of the last level of labels",
        "test error",
        [Trace("last_error")],
        "Deeper hierarchies need more samples. With one fold each sample is predicted by a fit that "
        "includes it, and labels are accepted that are not learned.",
        overlay=("folds", "depth"),
        when=deep,
        y_range=(-0.02, 0.55),
    ),
)
