"""What stands in the legend of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from solvable.plots.canvas import LegendEntry
from solvable.plots.figure import Series
from solvable.plots.palette import style

PREDICTED = ", theory"
"""End of a curve's label that is left out where points of the same colour have the rest as label."""


def paired(series: Sequence[Series]) -> list[Series]:
    """Series in which a prediction and its measurement have the same label.

    Parameters
    ----------
    series : sequence of Series
        Series of a figure.

    Returns
    -------
    list of Series
        The same, in the same order; "x, theory" becomes "x" where "x" was measured.

    Examples
    --------
    >>> both = [Series("x, theory", [1], [1]), Series("x", [1], [1], kind="points")]
    >>> [one.label for one in paired(both)]
    ['x', 'x']
    """
    measured = {
        (one.label + PREDICTED, one.colour)
        for one in series
        if one.kind in ("points", "histogram") and one.label
    }
    return [
        replace(one, label=one.label.removesuffix(PREDICTED))
        if (one.label, one.colour) in measured
        else one
        for one in series
    ]


def legend_entries(series: Sequence[Series], count: int = 0) -> list[LegendEntry]:
    """Entries of the legend, in the order of the series.

    A curve and points of the same label and colour share one entry, and two grey entries then say
    which is the theory and which the measurement.

    Parameters
    ----------
    series : sequence of Series
        Series of a figure; those without a label have no entry.
    count : int
        How many colour numbers the figure has.

    Returns
    -------
    list of LegendEntry
        What stands in the legend.

    Examples
    --------
    >>> both = [Series("feature 1", [1], [1]), Series("feature 1", [1], [1], kind="points")]
    >>> [entry.label for entry in legend_entries(both)]
    ['feature 1', 'line: theory', 'points: measured ± s.e.']
    """
    found: dict[str, LegendEntry] = {}
    shared = False
    for one in series:
        if not one.label:
            continue
        line: Literal["solid", "dashed"] | None = None
        if one.kind in ("line", "dashed"):
            line = "solid" if one.kind == "line" else "dashed"
        look = style(one.colour, count)
        entry = LegendEntry(one.label, look, line, one.kind == "points", one.kind == "histogram")
        earlier = found.get(entry.group)
        if earlier is not None:
            shared = shared or earlier.symbol != entry.symbol
            entry = replace(
                entry,
                line=earlier.line or entry.line,
                symbol=earlier.symbol or entry.symbol,
                patch=earlier.patch or entry.patch,
            )
        found[entry.group] = entry
    entries = list(found.values())
    if shared and not any(entry.patch for entry in entries):
        neutral = style(-1)
        entries.append(LegendEntry("line: theory", neutral, line="solid"))
        entries.append(LegendEntry("points: measured ± s.e.", neutral, symbol=True))
    return entries
