"""Colours, symbols and strokes shared by all back ends.

Up to nine series have colours that differ for people with any common colour blindness, have a
contrast of at least 3 to white, and differ in lightness, the first three most. More series are
usually ordered, such as features by rank, and have a colour scale from dark to light. For prints in
grey, series also differ by symbol, and lines without points by strokes.
"""

from __future__ import annotations

from typing import NamedTuple

COLOURS = (
    "#04448A",
    "#C12B0F",
    "#2EA77D",
    "#8B0FBB",
    "#4C3133",
    "#AA7B42",
    "#4E003E",
    "#660201",
    "#1E7BB5",
)
"""Blue, red, green, violet, brown, ochre, aubergine, maroon, azure: six hues before one returns."""

SCALE = ("#0D0887", "#450AA0", "#7718AC", "#A33A9A", "#C5517A", "#E8694A")
"""Anchors of the colour scale, each with a contrast of at least 3 to white."""

MAP_SCALE = ("#00224E", "#35456C", "#666970", "#948E77", "#C8B866", "#FEE838")
"""Anchors of the colours of maps, dark blue to yellow: lightness rises evenly, so that prints in grey
and any common colour blindness keep the order of the values."""

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
    "cross",
    "x",
)
"""Symbols by plotly's names."""

STROKES = 3
"""Number of strokes of lines without points: unbroken, long strokes, long strokes and dots."""

NEUTRAL = "#6B6B6B"
"""Colour of markers and legend entries that belong to no series."""


class Style(NamedTuple):
    """Colour and symbol of one colour index."""

    colour: str  # ``#RRGGBB``
    symbol: str  # one of :data:`SYMBOLS`
    hollow: bool = False  # True if symbols are outlines
    stroke: int = 0  # of a line that is not dashed, below :data:`STROKES`


def style(number: int, count: int = 0) -> Style:
    """Return colour and symbol of an index, given the number of colours; negative is grey."""
    if number < 0:
        return Style(NEUTRAL, SYMBOLS[0])
    symbol = SYMBOLS[number % len(SYMBOLS)]
    # more colours are spread along the scale
    if count <= len(COLOURS):
        return Style(COLOURS[number % len(COLOURS)], symbol)
    return Style(_along_scale(number % count / (count - 1)), symbol)


def stroke(number: int, count: int = 0) -> int:
    """Return the stroke of a colour index; two colours with one stroke differ in lightness."""
    if count > len(COLOURS):
        return number % STROKES
    # unbroken are the first three colours, whose lightness differs most
    return 0 if number < 3 else 1 + (number - 3) % 2


def pale(colour: str) -> str:
    """Mix the colour with white, so that dark text and hatching are legible on it."""
    return "#" + "".join(
        f"{255 - round(0.32 * (255 - int(colour[i : i + 2], 16))):02X}" for i in (1, 3, 5)
    )


def map_colour(place: float) -> str:
    """Return the colour of a map at a position from 0 to 1."""
    return _along_scale(place, MAP_SCALE)


def _along_scale(place: float, anchors: tuple[str, ...] = SCALE) -> str:
    """Return the colour at a position from 0 to 1, linear between the anchors."""
    left = min(int(place * (len(anchors) - 1)), len(anchors) - 2)
    share = place * (len(anchors) - 1) - left
    pairs = [
        (int(anchors[left][i : i + 2], 16), int(anchors[left + 1][i : i + 2], 16))
        for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{round(low + share * (high - low)):02X}" for low, high in pairs)
