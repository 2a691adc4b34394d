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
        Coordinates; NaN leaves a gap. For a histogram, ``x`` holds the bin edges, one more than
        ``y``.
    kind : {"line", "dashed", "points", "histogram"}
        Theory is a line (or dashed for a variant), measurement is points.
    error : sequence of float, optional
        Standard error of ``y``.
    colour : int
        Series of the same number have the same colour: a prediction and its measurement.
    hollow : sequence of bool, optional
        Points that are drawn as outlines.
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
        Where it stands.
    label : str
        What it marks.
    colour : int
        As in :class:`Series`; -1 is neutral grey.
    """

    x: float
    label: str = ""
    colour: int = -1

    def __post_init__(self) -> None:
        _keep_printable(self, "label")


@dataclass(frozen=True)
class Region:
    """A filled part of a figure, such as a phase, or a hatched one, such as where a theory ends."""

    label: str  # in the legend; empty for none
    polygons: Sequence[np.ndarray]  # arrays of shape (corners, 2)
    colour: int = 0  # drawn pale
    hatched: bool = False
    mark: str = ""  # text inside it
    at: tuple[float, float] | None = None  # middle of this text

    def __post_init__(self) -> None:
        _keep_printable(self, "label")


@dataclass(frozen=True)
class Figure:
    """A neutral description of a figure, drawn by more than one back end.

    Parameters
    ----------
    name : str
        File name without extension.
    title, caption : str
        Title, and a sentence or two that says what to see.
    x_label, y_label : str
        Axis labels with units.
    series : sequence of Series
        What is drawn.
    markers : sequence of Marker
        Vertical lines.
    x_scale, y_scale : {"linear", "log"}
        Axis scales.
    y_range : tuple of float, optional
        Limits of the vertical axis.
    regions : sequence of Region
        Filled parts below everything else; the axes then end where these do.
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

    def __post_init__(self) -> None:
        _keep_printable(self, "title", "x_label", "y_label", "caption")


def _keep_printable(drawn: object, *names: str) -> None:
    """Names from files may hold control characters, which no font has and no SVG may hold."""
    for name in names:
        object.__setattr__(drawn, name, printable(getattr(drawn, name)))
