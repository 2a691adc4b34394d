"""Inline SVG pictures of many thin lines with both axes; a line shows its name under the pointer."""

from __future__ import annotations

from html import escape

import numpy as np

from solvable.pages.small_pictures import BOTTOM, HEIGHT, RIGHT, WIDTH, SmallCanvas, ticks
from solvable.paths import printable
from solvable.plots.canvas import Frame
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.layout import positions
from solvable.plots.numbers import format_number
from solvable.plots.palette import Style

LEFT = 44  # room for the labels of the vertical axis


def line_picture(figure: Figure, *, whole: bool = False) -> str:
    """Draw a figure as a small SVG element without title and legend."""
    canvas = LineCanvas(whole=whole)
    draw(figure, canvas)
    return canvas.markup(figure.title)


class LineCanvas(SmallCanvas):
    """Canvas of :func:`line_picture`."""

    def begin(self, frame: Frame) -> None:
        """Draw both axes with their ticks."""
        super().begin(frame)
        # The axis of the base class begins at the left margin of pictures without a vertical axis.
        self.parts[0] = f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
        for value in ticks(frame.y_limits, frame.y_scale):
            y = float(self._y(np.array([value]))[0])
            self.parts.append(f'<path class="grid-line" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            text = escape(format_number(value, 3))
            self.parts.append(f'<text class="up" x="{LEFT - 5}" y="{y + 3.5:.1f}">{text}</text>')

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Draw a curve whose name appears under the pointer."""
        self.parts.append(
            f'<path class="thin" stroke="{style.colour}" d="{self.path(x, y)}">'
            f"<title>{escape(printable(label))}</title></path>"
        )

    def _x(self, values: np.ndarray) -> np.ndarray:
        assert self.frame is not None
        values = np.asarray(values, dtype=float)
        if self.frame.x_scale == "log":
            values = np.where(values > 0, values, np.nan)
        place = positions(values, self.frame.x_scale, self.frame.x_limits)
        return LEFT + (WIDTH - LEFT - RIGHT) * np.asarray(place)
