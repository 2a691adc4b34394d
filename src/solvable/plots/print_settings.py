"""Settings of matplotlib for our figures, independent of the user's."""

from __future__ import annotations

from typing import Any

INK = "#222222"
"""Colour of texts."""

SETTINGS = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "path",  # glyphs as outlines, so that no font is needed
    "svg.hashsalt": "solvable",  # the same identifiers at each call
    "pdf.fonttype": 42,  # text can be searched and edited
}


def settings() -> Any:
    """Context with matplotlib's defaults and ours, independent of the user's settings."""
    from matplotlib import style

    return style.context(["default", SETTINGS])
