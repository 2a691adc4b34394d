"""Interface of a back end that draws figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from solvable.plots.layout import Limits, Scale
from solvable.plots.palette import Style


@dataclass(frozen=True)
class Frame:
    """Axes of a figure; limits are in the units of the data."""

    title: str
    x_label: str
    y_label: str
    x_scale: Scale
    y_scale: Scale
    x_limits: Limits
    y_limits: Limits
    marker_rows: int = 0  # rows of labels above the axes
    overhang: float = 0.0  # length of these labels beyond the right end, in widths of the axes


@dataclass(frozen=True)
class Cells:
    """Coloured cells of a map between edges; NaN is an empty cell."""

    x: np.ndarray  # edges of the columns, one more than columns
    y: np.ndarray  # edges of the rows
    values: np.ndarray  # shape (rows, columns)
    label: str  # of the colour bar
    scale: Scale  # of the colours
    limits: Limits  # values at the ends of the colour bar


@dataclass(frozen=True)
class LegendEntry:
    """One entry of the legend, with a line, a symbol or a filled patch."""

    label: str
    style: Style
    line: Literal["solid", "dashed"] | None = None
    symbol: bool = False
    patch: bool = False
    hatched: bool = False

    @property
    def group(self) -> str:
        """Key that links drawn series to this entry."""
        return f"{self.style.colour} {self.label}"


class Canvas(Protocol):
    """Interface of a back end. Coordinates are float arrays; NaN leaves a gap."""

    def begin(self, frame: Frame) -> None:
        """Set up the axes; this is the first call."""
        ...

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Draw a curve."""
        ...

    def band(
        self, x: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Shade the error of a curve."""
        ...

    def points(
        self,
        x: np.ndarray,
        y: np.ndarray,
        *,
        error: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        label: str,
        style: Style,
    ) -> None:
        """Draw symbols with error bars from ``lower`` to ``upper``; no bar where they are NaN."""
        ...

    def histogram(
        self, edges: np.ndarray, heights: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Draw bars between the edges."""
        ...

    def region(
        self, polygons: Sequence[np.ndarray], *, label: str, style: Style, hatched: bool
    ) -> None:
        """Fill polygons with a pale colour, or hatch them."""
        ...

    def cells(self, cells: Cells) -> None:
        """Draw coloured cells with a colour bar."""
        ...

    def text(self, x: float, y: float, text: str) -> None:
        """Write short lines of text around a point."""
        ...

    def marker(self, x: float, label: str, *, colour: str, row: int) -> None:
        """Draw a vertical line with its label in a row above the axes (row -1: no label)."""
        ...

    def legend(self, entries: list[LegendEntry], *, beside: bool) -> None:
        """Draw the legend next to the axes or below them."""
        ...

    def note(self, text: str) -> None:
        """Write a remark under the axes."""
        ...
