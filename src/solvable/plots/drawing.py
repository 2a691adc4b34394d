"""Draw a figure on a canvas, which is any back end.

Colours, limits, gaps, error bars on a logarithmic axis, rows of marker labels and the legend are
decided here, for all back ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from solvable.errors import InvalidParameter, unknown_choice
from solvable.plots.canvas import Canvas, Frame
from solvable.plots.cells import cells_of
from solvable.plots.figure import Figure, Marker, Region, Series
from solvable.plots.layout import (
    Limits,
    Scale,
    can_be_shown,
    padded_limits,
    place_flags,
    positions,
)
from solvable.plots.legend import legend_entries, paired
from solvable.plots.palette import Style, stroke, style

KINDS = ("line", "dashed", "points", "histogram")


@dataclass(frozen=True)
class _Curve:
    """A series as float arrays, with NaN where an axis cannot show the value."""

    series: Series
    style: Style
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray
    hidden: int

    @property
    def is_histogram(self) -> bool:
        return self.series.kind == "histogram"

    @property
    def centres(self) -> np.ndarray:
        return (self.x[:-1] + self.x[1:]) / 2 if self.is_histogram else self.x


def draw(figure: Figure, canvas: Canvas) -> None:
    """Draw a figure on a canvas; a note counts values that a logarithmic axis cannot show."""
    for name, scale in (("x_scale", figure.x_scale), ("y_scale", figure.y_scale)):
        if scale not in get_args(Scale):
            raise InvalidParameter(
                f"figure {figure.name!r}: {unknown_choice(name, scale, get_args(Scale))}"
            )
    series = paired(figure.series)
    drawn: list[Series | Marker | Region] = [*series, *figure.markers, *figure.regions]
    numbers = [part.colour for part in drawn]
    count = 1 + max(numbers, default=-1)
    strokes = _strokes(series, count)
    curves = [
        _curve(item, figure, style(item.colour, count)._replace(stroke=strokes.get(item.colour, 0)))
        for item in series
    ]
    x_limits, markers, outside = _x_axis(figure, curves)
    y_limits = _y_limits(figure, curves)
    cells = None if figure.map is None else cells_of(figure, figure.map)
    if cells is not None:
        x_limits, y_limits = ((float(edge[0]), float(edge[-1])) for edge in (cells.x, cells.y))
    flags = place_flags(markers, figure.x_scale, x_limits)
    canvas.begin(
        Frame(
            figure.title,
            figure.x_label,
            figure.y_label,
            figure.x_scale,
            figure.y_scale,
            x_limits,
            y_limits,
            marker_rows=flags.height,
            overhang=flags.overhang,
        )
    )
    if cells is not None:
        canvas.cells(cells)
    for region in figure.regions:
        look = style(region.colour, count)
        canvas.region(region.polygons, label=region.label, style=look, hatched=region.hatched)
    # histograms are drawn under curves, and curves under points
    layers = ("histogram", "line", "dashed", "points")
    for curve in sorted(curves, key=lambda curve: layers.index(curve.series.kind)):
        _draw_curve(curve, canvas, figure.y_scale, y_limits)
    for region in figure.regions:
        if region.mark and region.at is not None:
            canvas.text(*region.at, region.mark)
    for marker, row in zip(markers, flags.rows, strict=True):
        colour = style(marker.colour, count).colour
        canvas.marker(float(marker.x), marker.label, colour=colour, row=row)
    entries = legend_entries(series, count, figure.regions, strokes)
    canvas.legend(
        entries, beside=len(entries) > 4
    )  # more entries would take many rows below the axes
    for text in _notes(figure, curves, outside, flags.note):
        canvas.note(text)


def _strokes(series: Sequence[Series], count: int) -> dict[int, int]:
    """Return the strokes of colours without symbols, if luminance could not separate their lines."""
    kinds: dict[int, set[str]] = {}
    for item in series:
        kinds.setdefault(item.colour, set()).add(item.kind)
    bare = [
        colour for colour, found in kinds.items() if colour >= 0 and found <= {"line", "dashed"}
    ]
    # strokes next to dashed variants are harder to read, so few lines keep their colours alone
    most = 6 if any("dashed" in found for found in kinds.values()) else 3
    return {colour: stroke(colour, count) for colour in bare} if len(bare) > most else {}


def _curve(series: Series, figure: Figure, look: Style) -> _Curve:
    where = f"series {series.label!r} of figure {figure.name!r}"
    if series.kind not in KINDS:
        raise InvalidParameter(f"{where}: {unknown_choice('kind', series.kind, KINDS)}")
    x = np.array(series.x, dtype=float)
    y = np.array(series.y, dtype=float)
    error = np.full(y.shape, np.nan) if series.error is None else np.array(series.error, float)
    extra = 1 if series.kind == "histogram" and len(y) else 0
    hollow = y if series.hollow is None else np.asarray(series.hollow)
    lengths = len(x) == len(y) + extra and error.shape == y.shape == hollow.shape
    if x.ndim != 1 or y.ndim != 1 or not lengths:
        raise InvalidParameter(
            f"{where} has {x.shape} x, {y.shape} y and {error.shape} error values; allowed: as many x "
            "as y (bin edges of a histogram: one more) and as many errors. Pass lists of equal length."
        )
    hidden = 0
    if extra:
        if not (can_be_shown(x, "linear").all() and np.all(np.diff(x) > 0)):
            raise InvalidParameter(
                f"{where} has bin edges {series.x}; allowed: finite numbers in increasing order. "
                "Pass the edges as numpy.histogram returns them."
            )
        # On a logarithmic axis a bar that begins at or below zero has no width.
        first = int(np.sum(x[:-1] <= 0)) if figure.x_scale == "log" else 0
        hidden = int(np.count_nonzero(y[:first]))
        x, y, error = x[first:], y[first:], error[first:]
    for values, scale in ((x, figure.x_scale), (y, figure.y_scale)):
        # an empty bar loses no information
        hidden += int(np.sum(values <= 0)) if scale == "log" and not extra else 0
        values[~can_be_shown(values, scale)] = np.nan
    error[~((error >= 0) & can_be_shown(error, "linear") & np.isfinite(y))] = np.nan
    return _Curve(series, look, x, y, error, hidden)


def _corners(figure: Figure, axis: int) -> np.ndarray:
    """Return the coordinates of all corners of the regions along an axis."""
    return np.concatenate([part[:, axis] for region in figure.regions for part in region.polygons])


def _x_axis(figure: Figure, curves: list[_Curve]) -> tuple[Limits, list[Marker], list[Marker]]:
    """Return the limits of the horizontal axis, the markers inside them, and the other markers."""
    scale = figure.x_scale
    if figure.regions:
        return padded_limits(_corners(figure, 0), scale, padding=0.0), list(figure.markers), []
    values = np.concatenate(
        [curve.x if curve.is_histogram else curve.x[np.isfinite(curve.y)] for curve in curves]
        + [np.empty(0)]
    )
    usable = [marker for marker in figure.markers if can_be_shown(np.array(marker.x), scale)]
    places = np.array([marker.x for marker in usable])
    if np.isfinite(values).any() and len(usable):
        tight = padded_limits(values, scale, padding=0.0)
        fraction = positions(places, scale, tight)
        reach = 0.3  # markers farther from the data, in units of their range, are listed in a note
        near = (fraction >= -reach) & (fraction <= 1 + reach)
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
                "increasing order, positive on a logarithmic axis. Omit it to fit the data."
            )
        return low, high
    if figure.regions:
        return padded_limits(_corners(figure, 1), scale, padding=0.0)
    values = [np.empty(0)]
    for curve in curves:
        spread = np.nan_to_num(curve.error)
        lower = curve.y - spread
        if scale == "log":
            # error bars that reach zero do not set the limit; bars of one count need a height
            lower = np.maximum(lower, curve.y / 3) / (2 if curve.is_histogram else 1)
        values += [lower, curve.y + spread]
        if curve.is_histogram and scale == "linear":
            values.append(np.zeros(1))
    measured = np.concatenate(
        [curve.y for curve in curves if curve.series.kind == "points"] + [np.empty(0)]
    )
    if scale == "log" and np.isfinite(measured).any():
        # theory more than a decade below every measurement is cut off, as it would flatten the figure
        reach = np.nanmin(measured) / 10, np.nanmax(measured) * 10
        values = [np.clip(part, *reach) for part in values]
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
        hollow = np.zeros(curve.y.shape, dtype=bool)
        if series.hollow is not None and not curve.is_histogram:
            hollow = np.asarray(series.hollow, dtype=bool)
        for part, look in (
            (~hollow, curve.style),
            (hollow, curve.style._replace(hollow=True)),
        ):
            if not part.any() and (look.hollow or hollow.any()):
                continue
            canvas.points(
                curve.centres[part],
                curve.y[part],
                error=curve.error[part],
                lower=lower[part],
                upper=upper[part],
                label=series.label,
                style=look,
            )


def _notes(figure: Figure, curves: list[_Curve], outside: list[Marker], flags: str) -> list[str]:
    notes = [flags] if flags else []
    if (
        not figure.regions
        and figure.map is None
        and not any(np.isfinite(curve.y).any() for curve in curves)
    ):
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
