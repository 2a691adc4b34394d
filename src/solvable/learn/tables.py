"""Tables of learning results for the terminal and as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from solvable.learn import feature_words, words
from solvable.learn.results import ColumnShare, Direction, LayerFound, Learned
from solvable.plots.csv_text import csv_text
from solvable.plots.tables import Cell, Column, Table
from solvable.plots.words import percent, percents


def signal_table(layer: LayerFound) -> Table:
    """Tabulate the strongest directions, or the classes if there are several, with rows to emerge."""
    if len(layer.signals) > 1:
        numbers = _numbers("strongest direction", "rows to emerge", "directions")
        table = Table("class", *numbers)
        for label, ratio, rows, count in feature_words.class_rows(layer):
            table.add(label, f"{ratio} its null", rows, count)
        return table
    table = Table(*_numbers("direction", "strength", "rows to emerge"))
    for direction in layer.strongest:
        strength = f"{feature_words.ratio_text(direction.ratio)} its null"
        rows = feature_words.emergence_text(direction.emergence_rows)
        table.add(str(direction.number), strength, rows)
    return table


def rests_table(layer: LayerFound) -> Table:
    """Tabulate the strongest directions' signal on unseen rows, and the columns this signal needs."""
    number, unseen = _numbers("direction", "signal on unseen rows")
    straight, again = _numbers("linear", "found again", shown="details")
    columns = [number, unseen, Column("rests on"), straight, again]
    return Table.of(*columns, rows=feature_words.rest_rows(layer))


def confusion_table(found: Learned) -> Table:
    """Count the unseen rows of each class (line) by predicted class (column); empty for many classes."""
    rows = words.confusion_rows(found)
    return Table.of("class", *_numbers(*found.class_labels[: len(rows)]), rows=rows)


def shares_as_csv(found: Learned) -> str:
    """Write each column's share in the first filter's strongest directions as CSV."""
    layer = found.found[0]
    lists: dict[str, list[Any]] = {
        name: []
        for name in (
            "direction", "column", "share", "lost", "lost_error",
            "unseen", "unseen_error", "straight", "again",
        )
    }  # fmt: skip
    with_signal = [one for one in layer.strongest if one.number <= layer.directions]
    parts: list[tuple[Direction | None, ColumnShare]] = [(None, part) for part in layer.columns]
    parts += [(one, part) for one in with_signal for part in one.columns]
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
    """Tabulate the errors of all methods; ranges, meanings and differences are shown on request."""
    unequal = any(score.balanced_error is not None for score in found.methods)
    columns = [*_numbers(words.error_name(found), "95 % interval"), Column("", shown="page")]
    columns += _numbers("difference, points", shown="details")
    columns += _numbers("balanced", "AUC") if unequal else []
    columns += _numbers(words.metric_title(found), "95 % interval") if found.metric else []
    table = Table("method", *columns, Column("against learned features", wrap=False))
    for score, place in zip(found.methods, interval_places(found), strict=True):
        value, interval = percents(score.error, *words.ends_of(score, found))
        verdict = (
            words.VERDICTS[score.verdict]
            if score.verdict
            else "not measured" * (score.error is None)
        )
        picture = Cell("off the scale →", "dim") if place is None else Cell("", range=place)
        cells: list[str | Cell] = [value, interval, picture, words.difference_text(score)]
        if unequal:
            cells += [percent(score.balanced_error), words.area_text(score)]
        cells += words.metric_text(score) if found.metric else ()
        name = Cell(score.title, more=score.meaning)
        table.add(name, *cells, verdict, style="bold" if score.recommended else "")
    return table


def interval_places(found: Learned) -> list[tuple[float, float, float] | None]:
    """Return each method's interval ends and error in percent of the bar; None if outside the bar."""
    # The scale ends at the largest upper end of a method other than the constant.
    ends = [
        score.upper
        for score in found.methods
        if score.key != "constant" and score.upper is not None
    ]
    top = 1.04 * max(ends, default=1.0) or 1.0
    places: list[tuple[float, float, float] | None] = []
    for score in found.methods:
        if score.error is None or score.error > top:
            places.append(None)
            continue
        left, right, dot = (
            100 * min(max(part or 0.0, 0.0), top) / top
            for part in (*words.ends_of(score, found), score.error)
        )
        places.append((left, right, dot))
    return places


def outlook_table(found: Learned) -> Table:
    """Tabulate the error expected with more rows."""
    level = f"{100 * found.outlook.confidence:g} % interval"
    numbers = _numbers("rows", f"{words.error_name(found)}, expected", level)
    return Table.of("data", *numbers, rows=words.expected_rows(found))


def _numbers(*names: str, shown: Literal["always", "details"] = "always") -> list[Column]:
    return [Column(name, right=True, shown=shown) for name in names]


def columns_as_csv(columns: Mapping[str, np.ndarray]) -> str:
    """Write columns of equal length as CSV; missing numbers are empty."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return csv_text(columns, ([_cell(value) for value in row] for row in rows))


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}"
    return "" if value is None else value
