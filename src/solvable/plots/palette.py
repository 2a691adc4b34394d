"""Colours and symbols shared by all back ends.

A few series have the colours of Okabe and Ito, which stay apart for every common kind of colour
blindness, with the black replaced by a grey and the yellow left out because it fades on white. Many
series are a family, such as features by rank, and have a scale from dark to light in their order:
neighbours are alike, but the order is seen at a glance. Series also differ by symbol, so that a print
in grey can be read.
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
"""Anchors of the scale for many series: the part of matplotlib's plasma that reads on white."""

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
)
"""Names that plotly uses; seven, so that they do not repeat along with the colours."""

NEUTRAL = "#6B6B6B"
"""Colour of markers and keys that belong to no series."""


class Style(NamedTuple):
    """Looks of one colour number."""

    colour: str  # ``#RRGGBB``
    symbol: str  # one of :data:`SYMBOLS`
    hollow: bool = False  # symbols are outlines


def style(number: int, count: int = 0) -> Style:
    """Colour and symbol of a colour number, of so many in a figure; negative ones are grey."""
    if number < 0:
        return Style(NEUTRAL, SYMBOLS[0])
    symbol = SYMBOLS[number % len(SYMBOLS)]
    # More than the colours of Okabe and Ito are spread along the scale.
    if count <= len(COLOURS):
        return Style(COLOURS[number % len(COLOURS)], symbol)
    return Style(_along_scale(number % count / (count - 1)), symbol)


def pale(colour: str) -> str:
    """The colour mixed with white: dark text, and a hatching, can be read on it."""
    return "#" + "".join(
        f"{255 - round(0.32 * (255 - int(colour[i : i + 2], 16))):02X}" for i in (1, 3, 5)
    )


def _along_scale(place: float) -> str:
    """Colour at a place between 0 and 1, linear between the anchors."""
    left = min(int(place * (len(SCALE) - 1)), len(SCALE) - 2)
    share = place * (len(SCALE) - 1) - left
    pairs = [
        (int(SCALE[left][i : i + 2], 16), int(SCALE[left + 1][i : i + 2], 16)) for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{round(low + share * (high - low)):02X}" for low, high in pairs)
