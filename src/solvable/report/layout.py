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
    low, high = limits
    if scale == "log":
        return np.log(np.asarray(values) / low) / np.log(high / low)
    return (np.asarray(values) - low) / (high - low)


def padded_limits(values: np.ndarray, scale: Scale, padding: float = 0.04) -> Limits:
    """Limits of an axis that hold all values, with some air around them.

    Parameters
    ----------
    values : ndarray
        Entries that are not finite, or not positive on a logarithmic axis, are ignored.
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
    kept = values[np.isfinite(values)]
    if scale == "log":
        kept = kept[kept > 0]
        if len(kept) == 0:
            return 0.1, 1.0
        low, high = np.log(kept.min()), np.log(kept.max())
        air = padding * (high - low) if high > low else np.log(2.0)
        # The largest and smallest doubles leave no room for air.
        bounds = np.exp(np.clip([low - air, high + air], -700.0, 709.0))
        return float(bounds[0]), float(bounds[1])
    if len(kept) == 0:
        return 0.0, 1.0
    low, high = float(kept.min()), float(kept.max())
    span = high / 2 - low / 2
    air = 2 * padding * span if span > 0 else max(abs(high) / 2, 0.5)
    if not (low - air < low and high < high + air):
        air = max(abs(low), abs(high)) * 1e-9
    largest = np.finfo(float).max / 4
    return float(np.clip(low - air, -largest, largest)), float(
        np.clip(high + air, -largest, largest)
    )


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
