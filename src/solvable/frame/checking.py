"""What the claims of several systems share: grouping points, and the finding that decides."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from solvable.frame.claims import worst
from solvable.frame.points import Point

__all__ = ["BOOKKEEPING", "groups", "spread", "worst"]

BOOKKEEPING = ("samples", "kernel_samples", "spectrum_samples")
"""Parameters in which the points of one curve may differ."""


def spread(point: Point, name: str) -> np.ndarray:
    """Standard error of a metric, zero where one replicate cannot tell."""
    return np.nan_to_num(point.standard_error(name))


def groups(points: Iterable[Point]) -> list[list[Point]]:
    """Points that differ in the sample size alone, each group sorted by it."""
    found: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        key = tuple(value for name, value in point.parameters.items() if name not in BOOKKEEPING)
        found.setdefault(key, []).append(point)
    return [sorted(group, key=lambda one: one.parameters["samples"]) for group in found.values()]
