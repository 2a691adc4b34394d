"""Interactive figures drawn by plotly; pointing at a value shows it with its error."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from solvable.plots.canvas import Cells, Frame, LegendEntry
from solvable.plots.drawing import draw
from solvable.plots.figure import Figure
from solvable.plots.layout import decade_tick, plain_tick, short_log_ticks
from solvable.plots.palette import NEUTRAL, Style, pale
from solvable.plots.plotly_map import COLOUR_BAR, heatmap

AXES_HEIGHT = 380
ROW_HEIGHT = 17
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 34, 56
"""Sizes of axes, rows of labels or notes, and margins, in pixels."""

ASSUMED_WIDTH = 640
"""Width in pixels for which rows of the legend are counted; a page counts them again for its own."""

INK = "#222222"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


STROKES = ("solid", "18px,3px", "18px,3px,3px,3px")
"""Strokes of lines."""

HATCHING = {
    "shape": "/",
    "fgcolor": "#9A9A9A",
    "bgcolor": "rgba(0,0,0,0)",
    "size": 7,
    "solidity": 0.15,
}
"""Pattern of hatched regions."""


class PlotlyCanvas:
    """Canvas of one plotly figure as plain ``data`` and ``layout``; without ``texts`` it has no title."""

    def __init__(self, *, texts: bool = True) -> None:
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {}
        self._texts = texts
        self._x_label = self._y_label = ""
        self._top = self._below = 0.0

    def begin(self, frame: Frame) -> None:
        """Set up the axes, with room above them for the marker labels."""
        self._x_label, self._y_label = _text(frame.x_label), _text(frame.y_label)
        self._top = TOP + frame.marker_rows * ROW_HEIGHT + (34 if self._texts else 0)
        right = max(RIGHT, frame.overhang * ASSUMED_WIDTH)
        self.layout |= {
            "template": {"data": {"scatter": [{"type": "scatter"}]}},  # plotly's "none"
            "font": {"family": FONT, "size": 13, "color": INK},
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "margin": {"l": LEFT, "r": right, "t": self._top, "b": BOTTOM},
            "height": AXES_HEIGHT + self._top + BOTTOM,
            "hovermode": "closest",
            "hoverlabel": {"font": {"family": FONT, "size": 12}},
            "barmode": "overlay",
            "xaxis": _axis(frame.x_label, frame.x_scale, frame.x_limits),
            "yaxis": _axis(frame.y_label, frame.y_scale, frame.y_limits),
        }
        lines = textwrap.wrap(frame.y_label, AXES_HEIGHT // 8)  # 8 pixels a character
        if len(lines) > 1:
            self.layout["yaxis"]["title"]["text"] = "<br>".join(map(_text, lines))
            self.layout["margin"]["l"] = LEFT + 16 * (len(lines) - 1)
        if self._texts:
            self.layout["title"] = {
                "text": f"<b>{_text(frame.title)}</b>",
                "font": {"size": 15},
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 10},
            }

    def _hover(self, label: str, value: str) -> str:
        head = f"<b>{_text(label)}</b><br>" if label else ""
        return f"{head}{self._x_label}: %{{x:.5~g}}<br>{self._y_label}: {value}<extra></extra>"

    def _trace(self, kind: str, label: str, style: Style, **properties: Any) -> None:
        shared = {"legendgroup": LegendEntry(label, style).group, "showlegend": False}
        self.data.append({"type": kind, "name": _text(label), **shared, **properties})

    def line(self, x: np.ndarray, y: np.ndarray, *, label: str, style: Style, dashed: bool) -> None:
        """Draw a curve."""
        self._trace(
            "scatter",
            label,
            style,
            x=x,
            y=y,
            mode="lines",
            line={
                "color": style.colour,
                "width": 2,
                "dash": "dash" if dashed else STROKES[style.stroke],
            },
            hovertemplate=self._hover(label, "%{y:.4~g} (theory)"),
        )

    def band(
        self, x: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Shade the error of a curve."""
        for low, high in _runs(np.isfinite(x) & np.isfinite(lower) & np.isfinite(upper)):
            part = slice(low, high)
            self._trace(
                "scatter",
                label,
                style,
                x=np.concatenate([x[part], x[part][::-1]]),
                y=np.concatenate([upper[part], lower[part][::-1]]),
                mode="lines",
                fill="toself",
                fillcolor=_faint(style.colour, 0.18),
                line={"width": 0},
                hoverinfo="skip",
            )

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
        """Draw symbols with error bars; pointing at a symbol shows value and error."""
        bars: dict[str, Any] = {}
        read = ["no error" if np.isnan(spread) else f"± {spread:.2g}" for spread in error]
        if np.isfinite(error).any():
            bars["error_y"] = {
                "type": "data",
                "symmetric": False,
                # plotly does not draw error bars of length zero, and does not accept NaN here
                "array": np.nan_to_num(upper - y),
                "arrayminus": np.nan_to_num(y - lower),
                "thickness": 1.4,
                "width": 3,
                "color": style.colour,
            }
        self._trace(
            "scatter",
            label,
            style,
            x=x,
            y=y,
            mode="markers",
            marker=_symbol(style),
            customdata=read,
            hovertemplate=self._hover(label, "%{y:.4~g} %{customdata} (measured)"),
            **bars,
        )

    def histogram(
        self, edges: np.ndarray, heights: np.ndarray, *, label: str, style: Style
    ) -> None:
        """Draw bars between the edges."""
        if len(heights) == 0:
            return
        head = f"<b>{_text(label)}</b><br>" if label else ""
        read = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(edges)]
        self._trace(
            "bar",
            label,
            style,
            x=(edges[:-1] + edges[1:]) / 2,
            y=heights,
            width=np.diff(edges),
            marker={
                "color": _faint(style.colour, 0.4),
                "line": {"color": style.colour, "width": 0.8},
            },
            customdata=read,
            hovertemplate=(
                f"{head}{self._x_label}: %{{customdata}}<br>{self._y_label}: %{{y:.4~g}}"
                "<extra></extra>"
            ),
        )

    def region(
        self, polygons: Sequence[np.ndarray], *, label: str, style: Style, hatched: bool
    ) -> None:
        """Fill polygons, or hatch them; pointing at a filled polygon shows its label."""
        for corners in polygons:
            around = np.vstack([corners, corners[:1]])
            look: dict[str, Any] = {
                "fillcolor": pale(style.colour),
                "line": {"width": 0.5, "color": pale(style.colour)},
                "hoveron": "fills",
                "hoverinfo": "text",
                "text": _text(label),
            }
            if hatched:
                look = {"fillpattern": HATCHING, "line": {"width": 0}, "hoverinfo": "skip"}
            self._trace(
                "scatter",
                label,
                style,
                x=around[:, 0],
                y=around[:, 1],
                mode="lines",
                fill="toself",
                **look,
            )

    def cells(self, cells: Cells) -> None:
        """Draw coloured cells with a colour bar; pointing at a cell shows its value."""
        trace = heatmap(cells, _text(cells.label))
        where = f"{self._x_label}: %{{x:.4~g}}<br>{self._y_label}: %{{y:.4~g}}<br>"
        value = f"{_text(cells.label)}: %{{customdata:.4~g}}<extra></extra>"
        self.data.append(trace | {"hovertemplate": where + value})
        for axis in ("xaxis", "yaxis"):
            self.layout[axis]["showgrid"] = False
        self.layout["margin"]["r"] = max(self.layout["margin"]["r"], COLOUR_BAR)

    def text(self, x: float, y: float, text: str) -> None:
        """Write centred text."""
        self._annotation(
            text=_text(text).replace("\n", "<br>"), x=x, y=y, showarrow=False, font={"size": 12.5}
        )

    def _annotation(self, **properties: Any) -> None:
        self.layout.setdefault("annotations", []).append(properties)

    def _vertical(self, x: float, low: float, high: float, line: dict[str, Any]) -> None:
        """Draw a vertical line between two heights, 0 and 1 at the ends of the axis."""
        ends = {"x0": x, "x1": x, "y0": low, "y1": high}
        self.layout.setdefault("shapes", []).append(
            {"type": "line", "xref": "x", "yref": "paper", **ends, "line": line}
        )

    def marker(self, x: float, label: str, *, colour: str, row: int) -> None:
        """Draw a vertical line with its label above the axes."""
        line = {"color": colour, "width": 1.2, "dash": "dot"}
        self._vertical(x, 0, 1, line)
        if row < 0:
            return
        high = ROW_HEIGHT * (row + 0.85)
        self._vertical(x, 1, 1 + high / AXES_HEIGHT, {"color": colour, "width": 1})
        logarithmic = self.layout["xaxis"]["type"] == "log"
        self._annotation(
            text=_text(label),
            # on a logarithmic axis plotly's shapes take values, and annotations take logarithms
            x=float(np.log10(x)) if logarithmic else x,
            xref="x",
            xanchor="left",
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=high - ROW_HEIGHT + 2,
            xshift=1,
            showarrow=False,
            font={"size": 11.5, "color": colour},
            hovertext=f"{_text(label)}: {self._x_label} = {x:.5g}",
        )

    def legend(self, entries: list[LegendEntry], *, beside: bool) -> None:
        """Draw the legend outside the axes; a click on an entry hides its series."""
        for entry in entries:
            self._legend_trace(entry)
        where: dict[str, Any] = {"x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top"}
        if not beside:
            where = {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": -(BOTTOM - 6) / AXES_HEIGHT,
                "yanchor": "top",
            }
            longest = max((len(entry.label) for entry in entries), default=1)
            columns = max(1, int(ASSUMED_WIDTH / (7 * longest + 56)))  # 7 pixels a character
            self._lower(1.2 * ROW_HEIGHT * -(-len(entries) // columns) + 16)
        self.layout["showlegend"] = bool(entries)
        look = {"font": {"size": 12}, "tracegroupgap": 0, "traceorder": "normal"}
        self.layout["legend"] = {**where, **look}

    def _legend_trace(self, entry: LegendEntry) -> None:
        colour = entry.style.colour
        shared = {"name": _text(entry.label), "legendgroup": entry.group, "showlegend": True}
        marker = _symbol(entry.style)
        if entry.patch:
            outline = {"color": colour, "width": 0.8}
            fill = "rgba(0,0,0,0)" if entry.hatched else _faint(colour, 0.4)
            symbol = "square-cross" if entry.hatched else "square"
            marker = {"color": fill, "symbol": symbol, "size": 12, "line": outline}
        mode = "+".join(
            name
            for name, shown in (("lines", entry.line), ("markers", entry.symbol or entry.patch))
            if shown
        )
        dash = "dash" if entry.line == "dashed" else STROKES[entry.style.stroke]
        line = {"color": colour, "width": 2, "dash": dash}
        seen = {"x": [None], "y": [None], "mode": mode, "line": line, "marker": marker}
        self.data.append({"type": "scatter", **seen, **shared})

    def note(self, text: str) -> None:
        """Write a remark under the axes and the legend."""
        if not self._texts:
            return
        self._annotation(
            text=_text(text),
            x=0,
            xref="paper",
            xanchor="left",
            y=0,
            yref="paper",
            yanchor="top",
            yshift=-(BOTTOM + self._below - 6),
            showarrow=False,
            align="left",
            font={"size": 11.5, "color": NEUTRAL},
        )
        self._lower(ROW_HEIGHT)

    def _lower(self, more: float) -> None:
        self._below += more
        bottom = BOTTOM + self._below
        self.layout["height"] = AXES_HEIGHT + self._top + bottom
        self.layout["margin"]["b"] = bottom


def _text(text: str) -> str:
    """Escape a text: plotly interprets some HTML and %{...}."""
    return escape(text, quote=False).replace("%{", "%&#123;").replace("$", "&#36;")


def _axis(label: str, scale: str, limits: tuple[float, float]) -> dict[str, Any]:
    logarithmic = scale == "log"
    bounds = np.log10(limits) if logarithmic else np.asarray(limits)
    axis = {
        "title": {"text": _text(label), "standoff": 10},
        "type": scale,
        "range": [float(bound) for bound in bounds],
        "gridcolor": "#E4E4E4",
        "linecolor": "#888888",
        "showline": True,
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": "#888888",
        "ticklen": 4,
        "automargin": False,
        "tickangle": 0,  # rotated labels would push the title of the axis into the legend
    }
    if logarithmic:
        # plotly labels ticks between decades by their digit only: "2" for 0.2 and for 20
        ticks = short_log_ticks(limits)
        names = [plain_tick(tick) for tick in ticks]
        if not ticks:
            # as many decades apart that their labels fit a narrow window
            step = int(max(1, -(-(bounds[1] - bounds[0]) // 9)))
            decades = range(int(np.ceil(bounds[0])), int(np.floor(bounds[1])) + 1)
            shown = [k for k in decades if k % step == 0]
            ticks, names = [10.0**k for k in shown], [decade_tick(k) for k in shown]
            first = (decades[0] - 1, *decades)
            axis["minor"] = {
                "ticks": "outside",
                "ticklen": 2,
                "tickcolor": "#888888",
                "tickmode": "array",
                "tickvals": [digit * 10.0**k for k in first for digit in range(1, 10)],
            }
        # by plotly's own powers of ten the labels are a quarter larger than those of other axes
        axis |= {"tickmode": "array", "tickvals": ticks, "ticktext": names}
    return axis


def _symbol(style: Style) -> dict[str, Any]:
    size = 10 if style.symbol in ("star", "diamond") else 8
    return {
        "color": "white" if style.hollow else style.colour,
        "symbol": style.symbol,
        "size": size,
        "line": {"color": style.colour, "width": 1.4}
        if style.hollow
        else {"color": "white", "width": 0.8},
    }


def _faint(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """Return half-open intervals of consecutive true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return [(int(low), int(high)) for low, high in zip(edges[::2], edges[1::2], strict=True)]


def plotly_parts(figure: Figure, *, texts: bool = True) -> dict[str, Any]:
    """Return the data and layout of a figure without plotly's checks, which take most of the time."""
    canvas = PlotlyCanvas(texts=texts)
    draw(figure, canvas)
    return {"data": canvas.data, "layout": canvas.layout}


def draw_plotly(figure: Figure, *, texts: bool = True) -> Any:
    """Draw a figure with plotly, for the screen."""
    from plotly.graph_objects import Figure as PlotlyFigure

    return PlotlyFigure(plotly_parts(figure, texts=texts))
