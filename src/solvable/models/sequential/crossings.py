"""Sample sizes at which overlaps pass a level, and where the formulas hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.frame.agreement import Cell
from solvable.frame.points import Point
from solvable.models.sequential.parameters import AXIS, SequentialParameters

RESOLVED = 0.5
"""Predicted squared overlap above which a feature counts as recovered."""

ASYMPTOTIC = 30
"""Smallest number of samples per feature, n/D, at which heavy tails of the labels no longer matter."""

ALONG = (AXIS.parameter, *AXIS.ignore)
"""Names of the parameters in which the points of one curve may differ."""


def least_ratio(setting: SequentialParameters) -> float:
    """Smallest n/D for errors and exponents: a quarter for bounded labels, twice for a skewed bulk."""
    bounded = 1.0 if setting.label_map == "identity" else 0.25
    return ASYMPTOTIC * bounded * (2 if setting.skewed else 1)


def large_enough(cell: Cell | Point) -> bool:
    """Return True if n/D is large enough for errors and exponents."""
    return bool(cell.setting.samples_per_feature >= least_ratio(cell.setting))


def overlap_tables(points: Sequence[Point]) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Sample sizes, and measured and predicted overlaps (m, p) of a curve; None for different shapes."""
    curve = sorted(points, key=AXIS.coordinate)
    measured = [np.atleast_1d(point.mean("squared_overlap")) for point in curve]
    predicted = [np.atleast_1d(point.predicted("squared_overlap")) for point in curve]
    if len({row.shape for row in (*measured, *predicted)}) > 1:
        return None
    samples = np.array([AXIS.coordinate(point) for point in curve])
    return samples, np.array(measured), np.array(predicted)


def crossings(samples: np.ndarray, overlaps: np.ndarray, level: float = RESOLVED) -> np.ndarray:
    """Sample size at which each column of overlaps first exceeds a level; NaN if it stays below."""
    sizes, logs = np.full(overlaps.shape[1], np.nan), np.log(samples)
    for i, column in enumerate(overlaps.T):
        k = int(np.argmax(column >= level))
        if k:
            part = (level - column[k - 1]) / (column[k] - column[k - 1])
            sizes[i] = np.exp(logs[k - 1] + part * (logs[k] - logs[k - 1]))
    return sizes
