"""Maps as traces of plotly."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.plots.canvas import Cells
from solvable.plots.layout import plain_tick, short_log_ticks
from solvable.plots.palette import MAP_SCALE

COLOUR_BAR = 96
"""Width of a colour bar with its labels, in pixels."""


def heatmap(cells: Cells, label: str) -> dict[str, Any]:
    """Return the trace of a map; plotly has no logarithmic colours, so their logarithms are drawn."""
    logarithmic = cells.scale == "log"
    shades = np.log10(cells.values) if logarithmic else cells.values
    low, high = np.log10(cells.limits) if logarithmic else cells.limits
    bar: dict[str, Any] = {
        "title": {"text": label, "side": "right"},
        "thickness": 16,
        "outlinewidth": 0.6,
        "x": 1.01,
    }
    if logarithmic:
        decades = 10.0 ** np.arange(np.ceil(low), np.floor(high) + 1)
        ticks = short_log_ticks(cells.limits) or decades.tolist()
        bar |= {"tickvals": np.log10(ticks), "ticktext": [plain_tick(tick) for tick in ticks]}
    last = len(MAP_SCALE) - 1
    return {
        "type": "heatmap",
        "name": label,
        "x": cells.x,
        "y": cells.y,
        "z": shades,
        "customdata": cells.values,
        "zmin": float(low),
        "zmax": float(high),
        "colorscale": [[k / last, colour] for k, colour in enumerate(MAP_SCALE)],
        "colorbar": bar,
    }
