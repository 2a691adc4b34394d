"""Colours and symbols shared by all back ends.

The colours are those of Okabe and Ito, which stay apart for every common kind of colour blindness,
with the black and the yellow replaced by a grey and an ochre that also read on white. Series also
differ by symbol, so that a print in grey can be read.
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
    "#4D4D4D",
    "#A08C00",
)
"""Blue, vermilion, green, purple, orange, sky, dark grey, ochre."""

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
)
"""Names that plotly uses; their number is prime to that of the colours, so pairs repeat late."""

NEUTRAL = "#6B6B6B"
"""Colour of markers and keys that belong to no series."""


class Style(NamedTuple):
    """Looks of one colour number.

    Parameters
    ----------
    colour : str
        ``#RRGGBB``.
    symbol : str
        One of :data:`SYMBOLS`.
    """

    colour: str
    symbol: str


def style(number: int) -> Style:
    """Colour and symbol of a colour number; negative numbers are neutral grey.

    Parameters
    ----------
    number : int
        As in :class:`solvable.systems.base.Series`. The first 56 pairs differ.

    Returns
    -------
    Style
        Colour and symbol.

    Examples
    --------
    >>> style(0)
    Style(colour='#0072B2', symbol='circle')
    >>> style(-1).colour
    '#6B6B6B'
    """
    if number < 0:
        return Style(NEUTRAL, "circle")
    return Style(COLOURS[number % len(COLOURS)], SYMBOLS[number % len(SYMBOLS)])
