"""Figures as data: a panel lists traces over the axis, and is drawn for each curve."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from solvable.frame.across import curves_across
from solvable.frame.conditions import Where, covers
from solvable.frame.curves import Axis, Curve, varying, words_of
from solvable.frame.points import RAISED, Point
from solvable.frame.theory_lines import smoothed
from solvable.frame.traces import Trace, draw_against, draw_markers, draw_trace
from solvable.plots.figure import Figure, Marker, Series

MOST_CURVES = 5
"""Largest number of curves in a figure; further curves go into the next figure."""


@dataclass(frozen=True)
class Panel:
    """A figure against the axis of the system, or along another parameter."""

    name: str
    """File name without extension; parameters that distinguish several figures are appended."""
    title: str
    """Title; the same parameters are appended."""
    y_label: str
    """Label of the vertical axis with unit."""
    traces: Sequence[Trace]
    """Quantities that are drawn."""
    caption: str = ""
    """One or two sentences on what the figure shows."""
    markers: Mapping[str, str] | Callable[[Sequence[Curve]], Sequence[Marker]] = field(
        default_factory=dict
    )
    """Predicted quantity (a number, or a list with one for each entry) to the label of its vertical
    line; or ``markers(curves)``, the lines themselves."""
    overlay: tuple[str, ...] = ()
    """Parameters whose values share a figure, one colour each; () for one figure per curve."""
    when: Where | None = None
    """Curves that have this panel: a function of the curve, or conditions as those of a claim."""
    x_scale: Literal["linear", "log"] | None = None
    y_scale: Literal["linear", "log"] = "linear"
    """Scales; the horizontal scale is by default the one of the axis."""
    y_range: (
        tuple[float, float] | Callable[[Sequence[Series]], tuple[float, float] | None] | None
    ) = None
    """Limits of the vertical axis, or ``y_range(series) -> limits``."""
    along: str | Axis | None = None
    """Another parameter as the horizontal axis; the panel is drawn if the parameter varies in the
    study. An :class:`Axis` sets its label, or a function of the setting as ``value``. Each value on the
    system's axis gets a colour, or with `overlay` a figure."""
    at: Callable[[Sequence[float]], Sequence[float]] | None = None
    """``at(places) -> places``: values on the system's axis that are drawn along another parameter;
    default five of those at which all values of the parameter were measured."""
    where: Where | None = None
    """Points that are drawn, as in a claim."""
    once: Sequence[Trace] = ()
    """Traces that are equal for all curves, drawn once."""
    against: str | Callable[[Point], Any] | None = None
    """Metric on the horizontal axis, or ``against(point)``, which returns a number for each entry of
    the traces' lists. Such a panel has one curve per point."""
    x_label: str | Callable[[Curve], str] = ""
    """Label of the horizontal axis, or ``x_label(curve)``; default the label of the axis."""
    also: Callable[[Sequence[Curve]], Sequence[Series]] | None = None
    """``also(curves) -> series``: further series computed from all curves of a figure."""
    note: Callable[[Sequence[Curve]], str] | None = None
    """``note(curves) -> str``: a sentence added to the caption."""

    def __call__(self, curves: Sequence[Curve]) -> list[Figure]:
        """Draw the figures of this panel for all curves of a study."""
        return [draw() for _, draw in self.pieces(curves)]

    def pieces(self, curves: Sequence[Curve]) -> list[tuple[str, Callable[[], Figure]]]:
        """Return the name of each figure of this panel, and the function that draws it."""
        pieces: list[tuple[str, Callable[[], Figure]]] = []
        drawn, overlay, place = self._chosen(curves)
        kin: Sequence[Curve] = ()
        if self.where is not None and self.along is None:
            # Names of curves do not depend on which points are drawn.
            kin = [c for c in curves if covers(self.when, c)]
        for group in grouped(drawn, overlay, kin):
            if self.along is not None and self.overlay and len(group.curves) < self._least(curves):
                continue
            for start in range(0, len(group.curves), MOST_CURVES):
                part = group.curves[start : start + MOST_CURVES]
                suffix = group.suffix + (f"-{start // MOST_CURVES + 1}" if start else "")
                words = ", ".join(dict.fromkeys(filter(None, (group.words, place(group.curves)))))
                pieces.append((f"{self.name}{suffix}", partial(self._figure, part, words, suffix)))
        return pieces

    def _least(self, curves: Sequence[Curve]) -> int:
        """Return the smallest number of curves of a figure."""
        along = self.along.parameter if isinstance(self.along, Axis) else self.along
        return 2 if along == curves[0].axis.parameter else 1

    def _chosen(
        self, curves: Sequence[Curve]
    ) -> tuple[Sequence[Curve], tuple[str, ...], Callable[[Sequence[Curve]], str]]:
        """Return the curves, the parameters that set the colour, and the text of a shared axis value."""
        if self.where is not None:
            kept = [(c, tuple(p for p in c.points if covers(self.where, p))) for c in curves]
            curves = [replace(c, points=points) for c, points in kept if points]
        curves = [c for c in curves if covers(self.when, c)]
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
            logs = {"log_x": scale == "log", "log_y": self.y_scale == "log"}
            series = [smoothed(one, **logs) for one in series]
        return Figure(
            f"{self.name}{suffix}",
            f"{self.title} ({words})" if words else self.title,
            (self.x_label(first) if callable(self.x_label) else self.x_label) or first.axis.label,
            self.y_label,
            series,
            " ".join(filter(None, [self.caption, *self._remarks(curves, series)])),
            markers,
            x_scale=scale,
            y_scale=self.y_scale,
            y_range=limits,
        )

    def _drawn(self, curves: Sequence[Curve]) -> tuple[list[Series], list[Marker]]:
        """Return series and vertical lines of curves that share a figure."""
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
                else draw_against(self.against, trace, curves[0], "", -1)
            )
        if self.also is not None:
            series += self.also(curves)
        if callable(self.markers):
            markers = list(self.markers(curves))
        return series, markers

    def _remarks(self, curves: Sequence[Curve], series: Sequence[Series]) -> list[str]:
        """Return the sentences of the caption about these curves."""
        remarks = [] if self.note is None else [self.note(curves)]
        lines = any(trace.theory is not None for trace in self.traces)
        raised = dict.fromkeys(line for curve in curves for line in curve.raised if lines)
        remarks += [f"The theory line is incomplete: {RAISED}{line}" for line in raised]
        if any(part.hollow is not None for part in series):
            remarks.append("Hollow points: no claim judges them.")
        between = [k for curve in curves if (k := curve.interpolated_between) is not None]
        if between and series:
            counts = " to ".join(str(count) for count in sorted({min(between), max(between)}))
            remarks.append(f"Lines are interpolated between {counts} predictions.")
        return remarks


PanelFunction = Callable[[Sequence[Curve]], list[Figure]]
"""A panel that is a function from the curves of a study to figures."""


@dataclass(frozen=True)
class Group:
    """Curves that share a figure, with the ending of its title and of its file name."""

    curves: Sequence[Curve]
    words: str
    suffix: str


def grouped(
    curves: Sequence[Curve], overlay: Sequence[str] = (), kin: Sequence[Curve] = ()
) -> list[Group]:
    """Group curves that differ only in the overlaid parameters, with distinct names within `kin`."""
    names = varying([*curves, *kin], besides=overlay)
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(words_of(curve, names), []).append(curve)
    return [Group(group, words, suffix_of(words)) for words, group in groups.items()]


def _at(curve: Curve, places: Sequence[float]) -> Curve:
    """Return the points of a curve at these axis values."""
    points = (p for p, x in zip(curve.points, curve.x, strict=True) if x in places)
    return replace(curve, points=tuple(points))


def suffix_of(words: str) -> str:
    """Make the ending of a file name from a text."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-.")
    return f"-{plain}" if plain else ""
