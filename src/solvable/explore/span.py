"""Ranges of parameters and axes for a page, from constraints and presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.system import System


def preset_values(system: System, name: str) -> list[Any]:
    """Return the values of a parameter in the presets, in order, each once."""
    found = [value for preset in system.presets.values() for value in preset.grid.get(name, ())]
    return list(dict.fromkeys(found))


def span_of(system: System, points: Sequence[Point]) -> tuple[float, float]:
    """Return the range of the axis that holds the presets, these points and their thresholds.

    Presets with other choices, such as another link, do not count if some preset has the same ones.
    """
    axis = system.axis
    assert axis is not None
    places = [axis.coordinate(point) for point in points]
    places += _preset_places(system, points[-1])
    known = [x for x in places if np.isfinite(x)]
    low, high = min(known), max(known)
    if low == high and low > 0:
        low, high = low / 10, high * 10
    near = [x for x in _thresholds(system, points[-1]) if low / 10 < x < high * 10]
    return min([low, *near]), max([high, *near])


def _preset_places(system: System, point: Point) -> Iterator[float]:
    axis = system.axis
    assert axis is not None
    for grid in _nearest_presets(system, point):
        for value in grid.get(axis.parameter, ()):
            if axis.value is None:
                yield float(value)
            else:
                setting = point.setting.model_copy(update={axis.parameter: value})
                yield float(axis.value(setting))


def _nearest_presets(system: System, point: Point) -> list[Mapping[str, Any]]:
    """Return the grids of presets that share most words and switches with a setting."""
    fields = system.parameters.model_fields
    words = {n: v for n, v in point.parameters.items() if isinstance(v, str | bool)}
    grids = [preset.grid for preset in system.presets.values()]
    grids = [grid for grid in grids if system.axis and system.axis.parameter in grid]
    same = [
        sum(value in grid.get(name, (fields[name].default,)) for name, value in words.items())
        for grid in grids
    ]
    return [grid for grid, count in zip(grids, same, strict=True) if count == max(same)]


def _thresholds(system: System, point: Point) -> Iterator[float]:
    """Return the predicted places of vertical lines on the axis of the system."""
    for panel in system.panels:
        if isinstance(panel, Panel) and isinstance(panel.markers, Mapping) and not panel.along:
            for name in panel.markers if panel.against is None else ():
                value = point.prediction.get(name)
                places = value if isinstance(value, list) else [value]
                yield from (float(x) for x in places if isinstance(x, int | float) and x > 0)
