"""Predictions over a grid of parameters, and the tables that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.errors import InvalidParameter, unknown_choice
from solvable.frame.points import (
    NO_PREDICTION,
    Metrics,
    has_raised,
    predicted_or_refused,
    raised_prediction,
)
from solvable.frame.system import System
from solvable.paths import error_line
from solvable.plots.displayed import Shown
from solvable.plots.numbers import format_number
from solvable.plots.table_text import to_latex, to_markdown
from solvable.plots.tables import Column, Table
from solvable.study.execute import plain_metrics
from solvable.study.grid import Study, axis_values
from solvable.study.labelled import LabelledPoint, dataset
from solvable.study.parameters import validate_parameters
from solvable.study.tables import LONGEST_LIST, format_value


class Predicted(NamedTuple):
    """The prediction at one setting of all parameters."""

    parameters: Mapping[str, Any]
    prediction: Metrics


@dataclass(frozen=True, repr=False)
class Predictions(Shown, view=__name__):
    """Predictions of a system over a grid, without a measurement.

    Parameters
    ----------
    system : str
        Name of the system.
    points : tuple of Predicted
        In the canonical order of a study: by field of the parameters, then by value.
    varied : tuple of str
        Parameters with more than one value in the grid.
    """

    system: str
    points: tuple[Predicted, ...]
    varied: tuple[str, ...] = ()

    @property
    def raised(self) -> tuple[Predicted, ...]:
        """Points whose prediction raised; the entry "no prediction" is the exception."""
        return tuple(point for point in self.points if has_raised(point.prediction))

    def to_latex(self) -> str:
        """Return the tables as LaTeX, which needs the package ``booktabs``."""
        return "\n".join(map(to_latex, tables(self)))

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return "\n".join(map(to_markdown, tables(self)))

    def values(self, name: str) -> np.ndarray:
        """Return a parameter or a predicted number at every point; lists give one row per point.

        Missing predictions are NaN.
        """
        both = [{**point.prediction, **point.parameters} for point in self.points]
        known = next((point[name] for point in both if name in point), None)
        names = list(dict.fromkeys(key for point in both for key in point if key != NO_PREDICTION))
        if name not in names:
            reasons = [str(point[NO_PREDICTION]) for point in both if NO_PREDICTION in point]
            hint = f" No prediction: {reasons[0]}" if reasons else ""
            raise InvalidParameter(unknown_choice("quantity", name, names) + hint)
        gap = np.full(np.asarray(known).shape, np.nan)
        return np.array([point.get(name, gap) for point in both])

    def to_xarray(self) -> Any:
        """Return the predictions as an ``xarray.Dataset`` with lists as dimensions.

        Dimensions are the varied parameters, and ``NAME_entry`` for the entries of the list NAME. Missing
        values and the ends of shorter lists are NaN. xarray must be installed.
        """
        points = [LabelledPoint(point.parameters, point.prediction) for point in self.points]
        return dataset(points, 0, prefix="", system=self.system)


def predict_grid(system: System, grid: Mapping[str, Any]) -> Predictions:
    """Predict every point of a grid, on one BLAS thread; omitted parameters have their defaults.

    The prediction of a point that raises is replaced by the exception in one line.
    """
    study = Study(system, grid)
    points = []
    with threadpool_limits(limits=1):
        for point in study.points:
            setting = validate_parameters(system, point)
            try:
                found = plain_metrics(predicted_or_refused(system.predict, setting))
            except Exception as error:  # a system may raise any exception; the grid goes on
                found = raised_prediction(error_line(error))
            points.append(Predicted(dict(point), found))
    refused = all(list(point.prediction) == [NO_PREDICTION] for point in points)
    if refused and not any(has_raised(point.prediction) for point in points):
        raise InvalidParameter(f"no prediction: {points[0].prediction[NO_PREDICTION]}")
    # by the number of requested values, even if these are equal
    varied = tuple(name for name, values in grid.items() if len(axis_values(name, values)) > 1)
    return Predictions(system.name, tuple(points), varied)


def line(found: Predictions) -> str:
    """Return the name of the system, and the varied parameters."""
    raised = f"; {len(found.raised)} raised an error" if found.raised else ""
    if not found.varied:
        return f"{found.system}: predicted{raised}"
    grid = f"{len(found.points)} points of {', '.join(found.varied)}"
    return f"{found.system}: predicted at {grid}{raised}"


def tables(found: Predictions, width: int | None = None) -> list[Table]:
    """Format the predictions as tables that fit a terminal: numbers first, then lists."""
    if found.varied:
        return grid_tables(found.varied, found.points, width)
    return point_tables(found.points[0].prediction)


def rows(found: Predictions) -> list[dict[str, Any]]:
    """Return one row per point: parameters, then predictions."""
    table = []
    for point in found.points:
        row: dict[str, Any] = dict(point.parameters)
        for name, value in point.prediction.items():
            row[f"predicted.{name}" if name in point.parameters else name] = value
        table.append(row)
    return table


def figures(found: Predictions) -> list[Any]:
    """Return no figures: a system draws theory together with measurements."""
    return []


def point_tables(prediction: Mapping[str, Any]) -> list[Table]:
    """Return tables of one point: numbers, then lists of equal length in columns."""
    found = []
    prediction = dict(prediction)
    reason = prediction.pop(NO_PREDICTION, None)
    numbers = {name: value for name, value in prediction.items() if not isinstance(value, list)}
    if numbers:
        found.append(
            Table.of(
                "quantity",
                Column("prediction", right=True, wrap=True),
                rows=[(name, format_number(value)) for name, value in numbers.items()],
            )
        )
    by_length: dict[int, dict[str, list[Any]]] = {}
    for name, value in prediction.items():
        if isinstance(value, list) and value:
            by_length.setdefault(len(value), {})[name] = value
    for length, lists in by_length.items():
        table = Table(*(Column(name, right=True, wrap=True) for name in ("rank", *lists)))
        for index in range(min(length, LONGEST_LIST)):
            table.add(str(index + 1), *(format_number(values[index]) for values in lists.values()))
        if length > LONGEST_LIST:
            table.add("...", *[f"{length - LONGEST_LIST} more" for _ in lists])
        found.append(table)
    if reason:
        found.append(Table.of(Column(NO_PREDICTION, wrap=True), rows=[(str(reason),)]))
    return found


def grid_tables(
    varied: Sequence[str],
    points: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    width: int | None,
) -> list[Table]:
    """Return tables of a grid: numbers and words, then each list.

    A table has one row per point if that fits the window (None always fits), otherwise one column per
    point, split into as many tables as needed.
    """
    settings = [[format_value(parameters[name]) for name in varied] for parameters, _ in points]
    names = list(dict.fromkeys(name for _, prediction in points for name in prediction))
    names = [name for name in names if name != NO_PREDICTION]
    lists = [
        name
        for name in names
        if any(isinstance(prediction.get(name), list) for _, prediction in points)
    ]
    found = []
    numbers = [name for name in names if name not in lists]
    if numbers:
        cells = [[format_number(metrics.get(name)) for name in numbers] for _, metrics in points]
        found += _fitting(_Grid("", varied, settings, numbers, cells), width)
    for name in lists:
        entries = [prediction.get(name) or [] for _, prediction in points]
        longest = max(map(len, entries))
        shown = min(longest, 8)  # lists shown side by side; --json has all
        title = name if shown == longest else f"{name} (first {shown} of {longest})"
        ranks = [str(index + 1) for index in range(shown)]
        cells = [
            [format_number(value, 3) for value in entry[:shown]] + [""] * (shown - len(entry))
            for entry in entries
        ]
        found += _fitting(_Grid(title, varied, settings, ranks, cells), width)
    refused = [
        (*setting, str(prediction[NO_PREDICTION]))
        for setting, (_, prediction) in zip(settings, points, strict=True)
        if NO_PREDICTION in prediction
    ]
    return [*found, Table.of(*varied, NO_PREDICTION, rows=refused)] if refused else found


class _Grid(NamedTuple):
    """Text of a table: settings of each point, and one cell per quantity."""

    title: str
    varied: Sequence[str]
    settings: list[list[str]]
    quantities: list[str]
    cells: list[list[str]]


def _fitting(grid: _Grid, width: int | None) -> list[Table]:
    """Return one row per point if the window is wide enough, else one column per point."""
    heads: list[str | Column] = list(grid.varied)
    heads += [Column(name, right=True, wrap=True) for name in grid.quantities]
    points = [[*setting, *row] for setting, row in zip(grid.settings, grid.cells, strict=True)]
    upright = Table.of(*heads, rows=points, title=grid.title)
    if width is None or upright.width <= width:
        return [upright]
    blocks: list[list[int]] = [[]]
    for index in range(len(points)):
        if blocks[-1] and _turned(grid, [*blocks[-1], index]).width > width:
            blocks.append([])
        blocks[-1].append(index)
    return [_turned(grid, block) for block in blocks]


def _turned(grid: _Grid, block: Sequence[int]) -> Table:
    """Return one row per quantity and one column per point of a block."""
    heads = [Column("\n".join(grid.settings[index]), right=True, wrap=True) for index in block]
    rows = [
        [quantity, *(grid.cells[index][place] for index in block)]
        for place, quantity in enumerate(grid.quantities)
    ]
    return Table.of("\n".join(grid.varied), *heads, rows=rows, title=grid.title)
