"""Studies as labelled arrays of xarray: parameters, replicates and entries of lists as dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from solvable.plots.frames import imported

POINT, REPLICATE = "point", "replicate"


class LabelledPoint(NamedTuple):
    """A point of a study with its prediction and its numbered measurements."""

    parameters: Mapping[str, Any]
    prediction: Mapping[str, Any]
    measured: Sequence[tuple[int, Mapping[str, Any]]] = ()


class _Axes(NamedTuple):
    """Dimensions of the points: the varied parameters, or one dimension for all points."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    places: list[tuple[int, ...]]  # of each point
    coordinates: dict[str, Any]


def dataset(
    points: Sequence[LabelledPoint],
    replicates: int,
    *,
    prefix: str = "predicted.",
    **attributes: str,
) -> Any:
    """Return an ``xarray.Dataset`` of the points, with measurements along the replicates."""
    xarray = imported("xarray", "a labelled data set")
    axes = _axes(points)
    taken = {REPLICATE, POINT, *(name for point in points for name in point.parameters)}
    variables: dict[str, Any] = {}
    measured: dict[str, list[tuple[tuple[int, ...], Any]]] = {}
    predicted: dict[str, list[tuple[tuple[int, ...], Any]]] = {}
    for place, point in zip(axes.places, points, strict=True):
        for number, metrics in point.measured:
            for name, value in metrics.items():
                measured.setdefault(name, []).append(((*place, number), value))
        for name, value in point.prediction.items():
            predicted.setdefault(name, []).append((place, value))
    lengths = _lengths([*measured.items(), *predicted.items()])
    for name, cells in measured.items():
        own = f"measured.{name}" if name in taken else name
        dims, shape = (*axes.dims, REPLICATE), (*axes.shape, replicates)
        variables[own] = _variable(name, dims, shape, cells, lengths.get(name))
    for name, cells in predicted.items():
        own = f"predicted.{name}" if not prefix and name in taken else f"{prefix}{name}"
        variables[own] = _variable(name, axes.dims, axes.shape, cells, lengths.get(name))
    coordinates = dict(axes.coordinates)
    if replicates:
        coordinates[REPLICATE] = np.arange(replicates)
    return xarray.Dataset(variables, coordinates, attributes)


def _axes(points: Sequence[LabelledPoint]) -> _Axes:
    """Return the varied parameters as dimensions if the points are their grid, else one dimension."""
    names = dict.fromkeys(name for point in points for name in point.parameters)
    columns = {name: [_plain(point.parameters.get(name)) for point in points] for name in names}
    values = {name: list(dict.fromkeys(column)) for name, column in columns.items()}
    varied = [name for name in names if len(values[name]) > 1]
    shape = tuple(len(values[name]) for name in varied)
    places = [tuple(values[n].index(columns[n][i]) for n in varied) for i in range(len(points))]
    constant = {name: column[0] for name, column in values.items() if name not in varied}
    constant = {name: value for name, value in constant.items() if value is not None}
    if prod(shape) == len(points) == len(set(places)):
        grid = {name: (name, _array(values[name])) for name in varied}
        return _Axes(tuple(varied), shape, places, {**grid, **constant})
    along = {name: (POINT, _array(columns[name])) for name in varied}
    numbers: list[tuple[int, ...]] = [(i,) for i in range(len(points))]
    return _Axes((POINT,), (len(points),), numbers, {**along, **constant})


def _plain(value: Any) -> Any:
    """Return a value of a coordinate; a list becomes text."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _array(values: Sequence[Any]) -> np.ndarray:
    """Return numbers as numbers, with NaN for None, and everything else as text."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values])
    if any(value is None for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    return np.array(values)


def _lengths(columns: Sequence[tuple[str, list[tuple[Any, Any]]]]) -> dict[str, int]:
    """Return the largest length of each list, measured or predicted."""
    lengths: dict[str, int] = {}
    for name, cells in columns:
        for _, value in cells:
            if isinstance(value, list | tuple):
                lengths[name] = max(lengths.get(name, 0), len(value))
    return lengths


def _variable(
    name: str,
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    cells: Sequence[tuple[tuple[int, ...], Any]],
    length: int | None,
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return dimensions and values; a number in place of a list is its first entry."""
    if length is not None:
        dims, shape = (*dims, f"{name}_entry"), (*shape, length)
    texts = any(isinstance(value, str) for _, cell in cells for value in _entries(cell))
    values: np.ndarray = np.full(shape, "", dtype=object) if texts else np.full(shape, np.nan)
    for place, cell in cells:
        for number, value in enumerate(_entries(cell)):
            at = place if length is None else (*place, number)
            if value is not None:
                values[at] = str(value) if texts else value
    return dims, values.astype(str) if texts else values


def _entries(cell: Any) -> Iterator[Any]:
    yield from cell if isinstance(cell, list | tuple) else (cell,)
