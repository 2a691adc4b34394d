"""Number of samples at which a learning curve reaches a level, for claims and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.points import Point
from solvable.models.two_layer_posterior.attention_energy import samples_for

LEVEL = 0.1
"""Alignment that a learning curve must cross for its shift or its number of samples to be estimated."""

ATTENTION_LEVEL = 0.2
"""The same for attention, above the alignment that lazy heads reach."""


def alignment_of(point: Point) -> float:
    """Mean alignment, less the predicted effect of the samples of each replicate where there is one."""
    raw = point.setting.second_width or point.setting.target == "attention"
    return float(point.mean("alignment" if raw else "adjusted_alignment"))


def predicted_alignment(point: Point) -> float:
    """Predicted alignment of the posterior."""
    return float(point.predicted("alignment"))


def samples_at_level(points: Sequence[Point], name: str) -> float | None:
    """Estimate log P at which a measured or predicted curve reaches the level of alignment."""
    attention = points[0].setting.target == "attention"
    level = ATTENTION_LEVEL if attention else LEVEL
    if attention and name == "predicted":
        return float(np.log(samples_for(points[0].setting, level)))
    curve = sorted(points, key=lambda point: float(point.setting.samples))
    read = alignment_of if name == "mean" else predicted_alignment
    values = np.array([read(point) for point in curve])
    if not values.min() < level < values.max():
        return None
    place = int(np.argmax(values > level))
    if place == 0:
        return None
    logs = np.log([float(point.setting.samples) for point in curve])
    if attention:
        # P samples with labels of power m count as P m: m explains 80 % of the variance of alignments
        # and has mean 1   (two-layer-posterior 28)
        logs += [float(point.mean("label_power")) - 1 for point in curve]
    # the logarithm of the alignment is nearly linear in log P
    share = np.log(level / values[place - 1]) / np.log(values[place] / values[place - 1])
    return float(logs[place - 1] + share * (logs[place] - logs[place - 1]))
