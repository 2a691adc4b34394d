"""Small inline SVG pictures, of a few kilobytes each, for pages with many figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from solvable.paths import printable
from solvable.plots.canvas import Cells, Frame, LegendEntry
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.layout import Limits, Scale, positions
from solvable.plots.numbers import format_number
from solvable.plots.palette import Style, map_colour

WIDTH, HEIGHT = 340, 190  # size of a picture, in the units of its view box

# margins; the left one has room for a vertical axis only if there is one
LEFT, RIGHT, TOP, BOTTOM, UPRIGHT = 8, 8, 8, 22, 44


def small_picture(
    figure: Figure, *, label: str = "", whole: bool = False, upright: bool = False
) -> str:
    """Draw a figure as a small SVG element without title and legend."""
    # whole: label the horizontal axis only at whole numbers; upright: draw a vertical axis too
    canvas = SmallCanvas(whole=whole, upright=upright)
    draw(figure, canvas)
    return canvas.markup(label or figure.title)


class SmallCanvas:
    """Canvas of :func:`small_picture`: a back end for inline SVG."""

    def __init__(self, *, whole: bool = False, upright: bool = False) -> None:
        self.whole, self.upright = whole, upright
        self.left = UPRIGHT if upright else LEFT
        self.parts: list[str] = []
        self.frame: Frame | None = None

    def begin(self, frame: Frame) -> None:
        """Draw the axes with their ticks."""
        self.frame = frame
        floor = HEIGHT - BOTTOM
        self.parts.append(f'<path class="axis" d="M{self.left} {floor}H{WIDTH - RIGHT}"/>')
        for value in ticks(frame.x_limits, frame.x_scale, whole=self.whole):
            x = float(self._x(np.array([value]))[0])
            self.parts.append(f'<path class="axis" d="M{x:.1f} {floor}v4"/>')
            text = escape(format_number(value, 3))
            self.parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 6}">{text}</text>')
        for value in ticks(frame.y_limits, frame.y_scale) if self.upright else ():
            y = float(self._y(np.array([value]))[0])
            across = f"M{self.left} {y:.1f}H{WIDTH - RIGHT}"
            text = escape(format_number(value, 3))
            self.parts.append(f'<path class="grid-line" d="{across}"/>')
            self.parts.append(
                f'<text class="up" x="{self.left - 5}" y="{y + 3.5:.1f}">{text}</text>'
            )

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Draw a curve with gaps at missing values; the pointer shows its name."""
        name = f"<title>{escape(printable(label))}</title>" if label else ""
        kind = "thin" if self.upright else "law"
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self.parts.append(
            f'<path class="{kind}" stroke="{style.colour}"{dash} d="{self.path(x, y)}">{name}</path>'
        )

    def path(self, x: np.ndarray, y: np.ndarray) -> str:
        """Return the path of a curve, with gaps at missing values."""
        steps, pen = [], "M"
        for across, up in zip(self._x(x), self._y(y), strict=True):
            if not (np.isfinite(across) and np.isfinite(up)):
                pen = "M"
                continue
            steps.append(f"{pen}{across:.1f} {up:.1f}")
            pen = "L"
        return "".join(steps)

    def band(
        self, x: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Skip the error of a curve."""

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
        """Draw circles."""
        for across, up in zip(self._x(x), self._y(y), strict=True):
            if np.isfinite(across) and np.isfinite(up):
                self.parts.append(
                    f'<circle fill="{style.colour}" cx="{across:.1f}" cy="{up:.1f}" r="2.6"/>'
                )

    def histogram(
        self, edges: np.ndarray, heights: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Draw bars as one path, without bars of zero height."""
        floor = HEIGHT - BOTTOM
        across, up = self._x(edges), self._y(heights)
        path = [
            f"M{left:.1f} {floor}V{top:.1f}H{right:.1f}V{floor}"
            for left, right, top, height in zip(across[:-1], across[1:], up, heights, strict=True)
            if height > 0 and np.isfinite(top)
        ]
        self.parts.append(f'<path class="bars" fill="{style.colour}" d="{"".join(path)}"/>')

    def region(
        self, polygons: Sequence[np.ndarray], *, label: str, style: Style, hatched: bool
    ) -> None:
        """Skip regions."""

    def cells(self, cells: Cells) -> None:
        """Draw cells without a colour bar."""
        across, up = self._x(cells.x), self._y(cells.y)
        shades = positions(cells.values, cells.scale, cells.limits)
        for row, column in np.argwhere(np.isfinite(shades)):
            x, y = across[column], up[row + 1]
            size = f'width="{across[column + 1] - x:.1f}" height="{up[row] - y:.1f}"'
            colour = map_colour(float(np.clip(shades[row, column], 0, 1)))
            self.parts.append(f'<rect fill="{colour}" x="{x:.1f}" y="{y:.1f}" {size}/>')

    def text(self, x: float, y: float, text: str) -> None:
        """Skip texts."""

    def marker(self, x: float, label: str, *, colour: str, row: int) -> None:
        """Draw a dashed vertical line with its name as a tooltip."""
        across = float(self._x(np.array([x]))[0])
        self.parts.append(
            f'<path class="edge" stroke="{colour}" d="M{across:.1f} {TOP}V{HEIGHT - BOTTOM}">'
            f"<title>{escape(label)}: {escape(format_number(x, 3))}</title></path>"
        )

    def legend(self, entries: list[LegendEntry], *, beside: bool) -> None:
        """Skip the legend: the page has one for all pictures."""

    def note(self, text: str) -> None:
        """Skip remarks: the caption has them."""

    def markup(self, label: str) -> str:
        """Return the SVG element."""
        return (
            f'<svg class="spectrum" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(printable(label))}">{"".join(self.parts)}</svg>'
        )

    def _x(self, values: np.ndarray) -> np.ndarray:
        assert self.frame is not None
        place = _placed(values, self.frame.x_scale, self.frame.x_limits)
        return self.left + (WIDTH - self.left - RIGHT) * place

    def _y(self, values: np.ndarray) -> np.ndarray:
        assert self.frame is not None
        place = _placed(values, self.frame.y_scale, self.frame.y_limits)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * np.clip(place, 0.0, 1.0)


def _placed(values: np.ndarray, scale: Scale, limits: Limits) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if scale == "log":
        values = np.where(values > 0, values, np.nan)
    return positions(values, scale, limits)


def ticks(limits: Limits, scale: Scale, *, whole: bool = False) -> list[float]:
    """Return at most six round numbers within the limits of an axis."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = limits
    places = MaxNLocator(5, steps=[1, 2, 5, 10], integer=whole).tick_values(low, high)
    if scale == "log" and np.floor(np.log10(high)) > np.ceil(np.log10(low)):
        places = LogLocator(numticks=6).tick_values(low, high)
    return [float(place) for place in places if low <= place <= high]
