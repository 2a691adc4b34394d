"""Number of samples at which a learning curve reaches a level, for claims and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.points import Point

LEVEL = 0.1
"""Alignment that a learning curve must cross for its shift or its number of samples to be estimated."""


def alignment_of(point: Point) -> float:
    """Mean alignment, less the predicted effect of the samples of each replicate where there is one."""
    return float(point.mean("alignment" if point.setting.second_width else "adjusted_alignment"))


def predicted_alignment(point: Point) -> float:
    """Predicted alignment of the posterior."""
    return float(point.predicted("alignment"))


def samples_at_level(points: Sequence[Point], name: str) -> float | None:
    """Estimate log P at which a measured or predicted curve reaches an alignment of 0.1."""
    curve = sorted(points, key=lambda point: float(point.setting.samples))
    read = alignment_of if name == "mean" else predicted_alignment
    values = np.array([read(point) for point in curve])
    if not values.min() < LEVEL < values.max():
        return None
    place = int(np.argmax(values > LEVEL))
    if place == 0:
        return None
    logs = np.log([float(point.setting.samples) for point in curve])
    # the logarithm of the alignment is nearly linear in log P
    share = np.log(LEVEL / values[place - 1]) / np.log(values[place] / values[place - 1])
    return float(logs[place - 1] + share * (logs[place] - logs[place - 1]))
