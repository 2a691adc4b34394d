"""Tables of matrices: columns as text, and the choice of columns that fit into a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import Estimate, MatrixDiagnosis
from solvable.diagnose.outliers import outlier_text
from solvable.plots import tables
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.tables import GAP, Table


def size_text(row: MatrixDiagnosis) -> str:
    """Shape of the matrix, such as "384 x 1536"."""
    return " x ".join(str(side) for side in row.shape) or "scalar"


def estimate_text(value: Estimate | None, *, interval: bool = True) -> str:
    """Write an estimate, with or without its interval."""
    if value is None:
        return MISSING
    text = interval_text(value.value, value.low, value.high)
    return text if interval else parts(text)[0]


def features_text(row: MatrixDiagnosis) -> str:
    """Number of learned features; a dash if no fitted law separates them from noise."""
    if row.features:
        return str(len(row.features))
    noise = row.noise is not None or (row.control is not None and not row.control.confirmed)
    return "0" if noise else MISSING


def probability_text(value: float | None) -> str:
    """Write a p-value."""
    if value is None:
        return MISSING
    return f"{value:.2f}" if value >= 0.0095 else f"{value:.3f}"


def interval_text(value: float, low: float, high: float) -> str:
    """Write a value and its interval with as many digits as the interval supports."""
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return format_number(value, 3)
    digits = max(0, -math.floor(math.log10(width / 4)))
    if digits > 5 or abs(value) >= 1e5:
        return f"{value:.3g} ({low:.3g} to {high:.3g})"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def parts(text: str) -> tuple[str, str]:
    """Split a cell into value and interval."""
    value, _, interval = text.partition(" (")
    return value, interval.removesuffix(")")


def count_text(value: int | None) -> str:
    """Write a whole number that may be missing."""
    return MISSING if value is None else str(value)


class Column(NamedTuple):
    """Column of a table."""

    head: str
    cell: Callable[[Any], str]  # function that gives the text of a row's cell
    # In a narrow window the column with the highest rank is dropped first; rank 0 stays.
    rank: int = 0
    left: bool = False  # True for columns of words, which are not set flush right
    of: str = ""  # "change": needs initial weights; "law": needs a fit
    details: bool = False  # True if the terminal shows it only with --details


def _law(head: str, cell: Callable[[MatrixDiagnosis], str], rank: int, **more: bool) -> Column:
    return Column(head, cell, rank, of="law", **more)


def _change(head: str, cell: Callable[[Any], str]) -> Column:
    """Column of the comparison with the initial weights; a dash without them."""
    return Column(
        head, lambda row: MISSING if row.initial is None else cell(row.initial), of="change"
    )


COLUMNS = (
    Column("size", size_text, 5, left=True, details=True),
    _change("change", lambda found: format_number(found.relative_change, 2)),
    _change("95 % in", lambda found: count_text(found.rank)),
    _change("new", lambda found: count_text(found.difference.directions if found.difference else None)),
    Column("at least", lambda row: count_text(row.directions)),
    Column("stable rank", lambda row: format_number(row.stable_rank, 3), 4),
    Column(
        "outliers",
        lambda row: ", ".join(outlier_text(part, short=True) for part in row.outliers) or MISSING,
        3,
        left=True,
    ),
    _law("phase", lambda row: row.phase, 0, left=True),
    _law("noise", lambda row: estimate_text(row.noise, interval=False), 2, details=True),
    _law("shrinkage", lambda row: estimate_text(row.shrinkage, interval=False), 7, details=True),
    _law("features", features_text, 0),
    _law(
        "strongest",
        lambda row: estimate_text(row.features[0].strength if row.features else None), 0,
    ),
    _law(
        "tail exponent",
        lambda row: estimate_text(row.exponent.spectrum if row.exponent else None), 1, details=True,
    ),
    _law(
        "p",
        lambda row: probability_text(row.exponent.spectrum_p_value if row.exponent else None),
        2, details=True,
    ),
)  # fmt: skip


def columns_of(found: Diagnosed, *, details: bool = True) -> tuple[Column, ...]:
    """Columns with a meaning for this diagnosis."""
    absent = ["change"] * (not found.initial) + ["law"] * found.quick
    return tuple(
        column for column in COLUMNS if (details or not column.details) and column.of not in absent
    )


def matrix_table(
    found: Diagnosed, width: int | None = None, *, details: bool = True
) -> tuple[Table, list[str]]:
    """Table with one row per weight matrix, and the columns that do not fit into the window."""
    dim = {row.name for row in found.matrices if not (row.fitted or found.quick)}
    return fitted_table(found.matrices, columns_of(found, details=details), width, dim)


def fitted_table(
    rows: Sequence[Any],
    columns: Sequence[Column],
    width: int | None,
    dim: set[str] | None = None,
    first: str = "matrix",
) -> tuple[Table, list[str]]:
    """Table of rows with a name; intervals are dropped first, then columns, then parts of names."""
    names, headings = grouped([row.name for row in rows])
    texts = {column.head: [column.cell(row) for row in rows] for column in columns}
    shown, dropped = list(columns), []

    def total() -> int:
        return sum(GAP + max(len(c.head), *map(len, texts[c.head])) for c in shown)

    longest = max(map(len, names))
    if width is not None and longest + total() > width:
        if any(" (" in text for column in texts.values() for text in column):
            dropped.append("intervals")
        texts = {head: [parts(text)[0] for text in column] for head, column in texts.items()}
        # Names longer than this are shortened before columns are dropped.
        while min(longest, 32) + total() > width and max(column.rank for column in shown):
            last = max(shown, key=lambda column: column.rank)
            shown.remove(last)
            dropped.append(last.head)
    room = None if width is None else width - total()
    heads = (tables.Column(c.head, right=not c.left, wrap=False) for c in shown)
    table = Table(tables.Column(first, wrap=False), *heads)
    for place, (row, name, heading) in enumerate(zip(rows, names, headings, strict=True)):
        if heading:
            table.add(_elided(heading, room), style="dim")
        cells = [texts[column.head][place] for column in shown]
        table.add(_elided(name, room), *cells, style="dim" if row.name in (dim or ()) else "")
    return table, dropped


def grouped(names: list[str]) -> tuple[list[str], list[str]]:
    """Shorten names that share their beginning up to the last number, such as the names of a block."""
    # Rows with long names get a heading with the common beginning.
    if max(map(len, names), default=0) < 28:
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


def _elided(name: str, room: int | None) -> str:
    """Leave out the middle of a name, because names differ most at the beginning and the end."""
    most = len(name) if room is None else max(room, 12)
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
