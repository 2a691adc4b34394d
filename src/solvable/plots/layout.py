"""Where things go in a figure: limits of the axes and rows of the marker labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

Scale = Literal["linear", "log"]
Limits = tuple[float, float]

CHARACTER_WIDTH = 0.0128
"""Width of a character of a marker label, as a fraction of the width of the axes."""

FLAG_PADDING = 0.02
"""Space between a marker's line and the next label, as a fraction of the width of the axes."""


LARGEST = 1e150
"""Values beyond this, and below its inverse on a logarithmic axis, are not shown: their differences
and squares would overflow."""


def can_be_shown(values: np.ndarray, scale: Scale) -> np.ndarray:
    """Which values an axis can show.

    Parameters
    ----------
    values : ndarray
        Coordinates.
    scale : {"linear", "log"}
        Scale of the axis.

    Returns
    -------
    ndarray of bool
        False where a value is not finite, absurdly large, or not positive on a logarithmic axis.

    Examples
    --------
    >>> can_be_shown(np.array([-1.0, 0.0, 1.0, np.nan]), "log")
    array([False, False,  True, False])
    """
    values = np.asarray(values, dtype=float)
    shown = np.abs(values) <= LARGEST
    return shown & (values >= 1 / LARGEST) if scale == "log" else shown


def positions(values: np.ndarray, scale: Scale, limits: Limits) -> np.ndarray:
    """Place of values along an axis: 0 at its lower limit, 1 at its upper.

    Parameters
    ----------
    values : ndarray of shape (m,)
        In the units of the axis; positive on a logarithmic one.
    scale : {"linear", "log"}
        Scale of the axis.
    limits : tuple of float
        Lower and upper limit.

    Returns
    -------
    ndarray of shape (m,)
        Fractions of the axis.

    Examples
    --------
    >>> positions(np.array([1.0, 10.0, 100.0]), "log", (1.0, 100.0))
    array([0. , 0.5, 1. ])
    """
    values, ends = np.asarray(values, dtype=float), np.array(limits)
    if scale == "log":
        values, ends = np.log(values), np.log(ends)
    return (values - ends[0]) / (ends[1] - ends[0])


def padded_limits(values: np.ndarray, scale: Scale, padding: float = 0.04) -> Limits:
    """Limits of an axis that hold all values, with some air around them.

    Parameters
    ----------
    values : ndarray
        Entries that an axis cannot show are ignored.
    scale : {"linear", "log"}
        Scale of the axis.
    padding : float
        Air on each side, as a fraction of the axis.

    Returns
    -------
    tuple of float
        Lower and upper limit, distinct and, on a logarithmic axis, positive.

    Examples
    --------
    >>> padded_limits(np.array([0.0, 1.0, np.nan]), "linear", padding=0.1)
    (-0.1, 1.1)
    >>> padded_limits(np.array([-3.0, 0.0]), "log")
    (0.1, 1.0)
    """
    values = np.asarray(values, dtype=float)
    kept = values[can_be_shown(values, scale)]
    if len(kept) == 0:
        return (0.1, 1.0) if scale == "log" else (0.0, 1.0)
    low, high = float(kept.min()), float(kept.max())
    if scale == "log":
        # Powers before the ratio, which can overflow.
        factor = high**padding / low**padding if high > low else 2.0
        return low / factor, high * factor
    air = padding * (high - low) if high > low else max(abs(high) / 2, 0.5)
    # Values that differ in their last digits need air of more than these.
    air = max(air, 1e-9 * max(abs(low), abs(high)))
    return low - air, high + air


def label_width(label: str) -> float:
    """Width of a marker's label as a fraction of the width of the axes.

    Parameters
    ----------
    label : str
        Text of the label.

    Returns
    -------
    float
        Its width with padding; 0 if there is no label.

    Examples
    --------
    >>> label_width("")
    0.0
    """
    return len(label) * CHARACTER_WIDTH + FLAG_PADDING if label else 0.0


def flag_rows(places: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Rows above the axes in which labels hang like flags to the right of their lines.

    A flag flies above every flag whose pole stands under it, so that neither labels nor poles cross.

    Parameters
    ----------
    places : sequence of float
        Places of the lines along the axis.
    widths : sequence of float
        Widths of the labels in the same unit; 0 for a line without a label.

    Returns
    -------
    list of int
        Row of each label, 0 next to the axes; -1 for a line without a label. Quadratic in their number.

    Examples
    --------
    >>> flag_rows([0.1, 0.2, 0.8], [0.3, 0.3, 0.3])
    [1, 0, 0]
    """
    rows = [-1] * len(places)
    done: list[int] = []
    for index in sorted(range(len(places)), key=lambda i: (places[i], i), reverse=True):
        if widths[index] > 0:
            end = places[index] + widths[index]
            under = [rows[other] for other in done if places[other] < end]
            rows[index] = 1 + max(under, default=-1)
        done.append(index)
    return rows
