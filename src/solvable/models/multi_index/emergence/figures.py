"""Figures of features that emerge in online gradient descent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.curves import Curve
from solvable.frame.panels import Panel, Trace, grouped
from solvable.models.multi_index.emergence.theory import sgd_exponents
from solvable.plots.figure import Figure, Series


def frontier(curves: Sequence[Curve]) -> list[Figure]:
    """Loss against compute for all widths, and the law of the best width."""
    figures = []
    for group in grouped(curves, ("width",)):
        if len(group.curves) < 2:
            continue
        series: list[Series] = []
        envelope: dict[str, list[np.ndarray]] = {"x": [], "y": []}
        for number, curve in enumerate(sorted(group.curves, key=lambda c: c.setting.width)):
            # m t over the learning rate: students times steps
            unit = curve.setting.width / curve.setting.learning_rate
            label, line = f"width {curve.setting.width}", curve.line("loss")
            series.append(
                Series(f"{label}, theory", unit * curve.grid, line, "line", colour=number)
            )
            mean, error = curve.measured("loss")
            series.append(Series(label, unit * curve.x, mean, "points", error, number))
            envelope["x"].append(unit * curve.grid)
            envelope["y"].append(line)
        series += _guide(envelope, group.curves[0].setting.decay)
        title = "Compute buys loss along the best width"
        figures.append(
            Figure(
                f"frontier{group.suffix}",
                f"{title} ({group.words})" if group.words else title,
                "students times steps m t / eta",
                "loss",
                series,
                "Dashed: exponent of the lower envelope for very many features; few end steeper.",
                x_scale="log",
                y_scale="log",
            )
        )
    return figures


def _guide(envelope: dict[str, list[np.ndarray]], decay: float) -> list[Series]:
    """Line of the asymptotic exponent through the middle of the envelope."""
    if decay <= 0.5:
        return []
    x, y = (np.concatenate(envelope[name]) for name in ("x", "y"))
    low, high = np.log(x[y < 0.45].min(initial=x.max())), np.log(x.max())
    if not high > low:
        return []
    ends = np.exp(np.array([low, high]))
    middle = np.exp((low + high) / 2)
    best = min(np.interp(middle, *pair) for pair in zip(*envelope.values(), strict=True))
    exponent = sgd_exponents(decay).compute
    return [
        Series(
            f"exponent {exponent:.2f}",
            ends,
            0.9 * best * (ends / middle) ** exponent,
            "dashed",
            colour=-1,
        )
    ]


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
    frontier,
)
