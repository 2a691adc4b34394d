"""Plotly figures of the page, laid out for its width and for light or dark."""

from __future__ import annotations

import colorsys
import math
import re
from typing import Any

import numpy as np

from solvable.plots.figure import Figure
from solvable.plots.plotly_backend import BOTTOM, plotly_parts

NARROW = 620
"""Width in pixels under which the legend is below the axes and margins are small."""

DARK = (0x15, 0x18, 0x1C)
"""Background of the dark page."""


def page_figure(figure: Figure, width: int, dark: bool) -> dict[str, Any]:
    """Return data and layout of a figure, without its title, which the page writes."""
    drawn = _plain(plotly_parts(figure, texts=False))
    layout = drawn["layout"]
    _fit_legend(drawn["data"], layout, width)
    layout["paper_bgcolor"] = layout["plot_bgcolor"] = "rgba(0,0,0,0)"
    layout["uirevision"] = figure.name  # keeps what the reader zoomed to
    layout["modebar"] = {"bgcolor": "rgba(0,0,0,0)"}
    layout["height"] = float(layout["height"])
    if dark:
        drawn = {"data": _lit(drawn["data"]), "layout": _lit(layout)}
    return {"data": drawn["data"], "layout": drawn["layout"]}


def _plain(value: Any) -> Any:
    """Return a part of a figure as JSON has it, with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fit_legend(data: list[Any], layout: dict[str, Any], width: int) -> None:
    """Give a legend below the axes room for its rows, which plotly would take from the axes."""
    phone = width < NARROW
    legend = layout.get("legend", {})
    if not phone and legend.get("orientation") != "h":
        return
    labels = [len(trace["name"]) for trace in data if trace.get("showlegend")]
    fitting = math.floor(0.85 * width / (7 * max([1, *labels]) + 56))
    columns = max(1, min(fitting, len(labels)))
    room = 20 * math.ceil(len(labels) / columns) + 16
    margin = layout["margin"]
    if phone:
        margin |= {"l": 60, "r": 12}
    layout["height"] += BOTTOM + room - margin["b"]
    margin["b"] = BOTTOM + room
    axes = layout["height"] - margin["t"] - margin["b"]
    layout["legend"] = legend | {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": -BOTTOM / axes,
        "yanchor": "top",
        "entrywidthmode": "fraction",
        "entrywidth": 1 / columns,
    }
    low, high = layout["xaxis"]["range"]
    for label in layout.get("annotations", []) if phone else []:
        if label.get("xref") == "x" and (label["x"] - low) / (high - low) > 0.6:
            label |= {"xanchor": "right", "xshift": -1}


def _lit(value: Any, name: str = "") -> Any:
    """Return a part of a figure with its colours made legible on the dark page."""
    if isinstance(value, dict):
        return {key: _lit(part, key) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lit(part, name) for part in value]
    if not isinstance(value, str) or "color" not in name:
        return value
    if value == "white":
        return "#{:02x}{:02x}{:02x}".format(*DARK)
    if name in ("gridcolor", "tickcolor", "linecolor"):
        return "#343a42" if name == "gridcolor" else "#79828c"
    if re.fullmatch(r"#[0-9A-Fa-f]{6}", value):
        rgb = [int(value[start : start + 2], 16) for start in (1, 3, 5)]
        if name == "fillcolor":
            return "rgba({},{},{},0.25)".format(*_bright(rgb))
        return "#{:02x}{:02x}{:02x}".format(*_bright(rgb))
    found = re.fullmatch(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)", value)
    if found and float(found[4]) > 0:
        return "rgba({},{},{},{})".format(*_bright([int(found[k]) for k in (1, 2, 3)]), found[4])
    return value


def _bright(rgb: list[int]) -> list[int]:
    """Raise the lightness of a colour until it is legible on the dark page; more so for text."""
    hue, light, saturation = colorsys.rgb_to_hls(*(part / 255 for part in rgb))
    contrast = 9 if saturation < 0.05 else 5
    while True:
        shown = colorsys.hls_to_rgb(hue, light, saturation)
        if light >= 1 or (_luminance(shown) + 0.05) / (_luminance(_DARK_PARTS) + 0.05) >= contrast:
            return [round(255 * part) for part in shown]
        light = min(1.0, light + 0.02)


def _luminance(rgb: tuple[float, ...]) -> float:
    """Return the relative luminance of WCAG."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


_DARK_PARTS = tuple(part / 255 for part in DARK)
