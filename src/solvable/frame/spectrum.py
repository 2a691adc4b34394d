"""A panel of a measured spectrum: histogram, predicted density, vertical lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from solvable.frame.curves import Axis, Curve, place
from solvable.frame.panels import grouped, suffix_of
from solvable.frame.points import Point
from solvable.plots.figure import Figure, Marker, Series


@dataclass(frozen=True)
class Law:
    """A predicted spectrum at a point.

    Examples
    --------
    >>> Law([("bulk", [0, 1], [5, 5], "line")], [Marker(1.0, "edge")]).bins
    60
    """

    lines: Sequence[tuple[str, Any, Any, Literal["line", "dashed"]]] = ()
    """Label, places, eigenvalues per unit of the axis, and kind of each line, "line" or "dashed"."""
    markers: Sequence[Marker] = ()
    """Vertical lines; those that are not finite are left out."""
    bins: int | np.ndarray = 60
    """Number of bins, or their edges."""
    caption: str = ""
    """Sentences about this point, after the caption of the panel."""
    quantile: float | None = None
    """The vertical axis ends at this quantile of the line; None for its maximum."""


@dataclass(frozen=True)
class Spectrum:
    """A figure of the spectrum at single points: measured histogram and predicted density.

    Examples
    --------
    >>> import numpy as np
    >>> def law(point, values):
    ...     x = np.linspace(0, 4, 100)
    ...     return Law([("law", x, 10 * np.exp(-x), "line")], [Marker(4.0, "edge")])
    >>> panel = Spectrum("spectrum", "Spectrum at n = {:.0f}", "eigenvalue",
    ...                  values=lambda point: point.values("eigenvalues"), law=law,
    ...                  at=lambda curve: curve.points[-1:])
    >>> panel([])
    []
    """

    name: str
    """File name without extension; parameters that distinguish several figures are appended."""
    title: str
    """Title, with the coordinate of the point in braces, such as "Spectrum at n/d = {:.3g}"."""
    x_label: str
    """Label of the horizontal axis."""
    values: Callable[[Point], Iterable[Any]]
    """``values(point)``: measured eigenvalues of each replicate, arrays that may differ in length."""
    law: Callable[[Point, Sequence[np.ndarray]], Law]
    """``law(point, values) -> Law``: prediction for these values."""
    at: Callable[[Curve], Sequence[Point]]
    """``at(curve) -> points``: the points of a curve that are shown."""
    caption: str = ""
    """One or two sentences on what the figure shows."""
    label: str = "measured"
    """Name of the measured values in the legend."""
    place: str = ""
    """Format of the coordinate in the file name, such as "ratio-{:.3g}"; empty if a curve shows one
    point."""
    y_scale: Literal["linear", "log"] = "linear"
    """Scale of the vertical axis."""
    overlay: tuple[str, ...] = ()
    """Varying parameters for each value of which only the middle point is shown."""
    together: bool = False
    """True for one figure of all shown points of a curve, one colour each, with common bins and without
    the labels of vertical lines."""

    def __call__(self, curves: Sequence[Curve]) -> list[Figure]:
        """Draw the figures of all shown points."""
        return [draw() for _, draw in self.pieces(curves)]

    def pieces(self, curves: Sequence[Curve]) -> list[tuple[str, Callable[[], Figure]]]:
        """Return the name of each figure, and the function that draws it."""
        pieces: list[tuple[str, Callable[[], Figure]]] = []
        kin = [group.curves for group in grouped(curves, self.overlay) if len(group.curves) > 1]
        several = {id(curve) for group in kin for curve in group} if self.overlay else set()
        for group in grouped(curves):
            for curve in group.curves:
                points = self.at(curve)
                words = f" ({group.words})" if group.words else ""
                if self.together:
                    name, title = f"{self.name}{group.suffix}", self.title + words
                    if len(points) > 1:
                        draw = partial(self._overlaid, points, curve.axis, name, title)
                        pieces.append((name, draw))
                    continue
                for point in points[len(points) // 2 :][:1] if id(curve) in several else points:
                    x = curve.axis.coordinate(point)
                    name = f"{self.name}{group.suffix}{suffix_of(self.place.format(x))}"
                    title = self.title.format(x) + words
                    pieces.append((name, partial(self._figure, point, name, title)))
        return pieces

    def _figure(self, point: Point, name: str, title: str) -> Figure:
        values = self._values(point)
        law = self.law(point, values)
        edges = np.histogram_bin_edges(np.concatenate([np.empty(0), *values]), bins=law.bins)
        series = self._series(values, law, edges, self.label)
        limits = None
        if law.quantile is not None:
            heights = np.concatenate([np.asarray(part.y) for part in series[1:]])
            seen = heights[heights > 0]
            tops = [0.1, *series[0].y, *([np.quantile(seen, law.quantile)] if seen.size else [])]
            limits = (0.0, 1.15 * float(max(tops)))
        markers = [marker for marker in law.markers if np.isfinite(marker.x)]
        return self._drawn(name, title, series, markers, law.caption, limits)

    def _overlaid(self, points: Sequence[Point], axis: Axis, name: str, title: str) -> Figure:
        values = [self._values(point) for point in points]
        laws = [self.law(point, rows) for point, rows in zip(points, values, strict=True)]
        pooled = np.concatenate([row for rows in values for row in rows])
        edges = np.histogram_bin_edges(pooled, bins=laws[0].bins)
        series: list[Series] = []
        markers: list[Marker] = []
        for colour, (point, rows, law) in enumerate(zip(points, values, laws, strict=True)):
            parts = self._series(rows, law, edges, place(point, axis))
            series += [replace(part, colour=colour) for part in parts]
            lines = [marker.x for marker in law.markers if np.isfinite(marker.x)]
            markers += [Marker(x, "", colour) for x in lines]
        return self._drawn(name, title, series, markers)

    def _values(self, point: Point) -> list[np.ndarray]:
        """Return the finite eigenvalues of each replicate."""
        rows = [np.asarray(row, dtype=float).reshape(-1) for row in self.values(point)]
        return [row[np.isfinite(row)] for row in rows]

    @staticmethod
    def _series(
        values: Sequence[np.ndarray], law: Law, edges: np.ndarray, label: str
    ) -> list[Series]:
        """Return the histogram, and the lines of the law in eigenvalues per bin."""
        counts = np.histogram(np.concatenate([np.empty(0), *values]), bins=edges)[0]
        width = edges[1] - edges[0]
        lines = [
            Series(name, x, np.asarray(density) * width, kind, colour=1)
            for name, x, density, kind in law.lines
        ]
        histogram = Series(label, edges, counts / max(len(values), 1), "histogram", colour=0)
        return [histogram, *lines]

    def _drawn(
        self,
        name: str,
        title: str,
        series: Sequence[Series],
        markers: Sequence[Marker],
        caption: str = "",
        limits: tuple[float, float] | None = None,
    ) -> Figure:
        return Figure(
            name,
            title,
            self.x_label,
            "eigenvalues per replicate",
            series,
            " ".join(filter(None, [caption, self.caption])),
            markers,
            y_scale=self.y_scale,
            y_range=limits,
        )
