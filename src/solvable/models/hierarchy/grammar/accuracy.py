"""Accuracy of learners along the number of strings: chance, number of strings, crossings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.parameters import AXIS, RandomHierarchyParameters

HIERARCHICAL = ("layerwise", "count-cluster", "cnn")
"""Estimators that learn the hierarchy, level by level or as a deep network."""

ALONG = (AXIS.parameter, *AXIS.ignore)


def classifies(setting: RandomHierarchyParameters) -> bool:
    """Return True for classification with equally likely rules that carry a signal."""
    return setting.task == "classification" and not setting.zipf and setting.ensemble != "latin"


def log_strings(setting: RandomHierarchyParameters) -> float:
    """Logarithm of the number of strings, n_c (m (s_0 + 1)^s)^((s^L - 1) / (s - 1))."""
    choices = (setting.branching**setting.depth - 1) / (setting.branching - 1)
    ways = np.log(setting.rules) + setting.branching * np.log(setting.width)
    return float(np.log(setting.n_classes) + choices * ways)


def scarce(setting: RandomHierarchyParameters) -> bool:
    """Return True if there are at least eight times as many strings as training strings."""
    return bool(np.log(8 * setting.n_samples) <= log_strings(setting))


def reach(setting: RandomHierarchyParameters) -> float:
    """Difference between perfect and chance accuracy."""
    return 1 - 1 / setting.n_classes


def crossing_ratio(points: Sequence[Point], left: float = 0.5) -> float | None:
    """Samples over P* at which a share of the error of chance is left; None outside the points."""
    ordered = sorted(points, key=lambda point: point.setting.ratio)
    x = np.log([point.setting.ratio for point in ordered])
    accuracy = np.array([float(point.mean("test_accuracy")) for point in ordered])
    wanted = 1 - left * reach(points[0].setting)
    above = int(np.argmax(accuracy >= wanted))
    if above == 0:
        return None
    share = (wanted - accuracy[above - 1]) / (accuracy[above] - accuracy[above - 1])
    return float(np.exp(x[above - 1] + share * (x[above] - x[above - 1])))
