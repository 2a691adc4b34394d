"""Layout of a figure: limits of the axes, and labels of vertical lines above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from solvable.plots.figure import Marker
from solvable.plots.numbers import superscript

Scale = Literal["linear", "log"]
Limits = tuple[float, float]


def can_be_shown(values: np.ndarray, scale: Scale) -> np.ndarray:
    """Return True for values that an axis can show: finite, below 1e150, positive if logarithmic."""
    values = np.asarray(values, dtype=float)
    largest = 1e150  # differences and squares of larger values, and of inverses, would overflow
    shown = np.abs(values) <= largest
    return shown & (values >= 1 / largest) if scale == "log" else shown


def positions(values: np.ndarray, scale: Scale, limits: Limits) -> np.ndarray:
    """Return the position of values along an axis, from 0 at its lower to 1 at its upper limit."""
    values, ends = np.asarray(values, dtype=float), np.array(limits)
    if scale == "log":
        values, ends = np.log(values), np.log(ends)
    with np.errstate(over="ignore"):  # far beyond limits that are very close: infinity, outside
        return (values - ends[0]) / (ends[1] - ends[0])


def padded_limits(values: np.ndarray, scale: Scale, padding: float = 0.04) -> Limits:
    """Return distinct limits around all values, with a margin as a share of the axis."""
    values = np.asarray(values, dtype=float)
    kept = values[can_be_shown(values, scale)]
    if len(kept) == 0:
        return (0.1, 1.0) if scale == "log" else (0.0, 1.0)
    low, high = float(kept.min()), float(kept.max())
    if scale == "log":
        # powers first, as the ratio can overflow
        factor = high**padding / low**padding if high > low else 2.0
        # values that differ only in their last digits need a larger margin
        factor = max(factor, 1.01)
        return low / factor, high * factor
    air = padding * (high - low) if high > low else max(abs(high) / 2, 0.5)
    # values that differ only in their last digits need a larger margin
    air = max(air, 1e-9 * max(abs(low), abs(high)))
    return low - air, high + air


def label_width(label: str) -> float:
    """Width of a marker's label with its padding, as a fraction of the width of the axes."""
    return len(label) * 0.0128 + 0.02 if label else 0.0


def flag_rows(places: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Return the row of each label above the axes; labels stand to the right of their lines.

    Row 0 is next to the axes; a line without a label, of width 0, has -1.
    """
    rows = [-1] * len(places)
    done: list[int] = []
    for index in sorted(range(len(places)), key=lambda i: (places[i], i), reverse=True):
        if widths[index] > 0:
            # a label is above every label whose line lies under it, so that nothing crosses
            end = places[index] + widths[index]
            under = [rows[other] for other in done if places[other] < end]
            rows[index] = 1 + max(under, default=-1)
        done.append(index)
    return rows


MOST_ROWS = 6
"""Largest number of label rows; with more, a note explains the coloured lines instead."""


class Flags(NamedTuple):
    """Layout of the labels of vertical lines."""

    rows: list[int]  # row of each label above the axes; -1 for a line without one
    overhang: float  # length of labels beyond the right end, in widths of the axes
    note: str  # note on coloured lines without a label; empty for none

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
    """Return the tick positions of a logarithmic axis shorter than two decades.

    Return none for a longer axis, whose whole decades are labelled.
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
    """Format a tick as a plain number, or as a power of ten if that is much shorter."""
    return f"{value:.12g}" if 1e-4 < abs(value) < 1e6 else f"{value:g}"


def decade_tick(exponent: int) -> str:
    """Format a power of ten: a plain number from 0.001 to 1000, else with a superscript."""
    return f"{10.0**exponent:g}" if abs(exponent) <= 3 else f"10{superscript(exponent)}"
