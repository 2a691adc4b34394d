"""Verdicts and predictions as tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from solvable.frame.claims import Verdict
from solvable.plots.numbers import format_number
from solvable.study.tables import format_value, verdict_rows, verdict_summary

LONGEST_LIST = 24
"""Entries of a list that are shown; ``--json`` has all."""

WIDEST_LIST = 8
"""Entries of a list that are shown side by side for each point of a grid."""

GAP = 2
"""Spaces between columns."""

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
        Numbers, lists of numbers, words and None by name.

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
    varied: Sequence[str],
    points: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    width: int,
) -> list[Table]:
    """Draw predictions along a grid: the numbers and words first, then each list.

    Parameters
    ----------
    varied : sequence of str
        Parameters that differ between points.
    points : sequence of (parameters, prediction)
        In the order of the grid.
    width : int
        Columns of the window.

    Returns
    -------
    list of rich.table.Table
        One row per point where that fits the window; otherwise one column per point, in as many
        tables as the window needs.
    """
    settings = [[format_value(parameters[name]) for name in varied] for parameters, _ in points]
    names = list(dict.fromkeys(name for _, prediction in points for name in prediction))
    lists = [
        name
        for name in names
        if any(isinstance(prediction.get(name), list) for _, prediction in points)
    ]
    tables = []
    numbers = [name for name in names if name not in lists]
    if numbers:
        cells = [[format_number(found.get(name)) for name in numbers] for _, found in points]
        tables += _fitting(_Grid("", varied, settings, numbers, cells), width)
    for name in lists:
        rows = [prediction.get(name) or [] for _, prediction in points]
        longest = max(map(len, rows))
        shown = min(longest, WIDEST_LIST)
        title = name if shown == longest else f"{name} (first {shown} of {longest})"
        ranks = [str(index + 1) for index in range(shown)]
        cells = [
            [format_number(value, 3) for value in row[:shown]] + [""] * (shown - len(row))
            for row in rows
        ]
        tables += _fitting(_Grid(title, varied, settings, ranks, cells), width)
    return tables


class _Grid(NamedTuple):
    """Text of a table along a grid: per point, its settings and one cell per quantity."""

    title: str
    varied: Sequence[str]
    settings: list[list[str]]
    quantities: list[str]
    cells: list[list[str]]


def _fitting(grid: _Grid, width: int) -> list[Table]:
    """One row per point if the window has room, or one column per point, broken into tables."""
    upright = [
        [*grid.varied, *grid.quantities],
        *([*one, *cells] for one, cells in zip(grid.settings, grid.cells, strict=True)),
    ]
    if _width(zip(*upright, strict=True)) <= width:
        table = _titled(grid.title, *grid.varied)
        for quantity in grid.quantities:
            table.add_column(quantity, justify="right", overflow="fold")
        for row in upright[1:]:
            table.add_row(*row)
        return [table]
    names = [*grid.varied, *grid.quantities]
    columns = [[*one, *cells] for one, cells in zip(grid.settings, grid.cells, strict=True)]
    blocks: list[list[int]] = [[]]
    for index, column in enumerate(columns):
        chosen = [names, *(columns[one] for one in blocks[-1]), column]
        if blocks[-1] and _width(chosen) > width:
            blocks.append([])
        blocks[-1].append(index)
    return [_upturned(grid, block) for block in blocks]


def _upturned(grid: _Grid, block: Sequence[int]) -> Table:
    """One row per quantity, one column per point of a block under the values that it has."""
    table = _titled(grid.title, "\n".join(grid.varied))
    for index in block:
        table.add_column("\n".join(grid.settings[index]), justify="right", overflow="fold")
    for row, quantity in enumerate(grid.quantities):
        table.add_row(quantity, *(grid.cells[index][row] for index in block))
    return table


def _width(columns: Iterable[Sequence[str]]) -> int:
    """Width of a table that folds nothing."""
    widths = [max(map(cell_len, column)) for column in columns]
    return sum(widths) + GAP * (len(widths) - 1)


def _titled(title: str, *columns: str) -> Table:
    table = _table(*columns)
    if title:
        table.title, table.title_justify, table.title_style = title, "left", "bold"
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
