"""Figures as SVG and PDF, drawn by matplotlib without its global state."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.plots.canvas import Cells, Frame, LegendEntry
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.layout import plain_tick, short_log_ticks
from solvable.plots.palette import MAP_SCALE, NEUTRAL, Style, pale
from solvable.plots.print_settings import settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

AXES_WIDTH, AXES_HEIGHT = 5.2, 3.5
LEFT, RIGHT, TOP, BOTTOM = 0.85, 0.2, 0.45, 0.6
ROW_HEIGHT = 0.165
"""Sizes of axes, margins, and rows of labels, legend and notes, in inches."""

CAPTION = "caption"
"""Identifiers of title and remarks in the SVG."""

SYMBOLS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "pentagon": "p",
    "star": "*",
    "cross": "P",
    "x": "X",
}
STROKES: tuple[Any, ...] = ("solid", (0, (11, 1.8)), (0, (11, 1.8, 1.6, 1.8)))
"""Strokes of lines, in line widths."""


class MatplotlibCanvas:
    """Canvas of one matplotlib figure, ``.figure``; without ``texts`` it has no title."""

    def __init__(self, *, texts: bool = True) -> None:
        self._texts = texts
        # the module imports matplotlib, which takes 0.3 seconds
        self.figure: Any = import_module("solvable.plots.drawn_figure").DrawnFigure()
        self.axes: Any = None
        self._below = 0

    def begin(self, frame: Frame) -> None:
        """Set up axes of fixed size, with room above them for the marker labels."""
        right = max(RIGHT, frame.overhang * AXES_WIDTH + 0.1)
        top = TOP + frame.marker_rows * ROW_HEIGHT
        width, height = LEFT + AXES_WIDTH + right, BOTTOM + AXES_HEIGHT + top
        self.figure.set_size_inches(width, height)
        self.axes = self.figure.add_axes(
            (LEFT / width, BOTTOM / height, AXES_WIDTH / width, AXES_HEIGHT / height)
        )
        self.axes.set(xscale=frame.x_scale, yscale=frame.y_scale)
        self.axes.set(xlim=frame.x_limits, ylim=frame.y_limits)
        for axis, scale, limits in (
            (self.axes.xaxis, frame.x_scale, frame.x_limits),
            (self.axes.yaxis, frame.y_scale, frame.y_limits),
        ):
            ticks = short_log_ticks(limits) if scale == "log" else []
            if ticks:
                _label(axis, ticks)
        self.axes.set_xlabel(frame.x_label, parse_math=False)
        self.axes.set_ylabel(frame.y_label, parse_math=False)
        if not self._texts:
            return
        self._text(
            frame.title,
            (0.0, 1.0),
            (0.0, 8.0 + 72 * ROW_HEIGHT * frame.marker_rows),
            fontsize=10.5,
            fontweight="bold",
            gid=CAPTION,
        )

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Draw a curve."""
        linestyle = (0, (5, 2.5)) if dashed else STROKES[style.stroke]
        self.axes.plot(x, y, color=style.colour, linestyle=linestyle, linewidth=1.5, zorder=2.5)

    def band(
        self, x: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Shade the error of a curve."""
        self.axes.fill_between(x, lower, upper, color=style.colour, alpha=0.18, linewidth=0)

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
        """Draw symbols with error bars."""
        self.axes.errorbar(
            x,
            y,
            yerr=np.vstack([y - lower, upper - y]) if np.isfinite(error).any() else None,
            linestyle="none",
            color=style.colour,
            elinewidth=1.1,
            capsize=2.2,
            zorder=3.5,
            **_symbol(style),
        )

    def histogram(
        self, edges: np.ndarray, heights: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Draw bars between the edges."""
        if len(heights) == 0:
            return
        baseline = self.axes.get_ylim()[0] if self.axes.get_yscale() == "log" else 0.0
        self.axes.stairs(
            heights,
            edges,
            baseline=baseline,
            fill=True,
            facecolor=style.colour,
            alpha=0.35,
        )
        self.axes.stairs(heights, edges, baseline=baseline, color=style.colour, linewidth=0.8)

    def region(
        self, polygons: Sequence[np.ndarray], *, label: str, style: Style, hatched: bool
    ) -> None:
        """Fill polygons, or hatch them."""
        from matplotlib.patches import Polygon

        for corners in polygons:
            # A border of the same colour closes the seams between polygons of one region.
            look: dict[str, Any] = {"color": pale(style.colour), "linewidth": 0.4, "zorder": 0.8}
            if hatched:
                look = {"fill": False, "linewidth": 0, "edgecolor": "#9A9A9A", "hatch": "////"}
            self.axes.add_patch(Polygon(corners, **({"zorder": 2.0} | look)))

    def cells(self, cells: Cells) -> None:
        """Draw coloured cells, and a colour bar that moves with the axes."""
        from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

        colours = LinearSegmentedColormap.from_list("map", MAP_SCALE)
        norm = (LogNorm if cells.scale == "log" else Normalize)(*cells.limits)
        # A border of the colour of the cell closes the seams between cells.
        mesh = self.axes.pcolormesh(
            cells.x, cells.y, cells.values, cmap=colours, norm=norm, edgecolors="face",
            linewidth=0.2, zorder=0.8,
        )  # fmt: skip
        self.axes.grid(visible=False)
        bar = self.figure.colorbar(mesh, cax=self.axes.inset_axes((1.03, 0.0, 0.045, 1.0)))
        bar.outline.set_linewidth(0.6)
        if cells.scale == "log" and (ticks := short_log_ticks(cells.limits)):
            _label(bar.ax.yaxis, ticks)
        bar.ax.set_ylabel(cells.label, parse_math=False)
        self._resize(width=self.figure.get_size_inches()[0] + 0.85)

    def text(self, x: float, y: float, text: str) -> None:
        """Write centred text with a pale outline, so that it is legible over lines."""
        from matplotlib.patheffects import withStroke

        note = self.axes.text(
            x, y, text, ha="center", va="center", fontsize=8.5, zorder=4, parse_math=False
        )
        note.set_path_effects([withStroke(linewidth=2.2, foreground="white")])

    def marker(self, x: float, label: str, *, colour: str, row: int) -> None:
        """Draw a vertical line with its label above the axes."""
        self.axes.axvline(x, color=colour, linewidth=0.9, linestyle=(0, (2, 2)), zorder=2.2)
        if row < 0:
            return
        high = 72 * ROW_HEIGHT * (row + 0.85)  # 72 points are an inch
        self.axes.annotate(
            "",
            (x, 1.0),
            (0.0, high),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "shrinkA": 0,
                "shrinkB": 0,
            },
            annotation_clip=False,
        )
        self._text(
            label,
            (x, 1.0),
            (2.5, high - 8.0),
            xycoords=("data", "axes fraction"),
            fontsize=8.0,
            color=colour,
        )

    def legend(self, entries: list[LegendEntry], *, beside: bool) -> None:
        """Draw the legend outside the axes."""
        if not entries:
            return
        handles = [legend_handle(entry) for entry in entries]
        # in inches: a character of the legend, and the line sample before it
        longest = max(len(entry.label) for entry in entries) * 0.066 + 0.45
        if beside:
            where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "ncols": 1}
            width, _ = self.figure.get_size_inches()
            self._resize(width=max(width, LEFT + AXES_WIDTH + longest + 0.1))
        else:
            columns = max(1, min(len(entries), int(AXES_WIDTH / longest)))
            rows = -(-len(entries) // columns)
            where = {
                "loc": "upper left",
                "bbox_to_anchor": (-0.02, -0.42 / AXES_HEIGHT),
                "ncols": columns,
            }
            self._below += rows
            self._resize(lower=rows * ROW_HEIGHT + 0.1)
        legend = self.axes.legend(handles=handles, borderaxespad=0.3, **where)
        for text in legend.get_texts():
            text.set_parse_math(False)

    def note(self, text: str) -> None:
        """Write a remark under the axes and the legend."""
        if not self._texts:
            return
        lines = textwrap.wrap(text, 95)
        for line in lines:
            offset = -72 * (0.56 + ROW_HEIGHT * (self._below + 0.6))
            self._text(line, (0.0, 0.0), (0.0, offset), fontsize=8.0, color=NEUTRAL, gid=CAPTION)
            self._below += 1
        self._resize(lower=len(lines) * ROW_HEIGHT)

    def _text(
        self,
        text: str,
        at: tuple[float, float],
        offset: tuple[float, float],
        *,
        xycoords: Any = "axes fraction",
        **properties: Any,
    ) -> None:
        note = self.axes.annotate(
            text,
            at,
            offset,
            xycoords=xycoords,
            textcoords="offset points",
            annotation_clip=False,
            **properties,
        )
        note.set_parse_math(False)

    def _resize(self, *, width: float | None = None, lower: float = 0.0) -> None:
        """Widen the figure, or extend it at the bottom, and keep the size of the axes."""
        old_width, old_height = self.figure.get_size_inches()
        new_width, new_height = width or old_width, old_height + lower
        box = self.axes.get_position(original=True)
        self.figure.set_size_inches(new_width, new_height)
        self.axes.set_position(
            (
                box.x0 * old_width / new_width,
                (box.y0 * old_height + lower) / new_height,
                AXES_WIDTH / new_width,
                AXES_HEIGHT / new_height,
            )
        )


def _label(axis: Any, ticks: Sequence[float]) -> None:
    """Label an axis at these positions with plain numbers."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([plain_tick(tick) for tick in ticks]))
    axis.set_minor_formatter(NullFormatter())


def _symbol(style: Style) -> dict[str, Any]:
    size = {"star": 8.5, "diamond": 4.6, "square": 4.8}.get(style.symbol, 5.4)
    return {
        "marker": SYMBOLS[style.symbol],
        "markersize": size,
        "markeredgecolor": style.colour if style.hollow else "white",
        "markeredgewidth": 1.1 if style.hollow else 0.5,
        "markerfacecolor": "white" if style.hollow else style.colour,
    }


def legend_handle(entry: LegendEntry) -> Any:
    """Return the artist that an entry of the legend shows."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = entry.style.colour
    if entry.hatched:
        return Patch(
            facecolor="white", edgecolor="#9A9A9A", hatch="//////", linewidth=0, label=entry.label
        )
    if entry.patch:
        return Patch(facecolor=colour, edgecolor=colour, alpha=0.45, label=entry.label)
    solid = STROKES[entry.style.stroke]
    linestyle: Any = {None: "none", "solid": solid, "dashed": (0, (4, 2))}[entry.line]
    symbol = _symbol(entry.style) if entry.symbol else {}
    return Line2D(
        [], [], color=colour, linestyle=linestyle, linewidth=1.5, label=entry.label, **symbol
    )


def draw_matplotlib(figure: Figure, *, texts: bool = True) -> MatplotlibFigure:
    """Draw a figure with matplotlib, for print."""
    with settings():
        canvas = MatplotlibCanvas(texts=texts)
        draw(figure, canvas)
    drawn: MatplotlibFigure = canvas.figure
    return drawn
