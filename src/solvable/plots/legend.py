"""Entries of the legend of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from solvable.plots.canvas import LegendEntry
from solvable.plots.figure import Region, Series
from solvable.plots.palette import style


def paired(series: Sequence[Series]) -> list[Series]:
    """Rename "x, theory" to "x" if "x" was measured in the same colour."""
    predicted = ", theory"
    measured = {
        (item.label + predicted, item.colour)
        for item in series
        if item.kind in ("points", "histogram") and item.label
    }
    return [
        replace(item, label=item.label.removesuffix(predicted))
        if (item.label, item.colour) in measured
        else item
        for item in series
    ]


def legend_entries(
    series: Sequence[Series],
    count: int = 0,
    regions: Sequence[Region] = (),
    strokes: Mapping[int, int] = MappingProxyType({}),
) -> list[LegendEntry]:
    """Return entries in the order of the series; curve and points of equal label share one."""
    patches = [
        LegendEntry(part.label, style(part.colour, count), patch=True, hatched=part.hatched)
        for part in regions
        if part.label
    ]
    found: dict[str, LegendEntry] = {entry.group: entry for entry in patches}
    shared = False
    for item in series:
        if not item.label:
            continue
        line: Literal["solid", "dashed"] | None = None
        if item.kind in ("line", "dashed"):
            line = "solid" if item.kind == "line" else "dashed"
        outlined = item.kind == "points" and item.hollow is not None and all(item.hollow)
        look = style(item.colour, count)._replace(
            hollow=outlined, stroke=strokes.get(item.colour, 0)
        )
        entry = LegendEntry(item.label, look, line, item.kind == "points", item.kind == "histogram")
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
    # two grey entries then name theory and measurement
    if shared and not any(entry.patch for entry in entries):
        neutral = style(-1)
        entries.append(LegendEntry("line: theory", neutral, line="solid"))
        entries.append(LegendEntry("points: measured ± s.e.", neutral, symbol=True))
    return entries
