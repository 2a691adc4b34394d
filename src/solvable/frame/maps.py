"""Maps of a metric over two parameters of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from solvable.frame.conditions import Where, covers
from solvable.frame.curves import Axis, Curve
from solvable.frame.panels import suffix_of
from solvable.frame.points import Point
from solvable.plots.figure import Figure, Map, Series
from solvable.plots.numbers import format_number


@dataclass(frozen=True)
class MapPanel:
    """A map: the mean of a metric in each cell of a grid of two parameters."""

    name: str
    title: str
    x: Axis
    y: Axis
    """Parameters on both axes, with labels and scales."""
    value: str | Callable[[Point], np.ndarray]
    """Name of a metric with one number, or ``value(point)`` with one number per replicate."""
    label: str
    """Label of the colour bar."""
    caption: str = ""
    """File name without extension, title, and a sentence on what the map shows."""
    scale: Literal["linear", "log"] = "linear"
    """Scale of the colours."""
    where: Where | None = None
    """Points that are drawn, as in a claim."""

    def __call__(self, curves: Sequence[Curve]) -> list[Figure]:
        """Draw a map for each setting of the other parameters, all with the same colours."""
        points = [p for curve in curves for p in curve.points if covers(self.where, p)]
        axes = (self.x.parameter, self.y.parameter)
        groups: dict[tuple[tuple[str, str], ...], list[Point]] = {}
        for point in points:
            key = tuple((n, str(v)) for n, v in point.parameters.items() if n not in axes)
            groups.setdefault(key, []).append(point)
        names = [n for n, _ in next(iter(groups), ()) if len({dict(k)[n] for k in groups}) > 1]
        figures = [
            self._figure(group, ", ".join(_word(curves, group[0], name) for name in names))
            for group in groups.values()
            if all(len({point.parameters[name] for point in group}) > 1 for name in axes)
        ]
        every = np.concatenate([np.ravel(f.map.values) for f in figures if f.map] + [np.empty(0)])
        if len(figures) < 2 or not np.isfinite(every).any():
            return figures
        limits = float(np.nanmin(every)), float(np.nanmax(every))
        return [replace(f, map=replace(f.map, limits=limits)) for f in figures if f.map]

    def _figure(self, points: Sequence[Point], words: str) -> Figure:
        columns = np.unique([self.x.coordinate(point) for point in points])
        rows = np.unique([self.y.coordinate(point) for point in points])
        values = np.full((rows.size, columns.size), np.nan)
        for point in points:
            row = np.searchsorted(rows, self.y.coordinate(point))
            column = np.searchsorted(columns, self.x.coordinate(point))
            values[row, column] = self._mean(point)
        series, found = self._extremes(columns, rows, values)
        return Figure(
            f"{self.name}{suffix_of(words)}",
            f"{self.title} ({words})" if words else self.title,
            self.x.label,
            self.y.label,
            series,
            " ".join(filter(None, [self.caption, found])),
            x_scale=self.x.scale_from(float(columns[0])),
            y_scale=self.y.scale_from(float(rows[0])),
            map=Map(columns, rows, values, self.label, self.scale),
        )

    def _mean(self, point: Point) -> float:
        if not point.metrics:
            return float("nan")
        values = point.values(self.value) if isinstance(self.value, str) else self.value(point)
        return float(np.mean(values))

    def _extremes(
        self, columns: np.ndarray, rows: np.ndarray, values: np.ndarray
    ) -> tuple[list[Series], str]:
        """Return a symbol at the lowest value, and a sentence with the lowest and the highest."""
        if not np.isfinite(values).any():
            return [], ""
        places = []
        for kind, flat in (("Lowest", np.nanargmin(values)), ("highest", np.nanargmax(values))):
            row, column = np.unravel_index(flat, values.shape)
            x, y = (format_number(float(place), 3) for place in (columns[column], rows[row]))
            number = format_number(float(values[row, column]), 3)
            places.append(f"{kind} value: {number} at {self.x.label} {x}, {self.y.label} {y}")
        row, column = np.unravel_index(int(np.nanargmin(values)), values.shape)
        symbol = Series("lowest", [columns[column]], [rows[row]], "points", colour=1)
        return [symbol], f"{'; '.join(places)}."


def _word(curves: Sequence[Curve], point: Point, name: str) -> str:
    """Return a parameter and its value in the title of a map."""
    return curves[0].axis.word(name, point.parameters[name])
