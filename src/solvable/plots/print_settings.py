"""Settings of matplotlib for our figures, and which of the user's are kept."""

from __future__ import annotations

from collections.abc import Mapping
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


USERS = (
    "font.",
    "mathtext.",
    "text.",
    "axes.",
    "xtick.",
    "ytick.",
    "legend.",
    "lines.",
    "grid.",
    "pdf.",
)
"""Beginnings of the names of settings that a user may change for figures of papers."""


def settings(sizes: Mapping[str, Any] | None = None) -> Any:
    """Context with matplotlib's defaults and ours; with sizes, also what the user has changed.

    Figures of papers get the fonts and sizes of the paper; those of reports are the same everywhere.
    """
    from matplotlib import rcParams, rcParamsDefault, style

    if sizes is None:
        return style.context(["default", SETTINGS])
    changed: dict[str, Any] = {
        name: value
        for name, value in rcParams.items()
        if name.startswith(USERS) and value != rcParamsDefault[name]
    }
    return style.context(["default", SETTINGS | dict(sizes) | changed])
