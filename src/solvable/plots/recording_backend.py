"""Back end that records its calls instead of drawing, for tests of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvable.plots.canvas import Cells, Frame, LegendEntry
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.palette import Style


@dataclass(frozen=True)
class Call:
    """One call of the canvas: name of the method, and its arguments by name."""

    name: str
    arguments: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]


@dataclass
class RecordingCanvas:
    """Canvas that records every call, in order."""

    calls: list[Call] = field(default_factory=list)

    def named(self, name: str) -> list[Call]:
        """Return the calls of one method."""
        return [call for call in self.calls if call.name == name]

    def _keep(self, name: str, **arguments: Any) -> None:
        self.calls.append(Call(name, arguments))

    def begin(self, frame: Frame) -> None:
        """Record the axes."""
        self._keep("begin", frame=frame)

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Record a curve."""
        self._keep("line", x=x, y=y, label=label, style=style, dashed=dashed)

    def band(
        self, x: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Record the error of a curve."""
        self._keep("band", x=x, lower=lower, upper=upper, label=label, style=style)

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
        """Record symbols with error bars."""
        self._keep(
            "points", x=x, y=y, error=error, lower=lower, upper=upper, label=label, style=style
        )

    def histogram(
        self, edges: np.ndarray, heights: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Record bars."""
        self._keep("histogram", edges=edges, heights=heights, label=label, style=style)

    def region(
        self, polygons: Sequence[np.ndarray], *, label: str, style: Style, hatched: bool
    ) -> None:
        """Record a region."""
        self._keep("region", polygons=polygons, label=label, style=style, hatched=hatched)

    def cells(self, cells: Cells) -> None:
        """Record a map."""
        self._keep("cells", cells=cells)

    def text(self, x: float, y: float, text: str) -> None:
        """Record a text inside the axes."""
        self._keep("text", x=x, y=y, text=text)

    def marker(self, x: float, label: str, *, colour: str, row: int) -> None:
        """Record a vertical line."""
        self._keep("marker", x=x, label=label, colour=colour, row=row)

    def legend(self, entries: list[LegendEntry], *, beside: bool) -> None:
        """Record the legend."""
        self._keep("legend", entries=entries, beside=beside)

    def note(self, text: str) -> None:
        """Record a remark."""
        self._keep("note", text=text)


def record(figure: Figure) -> RecordingCanvas:
    """Record the calls that draw a figure.

    Parameters
    ----------
    figure : Figure
        Description of the figure.

    Returns
    -------
    RecordingCanvas
        The calls.

    Raises
    ------
    InvalidParameter
        If the figure cannot be drawn.

    Examples
    --------
    >>> from solvable.plots.figure import Series
    >>> canvas = record(Figure("f", "Title", "n", "error", [Series("theory", [1, 2], [3, 4])]))
    >>> canvas.named("line")[0]["y"]
    array([3., 4.])
    """
    canvas = RecordingCanvas()
    draw(figure, canvas)
    return canvas
