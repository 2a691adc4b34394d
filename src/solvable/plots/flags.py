"""Labels of the vertical lines of a figure, flown above the axes like flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvable.plots.figure import Marker
from solvable.plots.layout import Limits, Scale, flag_rows, label_width, positions

MOST_ROWS = 6
"""Rows of labels above the axes; with more, coloured lines are explained in a note instead."""

SPELLED_OUT = 4
"""Labels that a note lists one by one; of more, the first two and the last."""


class Flags(NamedTuple):
    """Where labels of vertical lines go.

    Parameters
    ----------
    rows : list of int
        Row of each label above the axes; -1 for a line without a label.
    overhang : float
        How far labels reach beyond the right end, as a fraction of the width of the axes.
    note : str
        What to say below the axes of the lines that have no label there; empty if nothing.
    """

    rows: list[int]
    overhang: float
    note: str

    @property
    def height(self) -> int:
        """Number of rows."""
        return max(self.rows, default=-1) + 1


def place_flags(markers: Sequence[Marker], scale: Scale, limits: Limits) -> Flags:
    """Place the labels of vertical lines.

    Parameters
    ----------
    markers : sequence of Marker
        Lines within the limits.
    scale : {"linear", "log"}
        Scale of the horizontal axis.
    limits : tuple of float
        Its limits.

    Returns
    -------
    Flags
        Places of the labels.

    Examples
    --------
    >>> many = [Marker(float(i), f"feature {i}", colour=i) for i in range(1, 12)]
    >>> place_flags(many, "linear", (0.0, 12.0)).note
    'Coloured vertical lines, from the left: feature 1, feature 2, ..., feature 11.'
    """
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
    if len(labels) > SPELLED_OUT:
        labels = [*labels[:2], "...", labels[-1]]
    return f"Coloured vertical lines, from the left: {', '.join(labels)}."
