"""Draw a neutral figure on a canvas; every back end, the recording one included, is a canvas.

What does not depend on the library that draws is decided here, once: colours, limits, gaps, error bars
on a logarithmic axis, rows of marker labels, and what stands in the legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.report.canvas import Canvas, Frame, LegendEntry
from solvable.report.layout import (
    Limits,
    Scale,
    flag_rows,
    label_width,
    padded_limits,
    positions,
)
from solvable.report.palette import Style, style
from solvable.systems.base import Figure, Marker, Series

KINDS = ("line", "dashed", "points", "histogram")
BESIDE_LEGEND = 4
"""A legend with more entries than this stands beside the axes instead of below them."""

MARKER_REACH = 0.3
"""A marker farther from the data than this fraction of their range is named in a note, not drawn."""


LOG_REACH = 10.0
"""A logarithmic axis reaches at most this factor below and above the measured points."""


@dataclass(frozen=True)
class _Curve:
    """A series as it is drawn: float arrays, NaN where an axis cannot show the value."""

    series: Series
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray
    hidden: int

    @property
    def style(self) -> Style:
        return style(self.series.colour)

    @property
    def is_histogram(self) -> bool:
        return self.series.kind == "histogram"

    @property
    def centres(self) -> np.ndarray:
        return (self.x[:-1] + self.x[1:]) / 2 if self.is_histogram else self.x


def draw(figure: Figure, canvas: Canvas) -> None:
    """Draw a figure on a canvas.

    Parameters
    ----------
    figure : Figure
        What to draw. On a logarithmic axis, values at or below zero are left out and counted in a note,
        and error bars that reach zero end at the lower limit.
    canvas : Canvas
        Where to draw it.

    Raises
    ------
    InvalidParameter
        If coordinates differ in length, or a kind or scale is unknown.

    Examples
    --------
    >>> from solvable.report.recording_backend import RecordingCanvas
    >>> canvas = RecordingCanvas()
    >>> draw(Figure("f", "Title", "n", "error", [Series("theory", [1, 2], [3, 4])]), canvas)
    >>> [call.name for call in canvas.calls]
    ['begin', 'line', 'legend']
    """
    for name, scale in (("x_scale", figure.x_scale), ("y_scale", figure.y_scale)):
        if scale not in get_args(Scale):
            raise InvalidParameter(
                f"figure {figure.name!r}: {unknown_choice(name, scale, get_args(Scale))}"
            )
    curves = [_curve(one, figure) for one in figure.series]
    x_limits, markers, outside = _x_axis(figure, curves)
    y_limits = _y_limits(figure, curves)
    places = [
        float(place)
        for place in positions(np.array([marker.x for marker in markers]), figure.x_scale, x_limits)
    ]
    widths = [label_width(marker.label) for marker in markers]
    rows = flag_rows(places, widths)
    overhang = max((p + w for p, w in zip(places, widths, strict=True)), default=0.0) - 1
    canvas.begin(
        Frame(
            figure.title,
            figure.x_label,
            figure.y_label,
            figure.x_scale,
            figure.y_scale,
            x_limits,
            y_limits,
            marker_rows=max(rows, default=-1) + 1,
            overhang=max(overhang, 0.0),
        )
    )
    # Histograms lie under curves and curves under points, whatever the order they were given in.
    for curve in sorted(
        curves, key=lambda one: ("histogram", "line", "dashed", "points").index(one.series.kind)
    ):
        _draw_curve(curve, canvas, figure.y_scale, y_limits)
    for marker, row in zip(markers, rows, strict=True):
        colour = style(marker.colour).colour
        canvas.marker(float(marker.x), marker.label, colour=colour, row=row)
    entries = legend_entries(figure.series)
    canvas.legend(entries, beside=len(entries) > BESIDE_LEGEND)
    for text in _notes(figure, curves, outside):
        canvas.note(text)


def legend_entries(series: Sequence[Series]) -> list[LegendEntry]:
    """Entries of the legend, in the order of the series.

    A curve and points of the same label and colour share one entry, and two grey entries then say which
    is the theory and which the measurement.

    Parameters
    ----------
    series : sequence of Series
        Series of a figure; those without a label have no entry.

    Returns
    -------
    list of LegendEntry
        What stands in the legend.

    Examples
    --------
    >>> both = [Series("feature 1", [1], [1]), Series("feature 1", [1], [1], kind="points")]
    >>> [entry.label for entry in legend_entries(both)]
    ['feature 1', 'line: theory', 'points: measured ± standard error']
    """
    found: dict[str, LegendEntry] = {}
    shared = False
    for one in series:
        if not one.label:
            continue
        line: Literal["solid", "dashed"] | None = None
        if one.kind in ("line", "dashed"):
            line = "solid" if one.kind == "line" else "dashed"
        entry = LegendEntry(
            one.label, style(one.colour), line, one.kind == "points", one.kind == "histogram"
        )
        earlier = found.get(entry.group)
        if earlier is not None:
            shared = shared or (earlier.symbol != entry.symbol and not entry.patch)
            entry = LegendEntry(
                entry.label,
                entry.style,
                earlier.line or entry.line,
                earlier.symbol or entry.symbol,
                earlier.patch or entry.patch,
            )
        found[entry.group] = entry
    entries = list(found.values())
    if shared:
        neutral = style(-1)
        entries.append(LegendEntry("line: theory", neutral, line="solid"))
        entries.append(LegendEntry("points: measured ± standard error", neutral, symbol=True))
    return entries


def _curve(series: Series, figure: Figure) -> _Curve:
    where = f"series {series.label!r} of figure {figure.name!r}"
    if series.kind not in KINDS:
        raise InvalidParameter(f"{where}: {unknown_choice('kind', series.kind, KINDS)}")
    x = np.array(series.x, dtype=float)
    y = np.array(series.y, dtype=float)
    error = np.full(y.shape, np.nan) if series.error is None else np.array(series.error, float)
    extra = 1 if series.kind == "histogram" and len(y) else 0
    if x.ndim != 1 or y.ndim != 1 or len(x) != len(y) + extra or error.shape != y.shape:
        raise InvalidParameter(
            f"{where} has {x.shape} x, {y.shape} y and {error.shape} error values; allowed: as many x "
            "as y (bin edges of a histogram: one more) and as many errors. Pass lists of equal length."
        )
    hidden = 0
    x[~np.isfinite(x)] = np.nan
    y[~np.isfinite(y)] = np.nan
    if figure.x_scale == "log":
        hidden += 0 if extra else int(np.sum(x <= 0))
        x[x <= 0] = np.nan
    if figure.y_scale == "log":
        hidden += 0 if extra else int(np.sum(y <= 0))
        y[y <= 0] = np.nan
    error[~(np.isfinite(error) & (error >= 0) & np.isfinite(y))] = np.nan
    return _Curve(series, x, y, error, hidden)


def _x_axis(figure: Figure, curves: list[_Curve]) -> tuple[Limits, list[Marker], list[Marker]]:
    """Limits of the horizontal axis, the markers that fit into it, and the rest."""
    scale = figure.x_scale
    values = np.concatenate(
        [curve.x if curve.is_histogram else curve.x[np.isfinite(curve.y)] for curve in curves]
        + [np.empty(0)]
    )
    usable = [
        marker
        for marker in figure.markers
        if np.isfinite(marker.x) and (scale == "linear" or marker.x > 0)
    ]
    places = np.array([marker.x for marker in usable])
    if np.isfinite(values).any() and len(usable):
        tight = padded_limits(values, scale, padding=0.0)
        fraction = positions(places, scale, tight)
        near = (fraction >= -MARKER_REACH) & (fraction <= 1 + MARKER_REACH)
    else:
        near = np.ones(len(usable), dtype=bool)
    inside = [marker for marker, kept in zip(usable, near, strict=True) if kept]
    outside = [marker for marker in figure.markers if marker not in inside]
    everything = np.concatenate([values, places[near]])
    return padded_limits(everything, scale), inside, outside


def _y_limits(figure: Figure, curves: list[_Curve]) -> Limits:
    scale = figure.y_scale
    if figure.y_range is not None:
        low, high = (float(value) for value in figure.y_range)
        if not (np.isfinite([low, high]).all() and low < high and (scale == "linear" or low > 0)):
            raise InvalidParameter(
                f"figure {figure.name!r} has y_range {figure.y_range}; allowed: two finite numbers in "
                "increasing order, positive on a logarithmic axis. Leave it out to fit the data."
            )
        return low, high
    values = [np.empty(0)]
    for curve in curves:
        spread = np.nan_to_num(curve.error)
        lower = curve.y - spread
        if scale == "log":
            # A bar that reaches zero must not push the limit there; bars of one count must have a height.
            lower = np.maximum(lower, curve.y / 3) / (2 if curve.is_histogram else 1)
        values += [lower, curve.y + spread]
        if curve.is_histogram and scale == "linear":
            values.append(np.zeros(1))
    measured = np.concatenate(
        [curve.y for curve in curves if curve.series.kind == "points"] + [np.empty(0)]
    )
    if scale == "log" and np.isfinite(measured).any():
        # Theory that falls far below every measurement leaves the axes rather than flattens them.
        reach = np.nanmin(measured) / LOG_REACH, np.nanmax(measured) * LOG_REACH
        values = [np.clip(one, *reach) for one in values]
    low, high = padded_limits(np.concatenate(values), scale)
    if any(curve.is_histogram for curve in curves) and scale == "linear" and low < 0:
        lowest = np.nanmin(np.concatenate([[0.0], *values]))
        low = 0.0 if lowest >= 0 else low
    return low, high


def _draw_curve(curve: _Curve, canvas: Canvas, y_scale: Scale, y_limits: Limits) -> None:
    series = curve.series
    lower, upper = curve.y - curve.error, curve.y + curve.error
    if y_scale == "log":
        lower = np.where(lower > 0, lower, np.where(np.isnan(lower), np.nan, y_limits[0]))
        lower = np.minimum(lower, curve.y)
    if series.kind == "histogram":
        canvas.histogram(curve.x, curve.y, label=series.label, style=curve.style)
    elif series.kind in ("line", "dashed"):
        if np.isfinite(curve.error).any():
            canvas.band(curve.x, lower, upper, label=series.label, style=curve.style)
        canvas.line(
            curve.x,
            curve.y,
            label=series.label,
            style=curve.style,
            dashed=series.kind == "dashed",
        )
    if series.kind == "points" or (curve.is_histogram and np.isfinite(curve.error).any()):
        canvas.points(
            curve.centres,
            curve.y,
            error=curve.error,
            lower=lower,
            upper=upper,
            label=series.label,
            style=curve.style,
        )


def _notes(figure: Figure, curves: list[_Curve], outside: list[Marker]) -> list[str]:
    notes = []
    if not any(np.isfinite(curve.y).any() for curve in curves):
        notes.append("No values to show.")
    hidden = sum(curve.hidden for curve in curves)
    if hidden:
        verb = "value at or below zero is" if hidden == 1 else "values at or below zero are"
        notes.append(f"{hidden} {verb} not shown on a logarithmic axis.")
    named = [
        f"{marker.label or 'marker'} at {marker.x:.3g}"
        for marker in outside
        if not np.isnan(marker.x)
    ]
    if named:
        notes.append(f"Outside the range shown: {', '.join(named)}.")
    return notes
