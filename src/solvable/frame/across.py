"""Curves along a parameter other than the system's axis, in one figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from pydantic import ValidationError

from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame.curves import Axis, Curve, predictions_at
from solvable.frame.parameters import fields_of
from solvable.frame.points import Metrics, Point
from solvable.frame.theory_lines import LineBudget

MOST_PLACES = 5
"""Largest number of axis values that a figure along another parameter shows."""


def axis_along(along: str | Axis, system: Axis) -> Axis:
    """Return the axis of a panel along a parameter, with the formats of the system's axis."""
    # A theory line has at most as many places as one along the system's axis.
    if isinstance(along, str):
        along = Axis(along, along.replace("_", " "))
    return replace(
        along,
        resolution=min(along.resolution, system.resolution),
        words={**system.words, **along.words},
        ignore=tuple(dict.fromkeys((*system.ignore, *along.ignore))),
    )


def spread_places(places: Sequence[float]) -> list[float]:
    """Choose values on the system's axis: both ends and some between."""
    chosen = np.linspace(0, len(places) - 1, min(len(places), MOST_PLACES)).round().astype(int)
    return [places[k] for k in chosen]


def curves_across(
    curves: Sequence[Curve],
    along: str | Axis,
    at: Callable[[Sequence[float]], Sequence[float]] | None = None,
    *,
    whole: bool = False,
) -> list[Curve]:
    """Build curves along a parameter, one for each value on the system's axis."""
    # With `whole`, one curve holds all axis values, for quantities computed from a whole curve.
    if not curves:
        return []
    system = curves[0].axis
    axis = axis_along(along, system)
    known = curves[0].points[0].parameters
    if axis.parameter not in known:
        raise InvalidParameter(unknown_choice("along", axis.parameter, sorted(known)))
    if axis.parameter == system.parameter:
        return [_in_other_coordinates(curve, axis) for curve in curves]
    apart = {axis.parameter, system.parameter, *axis.ignore}
    groups: dict[tuple[str, ...], dict[float, list[Point]]] = {}
    for curve in curves:
        for point in curve.points:
            key = tuple(str(v) for name, v in point.parameters.items() if name not in apart)
            groups.setdefault(key, {}).setdefault(axis.coordinate(point), []).append(point)
    chosen: list[list[Point]] = []
    columns = []
    for group in groups.values():
        if len(group) < 2:
            continue  # the parameter has one value in this study
        column = [tuple(sorted(group[x], key=system.coordinate)) for x in sorted(group)]
        if whole:
            chosen.append([_first_predicted(points) for points in column])
            columns.append(tuple(column))
            continue
        shared = set.intersection(*({system.coordinate(p) for p in points} for points in column))
        for place in (at or spread_places)(sorted(shared)) if shared else ():
            points = [p for part in column for p in part if system.coordinate(p) == place]
            chosen.append(points)
            columns.append(())
    budget = curves[0].budget
    if budget is not None:
        budget.curves += len(chosen)
    return [
        _along(tuple(points), axis, curves[0].theory, budget, column)
        for points, column in zip(chosen, columns, strict=True)
    ]


def _first_predicted(points: Sequence[Point]) -> Point:
    return next((point for point in points if not point.refused), points[0])


def _along(
    points: tuple[Point, ...],
    axis: Axis,
    theory: Callable[[Any], Metrics] | None,
    budget: LineBudget | None,
    columns: tuple[tuple[Point, ...], ...],
) -> Curve:
    """Build a curve whose theory line is also evaluated between the measured parameter values."""
    settings = {axis.coordinate(point): point.setting for point in points}
    if theory is not None:
        settings = _between(points, axis) | settings
    known = {axis.coordinate(point): point.prediction for point in points if not point.refused}

    def at(x: float) -> Metrics:
        if x in known or theory is None:
            return known.get(x, {})
        return theory(settings[x])

    def predict(_: Any, coordinates: np.ndarray) -> list[Metrics]:
        return predictions_at(at, [partial(float, x) for x in coordinates])

    places = np.array(sorted(settings))
    return Curve(points, axis, predict, budget=budget, places=places, columns=columns)


def _between(points: Sequence[Point], axis: Axis) -> dict[float, Any]:
    """Return settings between the measured ones, by coordinate; none if the parameter is not a number."""
    values = [point.parameters[axis.parameter] for point in points]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return {}
    places: Any = replace(axis, margin=1.0).grid(min(values), max(values))
    if all(isinstance(value, int) for value in values):
        places = sorted({round(place) for place in places})
    found = {}
    for place in places:
        fields = {**fields_of(points[0].setting), axis.parameter: _plain(place)}
        try:
            setting = type(points[0].setting)(**fields)
            found[float(place if axis.value is None else axis.value(setting))] = setting
        except (ValidationError, InvalidParameter):
            continue  # the setting is not allowed: the line has a gap there
    return found


def _plain(place: Any) -> float | int:
    return place if isinstance(place, int) else float(place)


def _in_other_coordinates(curve: Curve, axis: Axis) -> Curve:
    """Return the curve with the x coordinates given by another function of the setting."""
    fields, name = fields_of(curve.setting), axis.parameter
    whole = isinstance(fields[name], int)
    coordinate = axis.value or (lambda setting: float(getattr(setting, name)))
    places = np.full(curve.grid.shape, np.nan)
    for k, place in enumerate(curve.grid):
        value = round(place) if whole else float(place)
        try:
            places[k] = coordinate(type(curve.setting)(**{**fields, name: value}))
        except (ValidationError, InvalidParameter):
            continue  # outside the allowed range
    return replace(
        curve, axis=axis, places=places, budget=None, predict=lambda *_: curve.predictions
    )
