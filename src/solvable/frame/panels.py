"""Figures as rows: a panel says what is drawn against the axis, the frame draws it for each curve."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.across import curves_across
from solvable.frame.curves import Axis, Curve, stacked, varying, words_of
from solvable.frame.parameters import filled
from solvable.frame.points import RAISED, Metrics, Point
from solvable.plots.figure import Figure, Marker, Series

MOST_ENTRIES = 11
"""Entries of a list that one figure shows; with more, ranks are spread evenly in their logarithm."""

MOST_CURVES = 5
"""Curves that one figure holds; further ones go into the next."""


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


@dataclass(frozen=True)
class Panel:
    """A figure against the axis of the system, or along another parameter.

    Parameters
    ----------
    name : str
        File name without extension; what tells several figures apart is appended.
    title : str
        Title, likewise.
    y_label : str
        Label of the vertical axis with unit.
    traces : sequence of Trace
        What is drawn.
    caption : str
        A sentence or two that say what to see.
    markers : mapping of str to str, or callable
        Predicted quantity (a number, or a list with one for each entry) to the label of its vertical
        line; or ``markers(curves)``, the lines themselves.
    overlay : tuple of str
        Parameters whose values are drawn in one figure, a colour each; () for a figure per curve.
    when : callable, optional
        ``when(curve) -> bool``: curves that have this panel.
    x_scale, y_scale : {"linear", "log"}, optional
        Scales; that of the horizontal axis is the axis's own by default.
    y_range : tuple or callable, optional
        Limits of the vertical axis, or ``y_range(series) -> limits``.
    along : str or Axis, optional
        Another parameter that is the horizontal axis, drawn where it varies in the study. An
        :class:`Axis` gives its label, or a function of the setting as ``value``. Each place on the
        system's axis has a colour; with `overlay` a figure.
    at : callable, optional
        ``at(places) -> places``: places on the system's axis that are drawn along another parameter,
        of those at which all its values were measured; default five of them.
    where : callable, optional
        ``where(point) -> bool``: points that are drawn.
    once : sequence of Trace, optional
        Traces that are the same for all curves, drawn for the first alone.
    against : str or callable, optional
        Metric whose values are the horizontal axis, or ``against(point)``: numbers for the entries
        of the traces' lists, which are then drawn for each point.
    x_label : str, optional
        Label of the horizontal axis, where it is not that of the axis.
    also : callable, optional
        ``also(curves) -> series``: further series made from all curves of a figure.
    note : callable, optional
        ``note(curves) -> str``: a sentence added to the caption.
    """

    name: str
    title: str
    y_label: str
    traces: Sequence[Trace]
    caption: str = ""
    markers: Mapping[str, str] | Callable[[Sequence[Curve]], Sequence[Marker]] = field(
        default_factory=dict
    )
    overlay: tuple[str, ...] = ()
    when: Callable[[Curve], bool] | None = None
    x_scale: Literal["linear", "log"] | None = None
    y_scale: Literal["linear", "log"] = "linear"
    y_range: (
        tuple[float, float] | Callable[[Sequence[Series]], tuple[float, float] | None] | None
    ) = None
    along: str | Axis | None = None
    at: Callable[[Sequence[float]], Sequence[float]] | None = None
    where: Callable[[Point], bool] | None = None
    once: Sequence[Trace] = ()
    against: str | Callable[[Point], Any] | None = None
    x_label: str = ""
    also: Callable[[Sequence[Curve]], Sequence[Series]] | None = None
    note: Callable[[Sequence[Curve]], str] | None = None

    def __call__(self, curves: Sequence[Curve]) -> list[Figure]:
        """Draw the figures of this panel for all curves of a study."""
        return [draw() for _, draw in self.pieces(curves)]

    def pieces(self, curves: Sequence[Curve]) -> list[tuple[str, Callable[[], Figure]]]:
        """Name of each figure of this panel, and the function that draws it."""
        pieces: list[tuple[str, Callable[[], Figure]]] = []
        drawn, overlay, place = self._chosen(curves)
        for group in grouped(drawn, overlay):
            if self.along is not None and self.overlay and len(group.curves) < self._least(curves):
                continue
            for start in range(0, len(group.curves), MOST_CURVES):
                part = group.curves[start : start + MOST_CURVES]
                suffix = group.suffix + (f"-{start // MOST_CURVES + 1}" if start else "")
                words = ", ".join(dict.fromkeys(filter(None, (group.words, place(group.curves)))))
                pieces.append((f"{self.name}{suffix}", partial(self._figure, part, words, suffix)))
        return pieces

    def _least(self, curves: Sequence[Curve]) -> int:
        """Curves of a figure at least: two where the axis is the system's in other coordinates."""
        along = self.along.parameter if isinstance(self.along, Axis) else self.along
        return 2 if along == curves[0].axis.parameter else 1

    def _chosen(
        self, curves: Sequence[Curve]
    ) -> tuple[Sequence[Curve], tuple[str, ...], Callable[[Sequence[Curve]], str]]:
        """Curves of this panel, parameters with a colour each, and words for a place that they share."""
        curves = [c for c in curves if self.when is None or self.when(c)]
        if self.where is not None:
            kept = [(c, tuple(filter(self.where, c.points))) for c in curves]
            curves = [replace(c, points=points) for c, points in kept if points]
        if self.against is not None and self.at is not None:
            curves = [_at(c, self.at(c.x.tolist())) for c in curves]
        if self.along is None or not curves:
            return curves, self.overlay, lambda _: ""
        system = curves[0].axis
        whole = any(trace.reduce is not None for trace in self.traces)
        across = curves_across(curves, self.along, self.at, whole=whole)
        if whole or (across and across[0].axis.parameter == system.parameter):
            return across, self.overlay, lambda _: ""

        def place(group: Sequence[Curve]) -> str:
            places = {curve.points[0].parameters[system.parameter] for curve in group}
            shown = len(places) == 1 and system.parameter not in varying(across)
            return system.word(system.parameter, places.pop()) if shown else ""

        return across, self.overlay or (system.parameter,), place

    def _figure(self, curves: Sequence[Curve], words: str, suffix: str) -> Figure:
        series, markers = self._drawn(curves)
        limits = self.y_range(series) if callable(self.y_range) else self.y_range
        first, lowest = curves[0], min(np.nanmin(curve.x) for curve in curves)
        if self.against is not None:
            scale = self.x_scale or "linear"
        else:
            scale = self.x_scale or first.axis.scale_from(float(lowest))
        return Figure(
            f"{self.name}{suffix}",
            f"{self.title} ({words})" if words else self.title,
            self.x_label or first.axis.label,
            self.y_label,
            series,
            " ".join(filter(None, [self.caption, *self._remarks(curves, series)])),
            markers,
            x_scale=scale,
            y_scale=self.y_scale,
            y_range=limits,
        )

    def _drawn(self, curves: Sequence[Curve]) -> tuple[list[Series], list[Marker]]:
        """Series and vertical lines of curves that share a figure."""
        names, single = varying(curves), len(curves) == 1
        series: list[Series] = []
        markers: list[Marker] = []
        for number, curve in enumerate(curves):
            words = words_of(curve, names)
            for position, trace in enumerate(self.traces):
                if trace.alone and not single:
                    continue
                colour = position if single else number
                if self.against is None:
                    series += draw_trace(trace, curve, words, colour, alone=single)
                else:
                    series += draw_against(self.against, trace, curve, words, colour)
            if not callable(self.markers):
                markers += draw_markers(self.markers, curve, None if single else number)
        for trace in self.once:
            series += (
                draw_trace(trace, curves[0], "", 0, alone=True)
                if self.against is None
                else draw_against(self.against, trace, _first_point(curves[0]), "", -1)
            )
        if self.also is not None:
            series += self.also(curves)
        if callable(self.markers):
            markers = list(self.markers(curves))
        return series, markers

    def _remarks(self, curves: Sequence[Curve], series: Sequence[Series]) -> list[str]:
        """Sentences of the caption about these curves."""
        remarks = [] if self.note is None else [self.note(curves)]
        lines = any(trace.theory is not None for trace in self.traces)
        raised = dict.fromkeys(line for curve in curves for line in curve.raised if lines)
        remarks += [f"The theory line is incomplete: {RAISED}{line}" for line in raised]
        between = [k for curve in curves if (k := curve.interpolated_between) is not None]
        if between and series:
            counts = " to ".join(str(count) for count in sorted({min(between), max(between)}))
            remarks.append(f"Lines are interpolated between {counts} predictions.")
        return remarks


PanelFunction = Callable[[Sequence[Curve]], list[Figure]]
"""A panel that is no rows: a function from the curves of a study to figures."""


@dataclass(frozen=True)
class Group:
    """Curves that share a figure, with words for its title and an ending for its file."""

    curves: Sequence[Curve]
    words: str
    suffix: str


def grouped(curves: Sequence[Curve], overlay: Sequence[str] = ()) -> list[Group]:
    """Group curves that differ in the overlaid parameters alone."""
    names = varying(curves, besides=overlay)
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(words_of(curve, names), []).append(curve)
    return [Group(group, words, suffix_of(words)) for words, group in groups.items()]


def _at(curve: Curve, places: Sequence[float]) -> Curve:
    """The points of a curve at these places."""
    points = (p for p, x in zip(curve.points, curve.x, strict=True) if x in places)
    return replace(curve, points=tuple(points))


def _first_point(curve: Curve) -> Curve:
    return replace(curve, points=curve.points[:1])


def suffix_of(words: str) -> str:
    """Ending of a file name from words."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-.")
    return f"-{plain}" if plain else ""


def spread_entries(count: int) -> list[int]:
    """Entries of a list that are drawn."""
    if count <= MOST_ENTRIES:
        return list(range(count))
    return sorted({round(rank) - 1 for rank in np.geomspace(1, count, MOST_ENTRIES)})


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
        cut = None if points is None else (points[0], points[1][:, entry], points[2][:, entry])
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


def _points(
    trace: Trace, curve: Curve, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Coordinates, means and errors of what was measured."""
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
    else:
        rows = [_measured(trace, point) for point in part.points]
    values, errors = (stacked(column) for column in zip(*rows, strict=True))
    if not np.isfinite(values).any():
        return None
    return part.x, values / unit, errors / np.abs(unit)


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
        values = np.nanmean(values.reshape(len(values), -1), axis=1)
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
    for point in curve.points:
        x = point.mean(against) if isinstance(against, str) else against(point)
        y, error = _measured(trace, point) if trace.measured else (np.nan, np.nan)
        line = None if name is None or point.refused else point.predicted(name)
        rows.append((point, np.asarray(x, dtype=float), y, error, line))
    label = ", ".join(filter(None, (words, _label(trace, curve)))) or "measured"
    if all(x.ndim == 0 for _, x, *_ in rows):
        line = None if name is None else curve.line(name)
        xs = None if line is None or not isinstance(against, str) else curve.line(against)
        series = [] if xs is None or line is None else [Series(label, xs, line, kind, None, colour)]
        columns = (np.array([row[k] for row in rows], dtype=float) for k in (1, 2, 3))
        x, y, error = columns
        return [*series, Series(label, x, y, "points", error, colour)]
    several = len(rows) > 1
    series = []
    for k, (point, x, y, error, line) in enumerate(rows):
        first = trace.colour if isinstance(trace.colour, int) and not several else 0
        shade = colour if colour < 0 else first + k
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
            ends = x if np.ndim(y) else x[[0, -1]]
            series.append(Series(label, ends, np.broadcast_to(y, ends.shape), kind, None, shade))
        if trace.measured and not trace.dashed and np.isfinite(y).any():
            series.append(Series(label, x, y, "points", error, shade))
    return series


def _pair(
    label: str,
    curve: Curve,
    line: np.ndarray | None,
    points: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
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
        error = None if reference else points[2]
        series.append(
            Series(label, points[0], points[1], kind if reference else "points", error, colour)
        )
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
