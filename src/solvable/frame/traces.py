"""Traces of a panel: lines of the theory and measured points of one quantity."""

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
"""Entries of a list that one figure shows; with more, ranks are spread evenly in their logarithm."""


@dataclass(frozen=True)
class Trace:
    """One quantity of a panel: the predicted line and the measured points, in one colour.

    Parameters
    ----------
    metric : str
        Name of the metric. A list gives a line and points for each entry.
    label : str
        Name in the legend, with names of parameters in braces such as "d = {dimension}"; of a list,
        what an entry is called, such as "feature".
    theory : str or None
        Name of the predicted quantity; default that of the metric, None for no line.
    measured : bool
        Whether points are drawn; a metric that was nowhere measured has none in any case.
    dashed : bool
        Whether the line is dashed, as for a variant or a bound; without theory it joins the measured
        values.
    names : callable, optional
        ``names(setting)``: names of the entries of a list.
    scale : callable, optional
        ``scale(setting)``: what values are divided by, a number or one for each entry.
    mean : bool
        Whether the entries of a list are averaged into one value.
    shown : callable, optional
        ``shown(curve, name, line) -> line``: the predicted values with NaN where none is drawn.
    where : mapping
        Values of ignored parameters at which points are taken, such as ``{"sensing": "goe"}``.
    colour : int or callable, optional
        Colour in a figure of one curve, or ``colour(setting)``; default the position of the trace. Of a
        list, the colour of its first entry, by default 0.
    alone : bool
        Whether it is drawn in figures of one curve alone.
    value : callable, optional
        ``value(point)``: what is measured, in place of a metric: an array (replicates,) or
        (replicates, length), or a pair of mean and error; None where nothing is.
    reduce : callable, optional
        ``reduce(points)``: what all points along the system's axis give together, such as the
        place of a threshold, in a panel along another parameter: a number, a list, or a pair of
        value and error.
    """

    metric: str
    label: str = ""
    theory: str | None = ""
    measured: bool = True
    dashed: bool = False
    names: Callable[[Any], Sequence[str]] | None = None
    scale: Callable[[Any], Any] | None = None
    mean: bool = False
    shown: Callable[[Curve, str, np.ndarray], np.ndarray] | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    colour: int | Callable[[Any], int] | None = None
    alone: bool = False
    value: Callable[[Point], Any] | None = None
    reduce: Callable[[Sequence[Point]], Any] | None = None


def spread_entries(count: int) -> list[int]:
    """Entries of a list that are drawn."""
    if count <= MOST_ENTRIES:
        return list(range(count))
    return sorted({round(rank) - 1 for rank in np.geomspace(1, count, MOST_ENTRIES)})


_Points = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Coordinates, means, errors, and which are hollow."""


def judged(trace: Trace, point: Point) -> bool:
    """Whether some claim judges what a trace measures at a point, or nothing is known of claims."""
    if trace.metric or trace.value is None:
        return point.judges({trace.metric})
    return point.judges(metrics_read(trace.value, point))


def draw_trace(trace: Trace, curve: Curve, words: str, colour: int, *, alone: bool) -> list[Series]:
    """Line and points of a quantity, for each entry if it is a list."""
    label = ", ".join(filter(None, (words, _label(trace, curve)))) or "measured"
    first = trace.colour(curve.setting) if callable(trace.colour) else trace.colour
    colour = first if first is not None and alone else colour
    unit = np.asarray(1.0 if trace.scale is None else trace.scale(curve.setting))
    name = trace.metric if trace.theory == "" else trace.theory
    line = None if name is None else _line(trace, curve, name, unit)
    points = _points(trace, curve, unit)
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
        return None  # theory refuses the whole curve
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
    """Measured values along a curve."""
    part = curve.where(**trace.where) if trace.where else curve
    if not trace.measured or part is None:
        return None
    if trace.reduce is not None:
        if not curve.columns:
            raise InvalidParameter(
                f"a trace of {trace.metric!r} has a `reduce` in a panel along the system's axis; "
                "allowed: in a panel with `along`. Correct the panel's row."
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
    """Mean and standard error of a trace at a point."""
    if trace.value is not None:
        value = trace.value(point)
        if value is None or isinstance(value, tuple):
            return _mean_and_error(np.nan if value is None else value)
        values = np.asarray(value, dtype=float)
    else:
        if any(trace.metric not in metrics for metrics in point.metrics):
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
    """A pair of value and error as it is; of a value alone the error is not known."""
    if isinstance(value, tuple):
        return np.asarray(value[0], dtype=float), np.asarray(value[1], dtype=float)
    mean = np.asarray(value, dtype=float)
    return mean, np.full(mean.shape, np.nan)


def draw_against(
    against: str | Callable[[Point], Any], trace: Trace, curve: Curve, words: str, colour: int
) -> list[Series]:
    """A trace against another metric; a list against a list, for each point of the curve."""
    name = trace.metric if trace.theory == "" else trace.theory
    kind: Literal["line", "dashed"] = "dashed" if trace.dashed else "line"
    rows = []
    nothing = np.array(np.nan)
    for point in curve.points:
        x = point.mean(against) if isinstance(against, str) else against(point)
        y, error = _measured(trace, point) if trace.measured else (nothing, nothing)
        line = None if name is None or point.refused else point.predicted(name)
        rows.append((point, np.asarray(x, dtype=float), y, error, line))
    label = ", ".join(filter(None, (words, _label(trace, curve)))) or "measured"
    if all(x.ndim == 0 for _, x, *_ in rows):
        line = None if name is None else curve.line(name)
        xs = None if line is None or not isinstance(against, str) else curve.line(against)
        series = [] if xs is None or line is None else [Series(label, xs, line, kind, None, colour)]
        columns = (np.array([row[k] for row in rows], dtype=float) for k in (1, 2, 3))
        x, y, error = columns
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
        elif trace.dashed and np.isfinite(y).any():  # measured values of a reference
            level = reach if once else x
            ends = x if np.ndim(y) else np.array([level.min(), level.max()])
            series.append(Series(label, ends, np.broadcast_to(y, ends.shape), kind, None, shade))
        if trace.measured and not trace.dashed and np.isfinite(y).any():
            outline = None if judged(trace, point) else [True] * x.size
            series.append(Series(label, x, y, "points", error, shade, outline))
    return series


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
    """A prediction and its measurement, in one colour."""
    series = []
    if line is not None:
        name = f"{label}, theory" if named and points is not None else label
        series.append(Series(name, curve.grid, line, kind, colour=colour))
    if points is not None:
        reference = kind == "dashed" and line is None  # measured values of a reference
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
    """Vertical lines at predicted places that lie inside the figure."""
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
