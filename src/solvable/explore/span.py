"""Ranges of parameters and axes for a page, from constraints and presets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from solvable.frame.points import Point
from solvable.frame.system import System


def preset_values(system: System, name: str) -> list[Any]:
    """Return the values of a parameter in the presets, in order, each once."""
    found = [value for preset in system.presets.values() for value in preset.grid.get(name, ())]
    return list(dict.fromkeys(found))


def span_of(system: System, points: Sequence[Point]) -> tuple[float, float]:
    """Return the range of the axis that holds the presets and these points."""
    axis = system.axis
    assert axis is not None
    places = [axis.coordinate(point) for point in points]
    places += _preset_places(system, points[0])
    known = [x for x in places if np.isfinite(x)]
    return min(known), max(known)


def _preset_places(system: System, point: Point) -> Iterator[float]:
    axis = system.axis
    assert axis is not None
    for value in preset_values(system, axis.parameter):
        if axis.value is None:
            yield float(value)
        else:
            setting = point.setting.model_copy(update={axis.parameter: value})
            yield float(axis.value(setting))
