"""A figure as plain data: series, markers, labels and scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from solvable.paths import printable


@dataclass(frozen=True)
class Series:
    """One curve, one set of points with error bars, or one histogram of a figure.

    Parameters
    ----------
    label : str
        Name in the legend.
    x, y : sequence of float
        Coordinates; NaN leaves a gap. For a histogram, ``x`` are the bin edges, one more than ``y``.
    kind : {"line", "dashed", "points", "histogram"}
        Theory is drawn as a line (dashed for a variant), measurements as points.
    error : sequence of float, optional
        Standard error of ``y``.
    colour : int
        Index of the colour; a prediction and its measurement have the same index.
    hollow : sequence of bool, optional
        True for points drawn as outlines.
    """

    label: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    kind: Literal["line", "dashed", "points", "histogram"] = "line"
    error: Sequence[float] | np.ndarray | None = None
    colour: int = 0
    hollow: Sequence[bool] | np.ndarray | None = None

    def __post_init__(self) -> None:
        _keep_printable(self, "label")


@dataclass(frozen=True)
class Marker:
    """A vertical line in a figure, such as a threshold or a bulk edge.

    Parameters
    ----------
    x : float
        Coordinate of the line.
    label : str
        Name of the line.
    colour : int
        Index of the colour as in :class:`Series`; -1 is grey.
    """

    x: float
    label: str = ""
    colour: int = -1

    def __post_init__(self) -> None:
        _keep_printable(self, "label")


@dataclass(frozen=True)
class Region:
    """A filled region of a figure, such as a phase, or a hatched one, such as outside a theory."""

    label: str  # name in the legend; empty for none
    polygons: Sequence[np.ndarray]  # arrays of shape (corners, 2)
    colour: int = 0  # index of the colour, drawn pale
    hatched: bool = False
    mark: str = ""  # text inside the region
    at: tuple[float, float] | None = None  # centre of this text

    def __post_init__(self) -> None:
        _keep_printable(self, "label")


@dataclass(frozen=True)
class Map:
    """Values on a grid, drawn as coloured cells with a labelled colour bar.

    Parameters
    ----------
    x, y : sequence of float
        Centres of the columns and of the rows, in increasing order.
    values : array of shape (len(y), len(x))
        Value of each cell; NaN leaves the cell empty.
    label : str
        Label of the colour bar with unit.
    scale : {"linear", "log"}
        Scale of the colours; on a logarithmic scale cells at or below zero are empty.
    limits : tuple of float, optional
        Values at the ends of the colour bar; default the range of the values.
    """

    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    values: np.ndarray
    label: str
    scale: Literal["linear", "log"] = "linear"
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _keep_printable(self, "label")


@dataclass(frozen=True)
class Figure:
    """Description of a figure, which several back ends can draw.

    Parameters
    ----------
    name : str
        File name without extension.
    title, caption : str
        Title, and one or two sentences on what the figure shows.
    x_label, y_label : str
        Axis labels with units.
    series : sequence of Series
        Curves, points and histograms.
    markers : sequence of Marker
        Vertical lines.
    x_scale, y_scale : {"linear", "log"}
        Axis scales.
    y_range : tuple of float, optional
        Limits of the vertical axis.
    regions : sequence of Region
        Filled regions below everything else; with regions the axes end at their edges.
    map : Map, optional
        Coloured cells below everything else; the axes end at their edges.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    caption: str = ""
    markers: Sequence[Marker] = field(default_factory=tuple)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    y_range: tuple[float, float] | None = None
    regions: Sequence[Region] = field(default_factory=tuple)
    map: Map | None = None

    def __post_init__(self) -> None:
        _keep_printable(self, "title", "x_label", "y_label", "caption")


def _keep_printable(drawn: object, *names: str) -> None:
    """Remove control characters, which names from files may contain and SVG forbids."""
    for name in names:
        object.__setattr__(drawn, name, printable(getattr(drawn, name)))
