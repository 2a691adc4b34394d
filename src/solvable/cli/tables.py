"""Verdicts and predictions as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from solvable.report import format_number, verdict_rows, verdict_summary
from solvable.report.tables import format_value
from solvable.systems.base import Verdict

LONGEST_LIST = 24
"""Entries of a list that are shown; ``--json`` has all."""

WIDEST_LIST = 8
"""Entries of a list that are shown side by side for each point of a grid."""

_STYLES = {"holds": "green", "fails": "bold red", "not testable": "yellow"}
_COUNTED = {"fails": "failed", "not testable": "not testable on these records"}


def verdict_table(verdicts: Sequence[Verdict], *, with_replicates: bool = True) -> Table:
    """Draw the outcome of each claim with its numbers.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Outcomes of the claims.
    with_replicates : bool
        Whether to say how many replicates are behind each measured value.

    Returns
    -------
    rich.table.Table
        One row per claim.
    """
    table = _table("verdict", "claim")
    names = ("measured", "predicted", "tolerance", "replicates")
    for name in names if with_replicates else names[:-1]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in verdict_rows(verdicts):
        numbers = [row.measured, row.expected, row.tolerance]
        numbers += [row.replicates] if with_replicates else []
        status = Text(row.status, style=_STYLES[row.status], no_wrap=True)
        table.add_row(status, row.claim, *numbers)
    return table


def verdict_lines(verdicts: Sequence[Verdict]) -> list[Text]:
    """Explain what does not hold, and count.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Outcomes of the claims.

    Returns
    -------
    list of rich.text.Text
        A line per claim that fails or cannot be tested, then the counts.
    """
    lines = []
    for one in verdicts:
        if one.status == "holds":
            continue
        said = f"{one.statement} {one.reason}" if one.status == "fails" else one.reason
        lines.append(
            Text.assemble(
                (f"{one.status}: ", _STYLES[one.status]), f"{one.claim}: {' '.join(said.split())}"
            )
        )
    if lines:
        lines.append(Text(""))
    counts = verdict_summary(verdicts)
    parts = [f"{counts['holds']} of {len(verdicts)} claims hold"]
    parts += [f"{counts[one]} {word}" for one, word in _COUNTED.items() if counts[one]]
    lines.append(Text(f"{', '.join(parts)}.", style="bold"))
    return lines


def prediction_tables(prediction: Mapping[str, Any]) -> list[Table]:
    """Draw the prediction at one point: numbers first, then lists of equal length side by side.

    Parameters
    ----------
    prediction : mapping
        Numbers, lists of numbers and None by name.

    Returns
    -------
    list of rich.table.Table
        One for the numbers and one per length of list.
    """
    tables = []
    numbers = {name: value for name, value in prediction.items() if not isinstance(value, list)}
    if numbers:
        table = _table("quantity")
        table.add_column("prediction", justify="right")
        for name, value in numbers.items():
            table.add_row(name, format_number(value))
        tables.append(table)
    by_length: dict[int, dict[str, list[Any]]] = {}
    for name, value in prediction.items():
        if isinstance(value, list):
            by_length.setdefault(len(value), {})[name] = value
    for length, lists in by_length.items():
        table = _table()
        for column in ("rank", *lists):
            table.add_column(column, justify="right", overflow="fold")
        for index in range(min(length, LONGEST_LIST)):
            row = (format_number(values[index]) for values in lists.values())
            table.add_row(str(index + 1), *row)
        if length > LONGEST_LIST:
            table.add_row("...", *[f"{length - LONGEST_LIST} more" for _ in lists])
        tables.append(table)
    return tables


def grid_tables(
    varied: Sequence[str], points: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> list[Table]:
    """Draw predictions along a grid: a table of the numbers, and one table per list.

    Parameters
    ----------
    varied : sequence of str
        Parameters that differ between points.
    points : sequence of (parameters, prediction)
        In the order of the rows.

    Returns
    -------
    list of rich.table.Table
        With the varied parameters as first columns.
    """
    names = list(dict.fromkeys(name for _, prediction in points for name in prediction))
    lists = [
        name
        for name in names
        if any(isinstance(prediction.get(name), list) for _, prediction in points)
    ]
    tables = []
    numbers = [name for name in names if name not in lists]
    if numbers:
        table = _grid_table("", varied, numbers)
        for parameters, prediction in points:
            cells = [format_number(prediction.get(name)) for name in numbers]
            table.add_row(*(format_value(parameters[name]) for name in varied), *cells)
        tables.append(table)
    for name in lists:
        rows = [prediction.get(name) or [] for _, prediction in points]
        longest = max(map(len, rows))
        shown = min(longest, WIDEST_LIST)
        title = name if shown == longest else f"{name} (first {shown} of {longest})"
        table = _grid_table(title, varied, [str(index + 1) for index in range(shown)])
        for (parameters, _), row in zip(points, rows, strict=True):
            cells = [format_number(value, 3) for value in row[:shown]]
            table.add_row(*(format_value(parameters[name]) for name in varied), *cells)
        tables.append(table)
    return tables


def _grid_table(title: str, varied: Sequence[str], columns: Sequence[str]) -> Table:
    table = _table(*varied)
    if title:
        table.title, table.title_justify, table.title_style = title, "left", "bold"
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
