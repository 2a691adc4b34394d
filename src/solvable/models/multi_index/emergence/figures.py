"""Figures of the emergence of features in online gradient descent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import Panel
from solvable.frame.traces import Trace
from solvable.models.multi_index.emergence.claims import all_learned, compute
from solvable.models.multi_index.emergence.theory import sgd_exponents
from solvable.plots.figure import Series


def guide(curves: Sequence[Curve]) -> list[Series]:
    """Draw a line with the asymptotic exponent near the lower envelope of the curves."""
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


def width_guide(curves: Sequence[Curve]) -> list[Series]:
    """Draw a line with the asymptotic exponent through the first point of the first curve."""
    decay, x = curves[0].setting.decay, curves[0].x
    if decay <= 0.5:
        return []
    exponent = sgd_exponents(decay).width
    ends = np.array([x[0], x[-1]])
    line = curves[0].points[0].predicted("loss") * (ends / ends[0]) ** exponent
    return [Series(f"exponent {exponent:.2f}", ends, line, "dashed", colour=-1)]


OVERLAY = ("width", "noise", "learning_rate", "tuned", "batch", "initial_norm")

PANELS = (
    Panel(
        "loss",
        "Loss of online SGD against time",
        "loss (half the mean squared error)",
        [Trace("loss", "online SGD")],
        "Points: mean over random starts. Line: prediction, averaged over random starts.",
        overlay=OVERLAY,
        y_scale="log",
    ),
    Panel(
        "captured",
        "Captured share of each feature against time",
        "captured share of a feature",
        [Trace("captured", "feature")],
        "Mean over random starts. Vertical lines: times at which half of each feature is captured from a "
        "median start.",
        markers={"escape_time": ""},
        y_range=(-0.05, 1.1),
    ),
    Panel(
        "overlap",
        "Largest overlap of a student with each feature",
        "largest squared overlap with a feature",
        [Trace("squared_overlap", "feature")],
        "Largest squared overlap of all students with each feature. Before a feature is learned, it is "
        "slightly above the overlap of the student that later learns the feature.",
        y_range=(-0.02, 1.05),
    ),
    Panel(
        "frontier",
        "Compute buys loss along the best width",
        "loss (half the mean squared error)",
        [Trace("loss", "")],
        "Dashed: exponent of the lower envelope for very many features. With few features the envelope "
        "becomes steeper at its end.",
        along=Axis("time", "compute mt/η (students × steps)", value=compute),
        overlay=("width",),
        also=guide,
        y_scale="log",
    ),
    Panel(
        "width",
        "Loss at the end of training against the number of students",
        "loss (half the mean squared error)",
        [Trace("loss", "")],
        "A network of m students learns m features. Dashed: exponent for very many features, "
        "1 - 2 beta.",
        along="width",
        at=lambda times: times[-1:],
        where=all_learned,
        also=width_guide,
        x_scale="log",
        y_scale="log",
    ),
    Panel(
        "samples",
        "Loss against samples with a learning rate for the weakest wanted feature",
        "loss (half the mean squared error)",
        [Trace("loss", "online SGD")],
        "The learning rate is inversely proportional to the training time. The number of samples is "
        "therefore proportional to the square of the time, and the exponent in samples is half of the "
        "exponent in time.",
        along=Axis("time", "samples n", value=lambda setting: setting.samples),
        overlay=("width",),
        when={"tuned": True},
        y_scale="log",
    ),
)
