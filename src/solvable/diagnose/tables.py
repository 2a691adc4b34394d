"""Diagnoses of weights as tables in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from solvable.diagnose import cells

if TYPE_CHECKING:
    from solvable.diagnose.diagnosis import MatrixDiagnosis
    from solvable.diagnose.result import Diagnosed

GAP = 2
"""Blanks between columns."""

SHORTEST_NAME = 12
"""Letters of a name at least, however narrow the window."""

LONG_NAME = 28
"""Length of names from which rows stand under a heading with what their names share."""


WIDEST = 1_000
"""Columns of a table in a pipe at most."""


ROOM = 32
"""Letters of a name for which columns are left out."""


class Column(NamedTuple):
    """A column of the table.

    Parameters
    ----------
    head : str
        Its name.
    cell : callable
        Text of a row.
    rank : int
        The highest goes first where the window is too narrow; 0 always stays.
    """

    head: str
    cell: Callable[[MatrixDiagnosis], str]
    rank: int = 0


COLUMNS = (
    Column("size", cells.size_text, 4),
    Column("phase", lambda row: row.phase),
    Column("lead", cells.lead_text, 5),
    Column("noise", lambda row: cells.estimate_text(row.noise, interval=False), 2),
    Column("shrinkage", lambda row: cells.estimate_text(row.shrinkage, interval=False), 6),
    Column("features", cells.features_text),
    Column("strongest", cells.strongest_text),
    Column("tail exponent", cells.tail_text),
    Column("p", cells.tail_p_text, 1),
    Column("kept", cells.kept_text, 3),
)

SHORT = {
    "strongest": lambda row: cells.strongest_text(row, interval=False),
    "tail exponent": lambda row: cells.tail_text(row, interval=False),
}
"""Cells without intervals, for narrow windows."""


def window() -> int | None:
    """Columns of the window that the table goes to; None into a pipe, which nobody's window limits."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    from solvable.plots.tables import console_for

    return console_for(sys.stdout).width


def matrix_table(found: Diagnosed, width: int | None = None) -> tuple[Table, list[str]]:
    """Draw a row per weight matrix.

    Parameters
    ----------
    found : Diagnosed
        With one matrix at least.
    width : int, optional
        Of the window; columns are left out until the table fits.

    Returns
    -------
    rich.table.Table
        In the order of the file; long names that share their beginning stand under it.
    list of str
        What was left out for want of room.
    """
    names, headings = grouped([one.name for one in found.matrices])
    columns, dropped = _chosen(found, max(map(len, names)), width)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    table.add_column("matrix", no_wrap=True)
    for column in columns:
        left = column.head in ("size", "phase")
        table.add_column(column.head, justify="left" if left else "right", no_wrap=True)
    room = None if width is None else width - _width(found, columns)
    for one, name, heading in zip(found.matrices, names, headings, strict=True):
        if heading:
            table.add_row(_elided(heading, room), style="dim")
        texts = [column.cell(one) for column in columns]
        table.add_row(_elided(name, room), *texts, style=None if one.fitted else "dim")
    return table, dropped


def plain(table: Table) -> str:
    """Draw a table as wide as it is, for a pipe.

    Parameters
    ----------
    table : rich.table.Table
        Any.

    Returns
    -------
    str
        Lines without colours.
    """
    from rich.console import Console

    console = Console(width=WIDEST, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def grouped(names: list[str]) -> tuple[list[str], list[str]]:
    """Shorten names that share the beginning up to their last number, as those of a block do.

    Parameters
    ----------
    names : list of str
        In the order of the file.

    Returns
    -------
    names : list of str
        What is left, indented below a heading.
    headings : list of str
        What stands above each row; empty where the heading goes on or there is none.

    Examples
    --------
    >>> grouped(["encoder.layer.0.attention.key.weight", "encoder.layer.0.output.dense.weight"])
    (['  attention.key.weight', '  output.dense.weight'], ['encoder.layer.0', ''])
    """
    import re

    if max(map(len, names), default=0) < LONG_NAME:
        return names, [""] * len(names)
    heads = []
    for name in names:
        numbered = re.match(r"(.*?[./]\d+)[./](?=\D)", name)
        heads.append(numbered.group(1) if numbered else "")
    rest = [
        f"  {name[len(head) + 1 :]}" if head else name
        for name, head in zip(names, heads, strict=True)
    ]
    before = ["", *heads]
    return rest, [head if head != last else "" for head, last in zip(heads, before, strict=False)]


def _chosen(
    found: Diagnosed, longest: int, width: int | None
) -> tuple[tuple[Column, ...], list[str]]:
    """Columns that fit: intervals go first, then columns by their rank, then parts of names."""
    columns: tuple[Column, ...] = COLUMNS
    if width is None or longest + _width(found, columns) <= width:
        return columns, []
    columns = tuple(Column(c.head, SHORT.get(c.head, c.cell), c.rank) for c in columns)
    dropped = ["intervals"]
    name = min(longest, ROOM)
    while name + _width(found, columns) > width and max(c.rank for c in columns):
        last = max(columns, key=lambda column: column.rank)
        columns = tuple(column for column in columns if column is not last)
        dropped.append(last.head)
    return columns, dropped


def _width(found: Diagnosed, columns: tuple[Column, ...]) -> int:
    """Of all columns but the first, with the blanks between them."""
    widths = (
        max(len(column.head), *(len(column.cell(one)) for one in found.matrices))
        for column in columns
    )
    return sum(GAP + one for one in widths)


def _elided(name: str, room: int | None) -> str:
    """Leave out the middle of a name, as its ends tell more."""
    most = len(name) if room is None else max(room, SHORTEST_NAME)
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
