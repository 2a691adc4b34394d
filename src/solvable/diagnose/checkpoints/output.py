"""Terminal table of a series of checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from solvable.diagnose.checkpoints import words
from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History
from solvable.plots import tables
from solvable.plots.prose import Part, section
from solvable.plots.tables import GAP, Cell, Table, window


class Column(NamedTuple):
    """Column of the table."""

    head: str
    cell: Callable[[DiagnosedCheckpoints, History], str]
    rank: int = 0  # in a narrow window the column with the highest rank is dropped first


def _range(quantity: str) -> Callable[[DiagnosedCheckpoints, History], str]:
    return lambda found, row: words.range_text(row, quantity)


COLUMNS = (
    Column("at least", _range("directions")),
    Column("norm", _range("norm"), 2),
    Column("stable rank", _range("stable_rank"), 5),
    Column("settled", words.settled_text, 1),
    Column("stopped", words.stopped_text),
)


def matrix_table(found: DiagnosedCheckpoints, width: int | None) -> tuple[Table, list[str]]:
    """Return the table, and the columns that do not fit into the window."""
    cells = {
        column.head: [column.cell(found, row) for row in found.histories] for column in COLUMNS
    }
    sizes = {head: max(len(head), *map(len, texts)) + GAP for head, texts in cells.items()}
    longest = max(len(row.name) for row in found.histories)
    columns, dropped = list(COLUMNS), []
    while width is not None and min(longest, 32) + sum(sizes[c.head] for c in columns) > width:
        last = max(columns, key=lambda column: column.rank)
        if last.rank == 0:
            break
        columns.remove(last)
        dropped.append(last.head)
    table = Table(
        tables.Column("matrix", wrap=False),
        *(tables.Column(c.head, right=True, wrap=False) for c in columns),
    )
    for place, row in enumerate(found.histories):
        table.add(row.name, *(cells[c.head][place] for c in columns))
    return table, dropped


def checkpoints_text(found: DiagnosedCheckpoints, files: dict[str, str], stream: Any) -> list[Part]:
    """Print the answer, the order and a table, fitted to the terminal's width."""
    width = window(stream)
    table, dropped = matrix_table(found, width)
    parts: list[Part] = [
        Cell(f"{found.name}: {words.answer(found)}", "bold"),
        Cell(f"Read: {words.span(found)}. {found.order}", "dim"),
        "",
        table if width else table.to_text(),
        "",
    ]
    parts += [Cell(text, "dim") for text in words.meanings()]
    if dropped:
        out = f"Not shown in a terminal of this width: {', '.join(dropped)}."
        parts.append(Cell(out, "dim"))
    if found.notes:
        parts += section("How were the files read?", found.notes, single=True)
    return [*parts, "", *(f"{name:<8} {path}" for name, path in files.items())]
