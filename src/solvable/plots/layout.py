"""Where things go in a figure: limits of the axes, and labels of vertical lines above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from solvable.plots.figure import Marker

Scale = Literal["linear", "log"]
Limits = tuple[float, float]


def can_be_shown(values: np.ndarray, scale: Scale) -> np.ndarray:
    """Where an axis can show values: finite, not absurdly large, positive if it is logarithmic."""
    values = np.asarray(values, dtype=float)
    largest = 1e150  # differences and squares of larger ones, and of inverses, would overflow
    shown = np.abs(values) <= largest
    return shown & (values >= 1 / largest) if scale == "log" else shown


def positions(values: np.ndarray, scale: Scale, limits: Limits) -> np.ndarray:
    """Place of values along an axis: 0 at its lower limit, 1 at its upper."""
    values, ends = np.asarray(values, dtype=float), np.array(limits)
    if scale == "log":
        values, ends = np.log(values), np.log(ends)
    return (values - ends[0]) / (ends[1] - ends[0])


def padded_limits(values: np.ndarray, scale: Scale, padding: float = 0.04) -> Limits:
    """Distinct limits that hold all values an axis can show, with air as a share of the axis."""
    values = np.asarray(values, dtype=float)
    kept = values[can_be_shown(values, scale)]
    if len(kept) == 0:
        return (0.1, 1.0) if scale == "log" else (0.0, 1.0)
    low, high = float(kept.min()), float(kept.max())
    if scale == "log":
        # Powers before the ratio, which can overflow.
        factor = high**padding / low**padding if high > low else 2.0
        # Values that differ in their last digits need air of more than these.
        factor = max(factor, 1.01)
        return low / factor, high * factor
    air = padding * (high - low) if high > low else max(abs(high) / 2, 0.5)
    # Values that differ in their last digits need air of more than these.
    air = max(air, 1e-9 * max(abs(low), abs(high)))
    return low - air, high + air


def label_width(label: str) -> float:
    """Width of a marker's label with its padding, as a fraction of the width of the axes."""
    return len(label) * 0.0128 + 0.02 if label else 0.0


def flag_rows(places: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Rows above the axes in which labels hang like flags to the right of their lines.

    Row 0 is next to the axes; a line without a label, of width 0, has -1.
    """
    rows = [-1] * len(places)
    done: list[int] = []
    for index in sorted(range(len(places)), key=lambda i: (places[i], i), reverse=True):
        if widths[index] > 0:
            # Above every flag whose pole stands under it, so that neither labels nor poles cross.
            end = places[index] + widths[index]
            under = [rows[other] for other in done if places[other] < end]
            rows[index] = 1 + max(under, default=-1)
        done.append(index)
    return rows


MOST_ROWS = 6
"""Rows of labels above the axes; with more, coloured lines are explained in a note instead."""


class Flags(NamedTuple):
    """Where labels of vertical lines go."""

    rows: list[int]  # of each label above the axes; -1 for a line without one
    overhang: float  # how far labels reach beyond the right end, in widths of the axes
    note: str  # what to say of coloured lines that have no label above; empty if nothing

    @property
    def height(self) -> int:
        """Number of rows."""
        return max(self.rows, default=-1) + 1


def place_flags(markers: Sequence[Marker], scale: Scale, limits: Limits) -> Flags:
    """Place the labels of vertical lines that are within the limits of the axis."""
    at = positions(np.array([marker.x for marker in markers], dtype=float), scale, limits)
    places = [float(place) for place in at]
    widths = [label_width(marker.label) for marker in markers]
    note = ""
    if max(flag_rows(places, widths), default=-1) >= MOST_ROWS:
        coloured = [i for i, marker in enumerate(markers) if marker.colour >= 0 and marker.label]
        for i in coloured:
            widths[i] = 0.0
        note = _note([markers[i].label for i in sorted(coloured, key=lambda i: places[i])])
    reach = max((p + w for p, w in zip(places, widths, strict=True)), default=0.0)
    return Flags(flag_rows(places, widths), max(reach - 1, 0.0), note)


def _note(labels: list[str]) -> str:
    if not labels:
        return ""
    if len(labels) > 4:
        labels = [*labels[:2], "...", labels[-1]]
    return f"Coloured vertical lines, from the left: {', '.join(labels)}."


def short_log_ticks(limits: tuple[float, float]) -> list[float]:
    """Places that are labelled on a logarithmic axis shorter than two decades; none on a longer one.

    On a longer axis whole decades are labelled.
    """
    low, high = limits
    if high >= 100 * low:
        return []
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks: list[float] = []
    for digits in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), tuple(np.arange(10, 100) / 10)):
        places = np.outer(decades, digits).ravel()
        ticks = [float(f"{place:.12g}") for place in places if low <= place <= high]
        if len(ticks) >= 3:
            break
    if len(ticks) < 3:  # less than a tenth of a decade: nearly linear
        step = 10.0 ** np.floor(np.log10((high - low) / 3))
        step *= max(digit for digit in (1, 2, 5) if digit * step <= (high - low) / 3)
        first, last = np.ceil(low / step), np.floor(high / step)
        ticks = [float(f"{place * step:.12g}") for place in np.arange(first, last + 1)]
    return ticks[:: -(-len(ticks) // 9)]


def plain_tick(value: float) -> str:
    """A labelled place as a plain number; a power of ten where that is much shorter."""
    return f"{value:.12g}" if 1e-4 < abs(value) < 1e6 else f"{value:g}"
