"""Figures of features that emerge in online gradient descent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.multi_index.emergence.parameters import EmergenceParameters
from solvable.models.multi_index.emergence.theory import sgd_exponents
from solvable.plots.figure import Series


def compute(setting: EmergenceParameters) -> float:
    """Students times steps: m t over the learning rate."""
    return float(setting.width / setting.learning_rate * setting.time)


def guide(curves: Sequence[Curve]) -> list[Series]:
    """Line of the asymptotic exponent through the middle of the lower envelope."""
    decay = curves[0].setting.decay
    x = np.concatenate([curve.grid for curve in curves])
    y = np.concatenate([curve.line("loss") for curve in curves])
    low, high = x[y < 0.45].min(initial=x.max()), x.max()
    if decay <= 0.5 or not high > low:
        return []
    ends, middle = np.array([low, high]), np.sqrt(low * high)
    best = min(np.interp(middle, curve.grid, curve.line("loss")) for curve in curves)
    exponent = sgd_exponents(decay).compute
    line = 0.9 * best * (ends / middle) ** exponent
    return [Series(f"exponent {exponent:.2f}", ends, line, "dashed", colour=-1)]


OVERLAY = ("width", "noise", "learning_rate", "batch", "initial_norm")

PANELS = (
    Panel(
        "loss",
        "The loss falls as one feature after another emerges",
        "half the squared distance to the teacher",
        [Trace("loss", "online SGD")],
        "Mean over starts; the line averages independent features over the law of random starts.",
        overlay=OVERLAY,
        y_scale="log",
    ),
    Panel(
        "captured",
        "Features emerge in the order of their amplitudes",
        "captured share of a feature",
        [Trace("captured", "feature")],
        "Mean over starts. Vertical lines: half of a feature from a median start.",
        markers={"escape_time": ""},
        y_range=(-0.05, 1.1),
    ),
    Panel(
        "overlap",
        "Students align with features",
        "largest squared overlap with a feature",
        [Trace("squared_overlap", "feature")],
        "Before a feature is learned the largest overlap of all students, a little above that of the "
        "student which will learn it.",
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "frontier",
        "Compute buys loss along the best width",
        "loss",
        [Trace("loss", "")],
        "Dashed: exponent of the lower envelope for very many features; few end steeper.",
        along=Axis("time", "students times steps m t / eta", value=compute),
        overlay=("width",),
        also=guide,
        y_scale="log",
    ),
)
