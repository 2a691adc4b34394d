"""Colours and symbols shared by all back ends.

Up to six series have colours of Okabe and Ito, which people with any common colour blindness can
distinguish, with grey for black and without yellow, which is too pale on white. More series are
usually ordered, such as features by rank, and have a colour scale from dark to light. Series also
differ by symbol, for prints in grey.
"""

from __future__ import annotations

from typing import NamedTuple

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
"""Blue, vermilion, green, purple, orange, sky."""

SCALE = ("#0D0887", "#5102A3", "#8808A6", "#B6308B", "#D9586A", "#F2844B")
"""Anchors of the colour scale: the part of matplotlib's plasma that is legible on white."""

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
)
"""Symbols by plotly's names; seven, so that colours and symbols repeat with different periods."""

NEUTRAL = "#6B6B6B"
"""Colour of markers and legend entries that belong to no series."""


class Style(NamedTuple):
    """Colour and symbol of one colour index."""

    colour: str  # ``#RRGGBB``
    symbol: str  # one of :data:`SYMBOLS`
    hollow: bool = False  # True if symbols are outlines


def style(number: int, count: int = 0) -> Style:
    """Return colour and symbol of an index, given the number of colours; negative is grey."""
    if number < 0:
        return Style(NEUTRAL, SYMBOLS[0])
    symbol = SYMBOLS[number % len(SYMBOLS)]
    # more colours than those of Okabe and Ito are spread along the scale
    if count <= len(COLOURS):
        return Style(COLOURS[number % len(COLOURS)], symbol)
    return Style(_along_scale(number % count / (count - 1)), symbol)


def pale(colour: str) -> str:
    """Mix the colour with white, so that dark text and hatching are legible on it."""
    return "#" + "".join(
        f"{255 - round(0.32 * (255 - int(colour[i : i + 2], 16))):02X}" for i in (1, 3, 5)
    )


def _along_scale(place: float) -> str:
    """Return the colour at a position from 0 to 1, linear between the anchors."""
    left = min(int(place * (len(SCALE) - 1)), len(SCALE) - 2)
    share = place * (len(SCALE) - 1) - left
    pairs = [
        (int(SCALE[left][i : i + 2], 16), int(SCALE[left + 1][i : i + 2], 16)) for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{round(low + share * (high - low)):02X}" for low, high in pairs)
