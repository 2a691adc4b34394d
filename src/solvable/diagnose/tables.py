"""Table of matrices: cells as text, and the choice of columns for the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import Estimate, MatrixDiagnosis
from solvable.diagnose.outliers import outlier_text
from solvable.plots import tables
from solvable.plots.numbers import MISSING, format_number
from solvable.plots.tables import GAP, Table


def size_text(row: MatrixDiagnosis) -> str:
    """Shape of the matrix, such as "384 x 1536"."""
    return " x ".join(str(side) for side in row.shape) or "scalar"


def lead_text(row: MatrixDiagnosis) -> str:
    """Lead in log-likelihood over the runner-up in nats, such as "12"; rounded above a thousand."""
    ratio = row.log_likelihood_ratio
    if ratio is None:
        return MISSING
    return f"{ratio:.1f}" if abs(ratio) < 10 else format_number(ratio, 3 if ratio < 1000 else 2)


def estimate_text(value: Estimate | None, *, interval: bool = True) -> str:
    """Write an estimate, with or without its interval."""
    if value is None:
        return MISSING
    if interval:
        return interval_text(value.value, value.low, value.high)
    return interval_text(value.value, value.low, value.high).partition(" ")[0]


def features_text(row: MatrixDiagnosis) -> str:
    """Number of learned features; a dash if no fitted law separates them from noise."""
    if row.features:
        return str(len(row.features))
    noise = row.noise is not None or (row.control is not None and not row.control.confirmed)
    return "0" if noise else MISSING


def strongest_text(row: MatrixDiagnosis, *, interval: bool = True) -> str:
    """Strength of the strongest feature, such as "3.1 (2.8 to 3.4)"."""
    return estimate_text(row.features[0].strength if row.features else None, interval=interval)


def tail_text(row: MatrixDiagnosis, *, interval: bool = True) -> str:
    """Tail exponent of the spectrum, with its interval."""
    return estimate_text(row.exponent.spectrum if row.exponent else None, interval=interval)


def tail_p_text(row: MatrixDiagnosis) -> str:
    """p-value of the power law, such as "0.38"."""
    return probability_text(row.exponent.spectrum_p_value if row.exponent else None)


def directions_text(row: MatrixDiagnosis) -> str:
    """Lower bound on the number of directions."""
    return MISSING if row.directions is None else str(row.directions)


def stable_rank_text(row: MatrixDiagnosis) -> str:
    """Stable rank."""
    return MISSING if row.stable_rank is None else format_number(row.stable_rank, 3)


def outliers_text(row: MatrixDiagnosis) -> str:
    """Parts that were taken out, such as "1 entry, 3 rows"."""
    return ", ".join(outlier_text(part, short=True) for part in row.outliers) or MISSING


def change_text(row: MatrixDiagnosis) -> str:
    """Norm of the change since the initial weights, relative to theirs."""
    relative = None if row.initial is None else row.initial.relative_change
    return MISSING if relative is None else format_number(relative, 2)


def change_rank_text(row: MatrixDiagnosis) -> str:
    """Fewest directions that hold 95 % of the change."""
    rank = None if row.initial is None else row.initial.rank
    return MISSING if rank is None else str(rank)


def new_directions_text(row: MatrixDiagnosis) -> str:
    """Lower bound on the number of directions of the change."""
    difference = None if row.initial is None else row.initial.difference
    return MISSING if difference is None else directions_text(difference)


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


def facts(row: MatrixDiagnosis) -> list[tuple[str, str]]:
    """Names and values below the figure of a matrix; missing values are left out."""
    lead = lead_text(row)
    pairs = [
        ("lead", f"{lead} nats over {row.runner_up}" if row.runner_up else MISSING),
        ("noise", estimate_text(row.noise)),
        ("shrinkage", estimate_text(row.shrinkage) if _positive(row.shrinkage) else MISSING),
        ("directions, at least", directions_text(row)),
        ("outliers", outliers_text(row)),
        ("features", features_text(row)),
        ("strongest", strongest_text(row)),
        ("tail exponent", tail_text(row)),
        ("p of the power law", tail_p_text(row)),
        ("zeros", str(row.zeros) if row.zeros else MISSING),
        *magnitudes(row),
    ]
    return [(name, value) for name, value in pairs if value != MISSING]


def magnitudes(row: MatrixDiagnosis) -> list[tuple[str, str]]:
    """Names and values of norm, largest singular value and stable rank."""
    values = (("norm", row.norm), ("largest value", row.largest), ("stable rank", row.stable_rank))
    return [(name, MISSING if value is None else format_number(value, 3)) for name, value in values]


def _positive(value: Estimate | None) -> bool:
    return value is not None and value.value > 0


class Column(NamedTuple):
    """Column of the table."""

    head: str  # heading
    cell: Callable[[MatrixDiagnosis], str]  # function that gives the text of a cell
    rank: int = (
        0  # in a narrow window the column with the highest rank is dropped first; rank 0 stays
    )


COLUMNS = (
    Column("size", size_text, 5),
    Column("change", change_text),
    Column("95 % in", change_rank_text),
    Column("new", new_directions_text),
    Column("at least", directions_text),
    Column("stable rank", stable_rank_text, 4),
    Column("outliers", outliers_text, 3),
    Column("phase", lambda row: row.phase),
    Column("lead", lead_text, 6),
    Column("noise", lambda row: estimate_text(row.noise, interval=False), 2),
    Column("shrinkage", lambda row: estimate_text(row.shrinkage, interval=False), 7),
    Column("features", features_text),
    Column("strongest", strongest_text),
    Column("tail exponent", tail_text, 1),
    Column("p", tail_p_text, 2),
)

# Columns of words, which are not set flush right.
LEFT = ("size", "phase", "outliers")

# Columns of the change since initial weights, and those of a fitted law.
CHANGE = ("change", "95 % in", "new")
LAWS = ("phase", "lead", "noise", "shrinkage", "features", "strongest", "tail exponent", "p")

# Columns shown only with ``--details``.
DETAILS = ("size", "lead", "noise", "shrinkage", "tail exponent", "p")

# Cells of a column without intervals, for narrow windows.
SHORT = {
    "strongest": lambda row: strongest_text(row, interval=False),
    "tail exponent": lambda row: tail_text(row, interval=False),
}


def columns_of(found: Diagnosed, *, details: bool = True) -> tuple[Column, ...]:
    """Columns with a meaning for this diagnosis."""
    return tuple(
        column
        for column in COLUMNS
        if (details or column.head not in DETAILS)
        and (found.initial or column.head not in CHANGE)
        and not (found.quick and column.head in LAWS)
    )


def matrix_table(
    found: Diagnosed, width: int | None = None, *, details: bool = True
) -> tuple[Table, list[str]]:
    """Table with one row per weight matrix, and the columns that do not fit into the window."""
    names, headings = grouped([row.name for row in found.matrices])
    columns, dropped = _chosen(found, max(map(len, names)), width, details)
    table = Table(
        tables.Column("matrix", wrap=False),
        *(
            tables.Column(column.head, right=column.head not in LEFT, wrap=False)
            for column in columns
        ),
    )
    room = None if width is None else width - _width(found, columns)
    for row, name, heading in zip(found.matrices, names, headings, strict=True):
        if heading:
            table.add(_elided(heading, room), style="dim")
        texts = [column.cell(row) for column in columns]
        table.add(_elided(name, room), *texts, style="" if row.fitted or found.quick else "dim")
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


def _chosen(
    found: Diagnosed, longest: int, width: int | None, details: bool
) -> tuple[tuple[Column, ...], list[str]]:
    """Choose columns that fit: first drop intervals, then columns by rank, then parts of names."""
    columns = columns_of(found, details=details)
    if width is None or longest + _width(found, columns) <= width:
        return columns, []
    columns = tuple(Column(c.head, SHORT.get(c.head, c.cell), c.rank) for c in columns)
    dropped = ["intervals"]
    # Names longer than this are shortened before columns are dropped.
    name = min(longest, 32)
    while name + _width(found, columns) > width and max(c.rank for c in columns):
        last = max(columns, key=lambda column: column.rank)
        columns = tuple(column for column in columns if column is not last)
        dropped.append(last.head)
    return columns, dropped


def _width(found: Diagnosed, columns: tuple[Column, ...]) -> int:
    """Total width of all columns but the first, including the gaps."""
    widths = (
        max(len(column.head), *(len(column.cell(row)) for row in found.matrices))
        for column in columns
    )
    return sum(GAP + width for width in widths)


def _elided(name: str, room: int | None) -> str:
    """Leave out the middle of a name, because names differ most at the beginning and the end."""
    most = len(name) if room is None else max(room, 12)
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
