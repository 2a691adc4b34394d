"""Claims of the random hierarchy model, each with the reason for its tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvable.frame.agreement import Agreement, Cell
from solvable.frame.estimates import Estimate, Slope
from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.figures import ancestor_names, level_names
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters

HIERARCHICAL = ("layerwise", "count-cluster", "cnn")
"""Estimators that learn the hierarchy level by level, or as a deep network."""

PAPER_B = "arXiv:2307.02129"


def classifies(setting: RandomHierarchyParameters, *, ensemble: str = "first") -> bool:
    """Return True for classification with equal rules of an ensemble."""
    return setting.task == "classification" and not setting.zipf and setting.ensemble == ensemble


def scarce(setting: RandomHierarchyParameters) -> bool:
    """Return True if the strings are at most a quarter of all that exist."""
    logarithm = np.log(setting.n_classes) + np.log(setting.rules) * (
        (setting.leaves - 1) / (setting.branching - 1)
    )
    return bool(np.log(setting.n_samples) <= logarithm - np.log(4))


def learned_by(*estimators: str) -> Callable[[Cell], bool]:
    """Return a function that chooses points of these estimators with equal rules."""
    return lambda cell: classifies(cell.setting) and cell.setting.estimator in estimators


def gap_of(points: Sequence[Point]) -> tuple[float, float] | None:
    """Lead of hierarchical learners over the kernel, in units of perfect minus chance accuracy."""
    kernel = [p.mean("test_accuracy") for p in points if p.setting.estimator == "kernel"]
    others = [p.mean("test_accuracy") for p in points if p.setting.estimator in HIERARCHICAL]
    if not kernel or not others:
        return None
    reach = 1 - 1 / points[0].setting.n_classes
    return float(np.mean(others) - np.mean(kernel)) / reach, 1.0


def crossing_ratios(points: Sequence[Point]) -> float | None:
    """Samples over P* at which the mean accuracy reaches the middle between chance and 1."""
    x = np.array([p.setting.ratio for p in points])
    order = np.argsort(x)
    accuracy = np.array([float(p.mean("test_accuracy")) for p in points])[order]
    middle = (1 + 1 / points[0].setting.n_classes) / 2
    above = np.flatnonzero(accuracy >= middle)
    if not above.size or above[0] == 0:
        return None
    j = int(above[0])
    share = (middle - accuracy[j - 1]) / (accuracy[j] - accuracy[j - 1])
    left, right = np.log(x[order][j - 1]), np.log(x[order][j])
    return float(np.exp(left + share * (right - left)))


def crossing(points: Sequence[Point]) -> tuple[float, float] | None:
    """Logarithm of the crossing over P*, with 0 expected."""
    ratio = crossing_ratios(points)
    return None if ratio is None else (float(np.log(ratio)), 0.0)
