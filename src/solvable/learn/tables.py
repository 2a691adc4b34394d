"""Results of learning as tables in the terminal, and predictions as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from solvable.learn import words
from solvable.learn.results import ColumnShare, Direction, LayerFound, Learned
from solvable.plots.csv_text import csv_text
from solvable.plots.tables import Column, Table
from solvable.plots.words import percent, percents


def signal_table(layer: LayerFound) -> Table:
    """The strongest directions, or the classes where there are many, with the rows they emerge at."""
    if len(layer.signals) > 1:
        numbers = _numbers("strongest direction", "emerges at rows", "directions")
        table = Table("class", *numbers)
        for label, ratio, rows, count in words.class_rows(layer):
            table.add(label, f"{ratio} its null", rows, count)
        return table
    table = Table(*_numbers("direction", "strength", "emerges at rows"))
    for direction in layer.strongest:
        strength = f"{words.ratio_text(direction.ratio)} its null"
        rows = words.emergence_text(direction.emergence_rows)
        table.add(str(direction.number), strength, rows)
    return table


def rests_table(layer: LayerFound) -> Table:
    """Whether the strongest directions hold on unseen rows, and which columns they rest on there."""
    number, unseen, straight, again = _numbers(
        "direction", "on unseen rows", "straight", "found again"
    )
    return Table.of(
        number, unseen, Column("rests on"), straight, again, rows=words.rest_rows(layer)
    )


def shares_as_csv(found: Learned) -> str:
    """Shares of all columns in each of the strongest directions of the first filter, and in all."""
    layer = found.found[0]
    lists: dict[str, list[Any]] = {
        name: []
        for name in (
            "direction", "column", "share", "lost", "lost_error",
            "unseen", "unseen_error", "straight", "again",
        )
    }  # fmt: skip
    told = [one for one in layer.strongest if one.number <= layer.directions]
    parts: list[tuple[Direction | None, ColumnShare]] = [(None, part) for part in layer.columns]
    parts += [(one, part) for one in told for part in one.columns]
    for one, part in parts:
        row: list[Any] = [
            one.number if one else "all",
            part.column,
            part.share,
            part.lost,
            part.lost_error,
        ]
        row += [one and getattr(one, name) for name in list(lists)[5:]]
        for values, value in zip(lists.values(), row, strict=True):
            values.append(value)
    return columns_as_csv({name: np.array(values, object) for name, values in lists.items()})


def method_table(found: Learned) -> Table:
    """The errors of all methods, learned features first."""
    numbers = _numbers("error", "95 % interval", "difference, points")
    unequal = any(score.balanced_error is not None for score in found.methods)
    numbers += _numbers("balanced", "AUC") if unequal else []
    table = Table("method", *numbers, Column("", wrap=False))
    for score in found.methods:
        value, interval = percents(score.error, score.lower, score.upper)
        verdict = (
            words.VERDICTS[score.verdict]
            if score.verdict
            else "not measured" * (score.error is None)
        )
        style = "bold" if score is found.methods[0] else ""
        cells = [value, interval, words.difference_text(score)]
        if unequal:
            cells += [percent(score.balanced_error), words.area_text(score)]
        table.add(score.title, *cells, verdict, style=style)
    return table


def outlook_table(found: Learned) -> Table:
    """The error expected with more rows."""
    level = f"{100 * found.outlook.confidence:g} % interval"
    numbers = _numbers("rows", f"{words.error_name(found)}, expected", level)
    return Table.of("data", *numbers, rows=words.expected_rows(found))


def _numbers(*names: str) -> list[Column]:
    return [Column(name, right=True) for name in names]


def columns_as_csv(columns: Mapping[str, np.ndarray]) -> str:
    """Columns of equal length as CSV; missing numbers are empty."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return csv_text(columns, ([_cell(value) for value in row] for row in rows))


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}"
    return "" if value is None else value
