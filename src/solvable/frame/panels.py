"""Figures as rows: a panel says what is drawn against the axis, the frame draws it for each curve."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter
from solvable.frame.curves import Curve, varying, words_of
from solvable.frame.points import RAISED, Metrics
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
        Name in the legend; of a list, what an entry is called, such as "feature".
    theory : str or None
        Name of the predicted quantity; default that of the metric, None for no line.
    measured : bool
        Whether points are drawn; a metric that was nowhere measured has none in any case.
    dashed : bool
        Whether the line is dashed, as for a variant or a bound.
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
    colour : int, optional
        Colour in a figure of one curve; default the position of the trace or of the entry.
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
    colour: int | None = None


@dataclass(frozen=True)
class Panel:
    """A figure against the axis of the system.

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
    markers : mapping of str to str
        Predicted quantity (a number, or a list with one for each entry) to the label of its vertical
        line.
    overlay : tuple of str
        Parameters whose values are drawn in one figure, a colour each; () for a figure per curve.
    when : callable, optional
        ``when(curve) -> bool``: curves that have this panel.
    x_scale, y_scale : {"linear", "log"}, optional
        Scales; that of the horizontal axis is the axis's own by default.
    y_range : tuple or callable, optional
        Limits of the vertical axis, or ``y_range(series) -> limits``.
    """

    name: str
    title: str
    y_label: str
    traces: Sequence[Trace]
    caption: str = ""
    markers: Mapping[str, str] = field(default_factory=dict)
    overlay: tuple[str, ...] = ()
    when: Callable[[Curve], bool] | None = None
    x_scale: Literal["linear", "log"] | None = None
    y_scale: Literal["linear", "log"] = "linear"
    y_range: (
        tuple[float, float] | Callable[[Sequence[Series]], tuple[float, float] | None] | None
    ) = None

    def __call__(self, curves: Sequence[Curve]) -> list[Figure]:
        """Draw the figures of this panel for all curves of a study."""
        return [draw() for _, draw in self.pieces(curves)]

    def pieces(self, curves: Sequence[Curve]) -> list[tuple[str, Callable[[], Figure]]]:
        """Name of each figure of this panel, and the function that draws it."""
        found: list[tuple[str, Callable[[], Figure]]] = []
        for group in grouped(
            [c for c in curves if self.when is None or self.when(c)], self.overlay
        ):
            for start in range(0, len(group.curves), MOST_CURVES):
                part = group.curves[start : start + MOST_CURVES]
                suffix = group.suffix + (f"-{start // MOST_CURVES + 1}" if start else "")
                draw = partial(self._figure, part, group.words, suffix)
                found.append((f"{self.name}{suffix}", draw))
        return found

    def _figure(self, curves: Sequence[Curve], words: str, suffix: str) -> Figure:
        names = varying(curves)
        series: list[Series] = []
        markers: list[Marker] = []
        for number, curve in enumerate(curves):
            own = words_of(curve, names)
            for position, trace in enumerate(self.traces):
                colour = position if len(curves) == 1 else number
                series += draw_trace(trace, curve, own, colour, alone=len(curves) == 1)
            markers += draw_markers(self.markers, curve, None if len(curves) == 1 else number)
        limits = self.y_range(series) if callable(self.y_range) else self.y_range
        lines = any(trace.theory is not None for trace in self.traces)
        raised = dict.fromkeys(line for curve in curves for line in curve.raised if lines)
        gaps = [f"The theory line is incomplete: {RAISED}{line}" for line in raised]
        between = [k for curve in curves if (k := curve.interpolated_between) is not None]
        if between and series:
            counts = " to ".join(str(count) for count in sorted({min(between), max(between)}))
            gaps.append(f"Lines are interpolated between {counts} predictions.")
        return Figure(
            f"{self.name}{suffix}",
            f"{self.title} ({words})" if words else self.title,
            curves[0].axis.label,
            self.y_label,
            series,
            " ".join(filter(None, [self.caption, *gaps])),
            markers,
            x_scale=self.x_scale or curves[0].axis.scale_from(min(curve.x[0] for curve in curves)),
            y_scale=self.y_scale,
            y_range=limits,
        )


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
    label = ", ".join(filter(None, (words, trace.label))) or "measured"
    colour = trace.colour if trace.colour is not None and alone else colour
    unit = np.asarray(1.0 if trace.scale is None else trace.scale(curve.setting))
    name = trace.metric if trace.theory == "" else trace.theory
    line = None if name is None else _line(trace, curve, name, unit)
    points = _points(trace, curve, unit)
    kind: Literal["line", "dashed"] = "dashed" if trace.dashed else "line"
    sample = line if line is not None else (points[1] if points is not None else None)
    if sample is None:
        return []
    if sample.ndim == 1:
        return _pair(label, curve, line, points, colour, kind, told=not trace.dashed)
    entries = list(trace.names(curve.setting)) if trace.names else None
    series: list[Series] = []
    for rank, entry in enumerate(spread_entries(sample.shape[1])):
        own = entries[entry] if entries else f"{label} {entry + 1}"
        cut = None if points is None else (points[0], points[1][:, entry], points[2][:, entry])
        part = None if line is None else line[:, entry]
        series += _pair(own, curve, part, cut, rank, kind, told=not trace.dashed)
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
        f"{', '.join(prediction)}. Mend the panel's row."
    )


def _points(
    trace: Trace, curve: Curve, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    part = curve.where(**trace.where) if trace.where else curve
    if not trace.measured or part is None:
        return None
    if any(trace.metric not in metrics for point in part.points for metrics in point.metrics):
        raise InvalidParameter(
            f"a panel names the metric {trace.metric!r}, which measure does not return; allowed: "
            f"{', '.join(part.points[0].metrics[0])}. Mend the panel's row."
        )
    if trace.mean:
        rows = [
            np.nanmean(p.values(trace.metric).reshape(p.replicates, -1), axis=1)
            for p in part.points
        ]
        values = np.array([row.mean() for row in rows])
        errors = np.array(
            [row.std(ddof=1) / row.size**0.5 if row.size > 1 else np.nan for row in rows]
        )
    else:
        values, errors = part.measured(trace.metric)
    if not np.isfinite(values).any():
        return None
    return part.x, values / unit, errors / np.abs(unit)


def _pair(
    label: str,
    curve: Curve,
    line: np.ndarray | None,
    points: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    colour: int,
    kind: Literal["line", "dashed"],
    *,
    told: bool,
) -> list[Series]:
    """A prediction and its measurement, in one colour."""
    series = []
    if line is not None:
        name = f"{label}, theory" if told and points is not None else label
        series.append(Series(name, curve.grid, line, kind, colour=colour))
    if points is not None:
        series.append(Series(label, points[0], points[1], "points", points[2], colour))
    return series


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
                words = f"{label} {entry + 1}" if label else ""
                shade = spread_entries(value.size).index(entry) if colour is None else colour
                drawn.append(Marker(x, words, shade))
    return drawn
