"""Traces of a panel: theory line and measured points of one quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.curves import Curve, stacked
from solvable.frame.judging import metrics_read
from solvable.frame.parameters import filled
from solvable.frame.points import Metrics, Point
from solvable.plots.figure import Marker, Series

MOST_ENTRIES = 11
"""Largest number of list entries in a figure; of longer lists, logarithmically spaced ranks."""


@dataclass(frozen=True)
class Trace:
    """One quantity of a panel: the predicted line and the measured points, in one colour."""

    metric: str
    """Name of the metric; each entry of a list has its own line and points."""
    label: str = ""
    """Name in the legend, with names of parameters in braces such as "d = {dimension}"; for a list, the
    name of an entry, such as "feature"."""
    theory: str | None = ""
    """Name of the predicted quantity; default the name of the metric, None for no line."""
    measured: bool = True
    """True to draw points, if the metric was measured."""
    dashed: bool = False
    """True for a dashed line, as for a variant or a bound. Without theory a dashed line joins the
    measured values."""
    names: Callable[[Any], Sequence[str]] | None = None
    """``names(setting)``: names of the entries of a list."""
    scale: Callable[[Any], Any] | None = None
    """``scale(setting)``: divisor of the values, a number or one per entry."""
    mean: bool = False
    """True to average the entries of a list into one value."""
    shown: Callable[[Curve, str, np.ndarray], np.ndarray] | None = None
    """``shown(curve, name, line) -> line``: the predicted values, with NaN where the line has a gap."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values of ignored parameters that select points, such as ``{"sensing": "goe"}``."""
    colour: int | Callable[[Any], int] | None = None
    """Index of the colour in a figure of one curve, or ``colour(setting)``; default the position of the
    trace. For a list, the colour of its first entry, by default 0."""
    alone: bool = False
    """True to leave the trace out of figures with several curves."""
    value: Callable[[Point], Any] | None = None
    """``value(point)``: measured values instead of a metric: an array (replicates,) or (replicates,
    length), a pair of mean and error, or None."""
    reduce: Callable[[Sequence[Point]], Any] | None = None
    """``reduce(points)``: quantity computed from all points along the system's axis, such as a
    threshold, for a panel along another parameter: a number, a list, or a pair of value and error."""


def spread_entries(count: int) -> list[int]:
    """Return the list entries that are drawn."""
    if count <= MOST_ENTRIES:
        return list(range(count))
    return sorted({round(rank) - 1 for rank in np.geomspace(1, count, MOST_ENTRIES)})


_Points = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Coordinates, means, errors, and which points are hollow."""


def judged(trace: Trace, point: Point) -> bool:
    """Return True if a claim judges the trace's metric at a point, or if claims are unknown."""
    if trace.metric or trace.value is None:
        return point.judges({trace.metric})
    return point.judges(metrics_read(trace.value, point))


def draw_trace(trace: Trace, curve: Curve, words: str, colour: int, *, alone: bool) -> list[Series]:
    """Return line and points of a quantity, for each entry of a list."""
    label = ", ".join(filter(None, (words, _label(trace, curve))))
    first = trace.colour(curve.setting) if callable(trace.colour) else trace.colour
    colour = first if first is not None and alone else colour
    unit = np.asarray(1.0 if trace.scale is None else trace.scale(curve.setting))
    name = trace.metric if trace.theory == "" else trace.theory
    line = None if name is None else _line(trace, curve, name, unit)
    points = _points(trace, curve, unit)
    label = label or ("theory" if points is None else "measured")
    kind: Literal["line", "dashed"] = "dashed" if trace.dashed else "line"
    sample = line if line is not None else (points[1] if points is not None else None)
    if sample is None:
        return []
    if sample.ndim == 1:
        return _pair(label, curve, line, points, colour, kind, named=not trace.dashed)
    entries = list(trace.names(curve.setting)) if trace.names else None
    series: list[Series] = []
    for rank, entry in enumerate(spread_entries(sample.shape[1])):
        own = entries[entry] if entries else f"{label} {entry + 1}"
        if not alone:
            own = label if entries is None else ", ".join(filter(None, (words, own)))
        cut = None
        if points is not None:
            x, values, errors, hollow = points
            cut = (x, values[:, entry], errors[:, entry], hollow)
        part = None if line is None else line[:, entry]
        series += _pair(
            own,
            curve,
            part,
            cut,
            rank + (first or 0) if alone else colour,
            kind,
            named=not trace.dashed,
        )
    return series


def _line(trace: Trace, curve: Curve, name: str, unit: np.ndarray) -> np.ndarray | None:
    if not any(curve.predictions):
        return None  # no point of the curve has a prediction
    if name not in curve.predictions[0]:
        raise _unknown(name, curve.predictions[0])
    line = curve.line(name)
    if not np.isfinite(line).any():
        return None
    if trace.mean and line.ndim == 2:
        line = line.mean(axis=1)
    line = line / unit
    if trace.shown is not None:
        line = trace.shown(curve, name, line)
    return line if np.isfinite(line).any() else None


def _unknown(name: str, prediction: Metrics) -> InvalidParameter:
    return InvalidParameter(
        f"a panel names the quantity {name!r}, which predict does not return; allowed: "
        f"{', '.join(prediction)}. Correct the panel's row."
    )


def _points(trace: Trace, curve: Curve, unit: np.ndarray) -> _Points | None:
    """Return the measured values along a curve."""
    part = curve.where(**trace.where) if trace.where else curve
    if not trace.measured or part is None or not any(point.metrics for point in part.points):
        return None
    if trace.reduce is not None:
        if not curve.columns:
            raise InvalidParameter(
                f"a trace of {trace.metric!r} has a `reduce`, but its panel has no `along`; allowed: "
                "`reduce` in a panel with `along`. Correct the panel's row."
            )
        rows = [_mean_and_error(trace.reduce(points)) for points in curve.columns]
        hollow = np.zeros(len(rows), dtype=bool)
    else:
        rows = [_measured(trace, point) for point in part.points]
        hollow = np.array([not judged(trace, point) for point in part.points])
    values, errors = (stacked(column) for column in zip(*rows, strict=True))
    if not np.isfinite(values).any():
        return None
    return part.x, values / unit, errors / np.abs(unit), hollow


def _measured(trace: Trace, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error of a trace at a point; NaN without replicates."""
    if not point.metrics:
        return np.array(np.nan), np.array(np.nan)
    if trace.value is not None:
        value = trace.value(point)
        if value is None or isinstance(value, tuple):
            return _mean_and_error(np.nan if value is None else value)
        values = np.asarray(value, dtype=float)
    else:
        if not point.former and any(trace.metric not in metrics for metrics in point.metrics):
            raise InvalidParameter(
                f"a panel names the metric {trace.metric!r}, which measure does not return; "
                f"allowed: {', '.join(point.metrics[0])}. Correct the panel's row."
            )
        values = point.values(trace.metric)
    if trace.mean:
        rows = np.ma.masked_invalid(values.reshape(len(values), -1))
        values = np.ma.filled(rows.mean(axis=1), np.nan)
    if len(values) < 2:
        return values.mean(axis=0), np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def _mean_and_error(value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a pair of value and error; the error of a single value is NaN."""
    if isinstance(value, tuple):
        return np.asarray(value[0], dtype=float), np.asarray(value[1], dtype=float)
    mean = np.asarray(value, dtype=float)
    return mean, np.full(mean.shape, np.nan)


def draw_against(
    against: str | Callable[[Point], Any], trace: Trace, curve: Curve, words: str, colour: int
) -> list[Series]:
    """Return one series for each point: the entries of a list metric against those of another one."""
    name = trace.metric if trace.theory == "" else trace.theory
    kind: Literal["line", "dashed"] = "dashed" if trace.dashed else "line"
    rows = []
    nothing = np.array(np.nan)
    for point in curve.points:
        if not isinstance(against, str):
            x = against(point)
        else:
            x = point.mean(against) if point.metrics else _expected(point, against)
        y, error = _measured(trace, point) if trace.measured else (nothing, nothing)
        line = None if name is None or point.refused else point.predicted(name)
        rows.append((point, np.asarray(x, dtype=float), y, error, line))
    label = ", ".join(filter(None, (words, _label(trace, curve)))) or "measured"
    if all(x.ndim == 0 for _, x, *_ in rows):
        line = None if name is None else curve.line(name)
        xs = None if line is None or not isinstance(against, str) else curve.line(against)
        series = []
        if xs is not None and line is not None and np.isfinite(line).any():
            series.append(Series(label, xs, line, kind, None, colour))
        columns = (np.array([row[k] for row in rows], dtype=float) for k in (1, 2, 3))
        x, y, error = columns
        if not any(point.metrics for point, *_ in rows):
            return series
        marks = [not judged(trace, point) for point, *_ in rows]
        return [
            *series,
            Series(label, x, y, "points", error, colour, marks if any(marks) else None),
        ]
    once = colour < 0
    several, reach = len(rows) > 1 and not once, np.concatenate([x for _, x, *_ in rows])
    series = []
    for k, (point, x, y, error, line) in enumerate(rows[:1] if once else rows):
        first = trace.colour if isinstance(trace.colour, int) and not several else 0
        shade = colour if once else (colour * len(rows) if words else first or 0) + k
        axis = curve.axis
        where = axis.word(axis.parameter, point.parameters[axis.parameter]) if several else ""
        label = ", ".join(filter(None, (words, where, _label(trace, curve)))) or "measured"
        if line is not None and np.isfinite(line).any():
            theory = f"{label}, theory" if trace.measured and not trace.dashed else label
            level = np.broadcast_to(line, x.shape)
            if trace.shown is not None:
                level = trace.shown(curve, str(name), level)
            series.append(Series(theory, x, level, kind, colour=shade))
        elif trace.dashed and np.isfinite(y).any():  # measured values of a reference method
            level = reach if once else x
            ends = x if np.ndim(y) else np.array([level.min(), level.max()])
            series.append(Series(label, ends, np.broadcast_to(y, ends.shape), kind, None, shade))
        if trace.measured and not trace.dashed and np.isfinite(y).any():
            outline = None if judged(trace, point) else [True] * x.size
            series.append(Series(label, x, y, "points", error, shade, outline))
    return series


def _expected(point: Point, name: str) -> np.ndarray:
    """Return a predicted metric; NaN if it is not predicted."""
    return point.predicted(name) if name in point.prediction else np.array(np.nan)


def _pair(
    label: str,
    curve: Curve,
    line: np.ndarray | None,
    points: _Points | None,
    colour: int,
    kind: Literal["line", "dashed"],
    *,
    named: bool,
) -> list[Series]:
    """Return the series of a prediction and its measurement, in one colour."""
    series = []
    if line is not None:
        name = f"{label}, theory" if named and points is not None else label
        series.append(Series(name, curve.grid, line, kind, colour=colour))
    if points is not None:
        reference = kind == "dashed" and line is None  # measured values of a reference method
        x, values, errors, hollow = points
        if reference:
            series.append(Series(label, x, values, kind, None, colour))
        else:
            marks = hollow if hollow.any() else None
            series.append(Series(label, x, values, "points", errors, colour, marks))
    return series


def _label(trace: Trace, curve: Curve) -> str:
    return filled(trace.label, curve.setting) if "{" in trace.label else trace.label


def draw_markers(markers: Mapping[str, str], curve: Curve, colour: int | None) -> list[Marker]:
    """Return vertical lines at predicted places inside the figure."""
    drawn = []
    for name, label in markers.items():
        point = next((point for point in curve.points if not point.refused), None)
        if point is None:
            continue
        if name not in point.prediction:
            raise _unknown(name, point.prediction)
        value = point.predicted(name)
        for entry in spread_entries(value.size):
            x = float(value.reshape(-1)[entry])
            if not curve.grid[0] < x < curve.grid[-1]:
                continue
            if value.ndim == 0:
                drawn.append(
                    Marker(x, label if colour is None else "", -1 if colour is None else colour)
                )
            else:
                words = f"{label} {entry + 1}" if label and value.size > 1 else label
                shade = spread_entries(value.size).index(entry) if colour is None else colour
                drawn.append(Marker(x, words, shade))
    return drawn
