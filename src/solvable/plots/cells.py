"""Cells of a map: edges between the centres, and the range of the colours."""

from __future__ import annotations

import numpy as np

from solvable.errors import InvalidParameter
from solvable.plots.canvas import Cells
from solvable.plots.figure import Figure, Map
from solvable.plots.layout import Limits, Scale, can_be_shown, padded_limits


def cells_of(figure: Figure, drawn: Map) -> Cells:
    """Return the cells of the map of a figure; raise if its arrays do not fit together."""
    x, y = (np.asarray(centres, dtype=float) for centres in (drawn.x, drawn.y))
    values = np.array(drawn.values, dtype=float)
    if values.shape != (y.size, x.size) or not values.size:
        raise InvalidParameter(
            f"the map of figure {figure.name!r} has {x.size} columns, {y.size} rows and values of shape "
            f"{values.shape}; allowed: values of shape (rows, columns), at least (1, 1)."
        )
    values[~can_be_shown(values, drawn.scale)] = np.nan
    limits = drawn.limits or _range(values, drawn.scale)
    if not limits[0] < limits[1]:
        raise InvalidParameter(
            f"the map of figure {figure.name!r} has limits {limits}; allowed: two numbers in increasing "
            "order. Omit them to fit the values."
        )
    edges = [
        _edges(centres, scale, f"{name} of the map of figure {figure.name!r}")
        for name, centres, scale in (("x", x, figure.x_scale), ("y", y, figure.y_scale))
    ]
    return Cells(edges[0], edges[1], values, drawn.label, drawn.scale, limits)


def _range(values: np.ndarray, scale: Scale) -> Limits:
    """Return the smallest and largest value, or a range around a single one."""
    known = values[np.isfinite(values)]
    if known.size and known.min() < known.max():
        return float(known.min()), float(known.max())
    return padded_limits(values, scale)


def _edges(centres: np.ndarray, scale: Scale, where: str) -> np.ndarray:
    """Return edges half-way between the centres of cells, on the scale of the axis."""
    if not (can_be_shown(centres, scale).all() and np.all(np.diff(centres) > 0)):
        raise InvalidParameter(
            f"{where} is {centres.tolist()}; allowed: finite numbers in increasing order, positive on a "
            "logarithmic axis."
        )
    places = np.log(centres) if scale == "log" else centres
    steps = np.diff(places) if places.size > 1 else np.ones(1)
    edges = np.concatenate(
        [
            [places[0] - steps[0] / 2],
            places[:-1] + np.diff(places) / 2,
            [places[-1] + steps[-1] / 2],
        ]
    )
    return np.exp(edges) if scale == "log" else edges
