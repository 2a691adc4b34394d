"""Points of a study grouped into named curves, with theory lines between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from solvable.errors import InvalidParameter
from solvable.frame.parameters import fields_of, filled
from solvable.frame.points import (
    NO_PREDICTION,
    RAISED,
    Metrics,
    Point,
    has_raised,
    raised_prediction,
)
from solvable.frame.theory_lines import LineBudget, interpolated, predict_within
from solvable.paths import error_line


@dataclass(frozen=True)
class Axis:
    """The parameter along which a system is drawn, and the format of its values."""

    parameter: str
    """Name of the parameter."""
    label: str
    """Axis label with unit."""
    ignore: tuple[str, ...] = ()
    """Further parameters in which the points of one curve may differ."""
    value: Callable[[Any], float] | None = None
    """``value(setting)``: coordinate of a point; default the parameter itself."""
    point_name: str | Callable[[Any], str] | None = None
    """Words that name a point in sentences, with names of parameters in braces, such as "n/d =
    {sample_ratio:0.4g}", or ``point_name(setting)``; default name and value."""
    words: Mapping[str, str | Callable[[Any], str]] = field(default_factory=dict)
    """Format of a parameter in the name of a curve, such as ``{"noise": "noise {:g}"}``, or a function
    from its value to text; default its name and value. An empty format leaves the parameter out of the
    name."""
    scale: Literal["log", "linear"] = "log"
    """Scale of the axis and of the grid of the theory line."""
    margin: float = 1.4
    """Theory lines reach beyond the points by this factor (share of the range if linear)."""
    resolution: int = 60
    """Points of a theory line."""

    def coordinate(self, point: Point) -> float:
        """Return the coordinate of a point on the axis."""
        if self.value is not None:
            return float(self.value(point.setting))
        return float(point.parameters[self.parameter])

    def scale_from(self, low: float) -> Literal["log", "linear"]:
        """Return the scale of an axis for these coordinates: linear if one of them is zero."""
        return self.scale if low > 0 else "linear"

    def grid(self, low: float, high: float) -> np.ndarray:
        """Coordinates of a theory line around points between these."""
        if self.scale_from(low) == "log":
            return np.geomspace(low / self.margin, high * self.margin, self.resolution)
        reach = (self.margin - 1) * (high - low or abs(low) or 1.0)
        start = low - reach if low < 0 else max(low - reach, 0.0)  # sizes are never negative
        return np.linspace(start, high + reach, self.resolution)

    def word(self, name: str, value: Any) -> str:
        """A parameter and its value in the name of a curve."""
        words = self.words.get(name, f"{name.replace('_', ' ')} {{}}")
        return words.format(value) if isinstance(words, str) else words(value)


def place(point: Point, axis: Axis | None) -> str:
    """Format a place in the study."""
    if axis is None or point.setting is None:
        return ", ".join(f"{name} = {value}" for name, value in point.parameters.items())
    if isinstance(axis.point_name, str):
        return filled(axis.point_name, point.setting)
    if axis.point_name is not None:
        return axis.point_name(point.setting)
    return f"{axis.parameter} = {axis.coordinate(point):.4g}"


@dataclass(frozen=True)
class Curve:
    """Points of one setting along the axis, and predictions on a finer grid."""

    points: tuple[Point, ...]
    """Ascending along the axis."""
    axis: Axis
    """Axis along which the points differ."""
    predict: Callable[[Any, np.ndarray], Sequence[Metrics]] = field(repr=False)
    """``predict(setting, coordinates) -> list of metrics``: predictions along the axis."""
    raised: list[str] = field(default_factory=list, repr=False, compare=False)
    """A line for each exception of the theory line, filled when it is first predicted."""
    budget: LineBudget | None = field(default=None, repr=False, compare=False)
    """CPU seconds for theory lines; without a budget every grid value is predicted."""
    theory: Callable[[Any], Metrics] | None = field(default=None, repr=False, compare=False)
    """``theory(setting) -> metrics``: the prediction at one setting."""
    places: np.ndarray | None = field(default=None, repr=False, compare=False)
    """Coordinates of the theory line; default those of the axis around the points."""
    columns: tuple[tuple[Point, ...], ...] = field(default=(), repr=False, compare=False)
    """Only for a curve along another parameter: for each of its values, all points along the system's
    axis."""

    @property
    def setting(self) -> Any:
        """Parameters of the first point."""
        return self.points[0].setting

    @cached_property
    def x(self) -> np.ndarray:
        """Coordinates of the points."""
        return np.array([self.axis.coordinate(point) for point in self.points])

    @cached_property
    def grid(self) -> np.ndarray:
        """Coordinates of the theory line."""
        if self.places is not None:
            return self.places
        return self.axis.grid(float(self.x[0]), float(self.x[-1]))

    @cached_property
    def predictions(self) -> Sequence[Metrics]:
        """Predictions along the grid, made once for all panels; empty where there is no prediction."""
        try:
            found = self._predicted
        except Exception as error:
            # The points report the reason if theory refuses this setting.
            refuses = isinstance(error, InvalidParameter) and any(p.refusal for p in self.points)
            if not refuses:
                self.raised.append(error_line(error))
            return [{} for _ in self.grid]
        marks = [str(metrics[NO_PREDICTION]) for metrics in found if has_raised(metrics)]
        if marks:
            line = marks[0].removeprefix(RAISED)
            self.raised.append(f"{line} (at {len(marks)} of {len(found)} places)")
        return [
            {name: value for name, value in metrics.items() if name != NO_PREDICTION}
            if has_raised(metrics)
            else metrics
            for metrics in found
        ]

    @cached_property
    def _nodes(self) -> dict[float, Metrics]:
        """Predictions by coordinate: at the points, and on the grid within the budget."""
        assert self.budget is not None
        along = partial(self.predict, self.setting)
        found = predict_within(along, self.grid, self.budget)
        nodes = {float(self.grid[place]): metrics for place, metrics in found.items()}
        return nodes | {
            float(x): point.prediction
            for x, point in zip(self.x, self.points, strict=True)
            if not point.refused
        }

    @cached_property
    def _predicted(self) -> Sequence[Metrics]:
        """Predictions along the grid, interpolated where not all of them are affordable."""
        if self.budget is None:
            return self.predict(self.setting, self.grid)
        if set(self.grid.tolist()) <= self._nodes.keys():
            return _without_gaps([self._nodes[float(x)] or None for x in self.grid])
        log = self.axis.scale_from(float(self.grid[0])) == "log"
        return interpolated(self._nodes, self.grid, log=log)

    @property
    def interpolated_between(self) -> int | None:
        """Number of predictions between which the line is interpolated.

        None without interpolation, or if no line was drawn so far.
        """
        if self.budget is None or "predictions" not in vars(self) or not any(self.predictions):
            return None
        complete = set(self.grid.tolist()) <= self._nodes.keys()
        return None if complete else len(self._nodes)

    def line(self, name: str) -> np.ndarray:
        """A predicted quantity along the grid, shape (grid,) or (grid, length)."""
        if not any(self.predictions):
            return np.full(self.grid.shape, np.nan)
        return stacked([np.asarray(metrics[name], dtype=float) for metrics in self.predictions])

    def measured(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard errors of a metric, shape (points,) or (points, length) each."""
        values = stacked([point.mean(name) for point in self.points])
        return values, stacked([point.standard_error(name) for point in self.points])

    def where(self, **values: Any) -> Curve | None:
        """Return the part of the curve at which parameters have these values."""
        chosen = tuple(
            point
            for point in self.points
            if all(point.parameters[name] == value for name, value in values.items())
        )
        return replace(self, points=chosen) if chosen else None


def stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Stack numbers or lists along the axis, and fill shorter lists with NaN."""
    longest = max((row.size for row in rows if row.ndim), default=None)
    if longest is None:
        return np.array(rows)
    stacked = np.full((len(rows), longest), np.nan)
    for place, row in enumerate(rows):
        stacked[place, : row.size] = row
    return stacked


def predict_each(
    predict: Callable[[Any], Metrics], axis: Axis
) -> Callable[[Any, np.ndarray], list[Metrics]]:
    """Predict along the axis, one call per coordinate; integer parameters get integers."""
    # The line has a gap where there is no prediction; a gap after an exception holds it.

    def along(setting: Any, coordinates: np.ndarray) -> list[Metrics]:
        values, model = fields_of(setting), type(setting)
        whole = isinstance(values[axis.parameter], int)

        def at(x: float) -> Any:
            return model(**{**values, axis.parameter: round(x) if whole else x})

        return predictions_at(predict, [partial(at, float(x)) for x in coordinates])

    return along


def predictions_at(
    predict: Callable[[Any], Metrics], settings: Sequence[Callable[[], Any]]
) -> list[Metrics]:
    """Predict at settings that may be refused; the line has a gap there."""
    found: list[Metrics | None] = []
    for setting in settings:
        try:
            found.append(predict(setting()))
        except (ValidationError, InvalidParameter):
            # A line ends where parameters or theory refuse the setting.
            found.append(None)
        except Exception as error:
            found.append(raised_prediction(error_line(error)))
    return _without_gaps(found)


def _without_gaps(found: Sequence[Metrics | None]) -> list[Metrics]:
    """Replace refused or failed predictions by NaN of the same shape."""
    known = next((one for one in found if one is not None and not has_raised(one)), {})
    gap: Metrics = {}
    for name, value in known.items():
        gap[name] = [None] * len(value) if isinstance(value, list) else None
    return [
        gap if metrics is None else {**gap, **metrics} if has_raised(metrics) else metrics
        for metrics in found
    ]


def curves_of(
    points: Sequence[Point],
    axis: Axis,
    predict: Callable[[Any, np.ndarray], Sequence[Metrics]],
    seconds: float | None = None,
    theory: Callable[[Any], Metrics] | None = None,
) -> list[Curve]:
    """Group points that differ along the axis alone; curves in the order of the study."""
    # `seconds` limits the CPU time of theory lines, which are then interpolated.
    skipped = {axis.parameter, *axis.ignore}
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        key = tuple(str(value) for name, value in point.parameters.items() if name not in skipped)
        groups.setdefault(key, []).append(point)
    budget = None if seconds is None else LineBudget(seconds, len(groups))
    return [
        Curve(
            tuple(sorted(group, key=axis.coordinate)), axis, predict, budget=budget, theory=theory
        )
        for group in groups.values()
    ]


def varying(curves: Sequence[Curve], *, besides: Sequence[str] = ()) -> list[str]:
    """Return the names of the parameters in which these curves differ."""
    if not curves:
        return []
    skipped = {curves[0].axis.parameter, *curves[0].axis.ignore, *besides}
    settings = [curve.points[0].parameters for curve in curves]
    return [
        name
        for name in settings[0]
        if name not in skipped
        and curves[0].axis.words.get(name, name)
        and len({str(setting[name]) for setting in settings}) > 1
    ]


def words_of(curve: Curve, names: Sequence[str]) -> str:
    """Name a curve by the values of these parameters."""
    parameters = curve.points[0].parameters
    return ", ".join(curve.axis.word(name, parameters[name]) for name in names)
