"""Table with named columns: a matrix of numbers, and columns of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

import numpy as np

from solvable.errors import InvalidData, quoted
from solvable.plots.words import quoted_names


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of data from any file, before any preparation.

    Parameters
    ----------
    numeric : ndarray of shape (n, p)
        Columns of numbers, of any real dtype, with NaN for a missing value. May be memory-mapped.
    numeric_names : tuple of str, length p
        Names of the columns of numbers.
    texts : dict from str to ndarray of object, shape (n,)
        Columns of text, with None for a missing value.
    order : tuple of str, optional
        All names in the order of the file; by default columns of numbers come first.

    Raises
    ------
    InvalidData
        If two columns have the same name or columns differ in length.

    Examples
    --------
    >>> table = Table(np.array([[1.0], [2.0]]), ("size",),
    ...               {"colour": np.array(["red", None], dtype=object)})
    >>> table.n_rows, table.order
    (2, ('size', 'colour'))
    >>> table.column("colour")
    array(['red', None], dtype=object)
    """

    numeric: np.ndarray
    numeric_names: tuple[str, ...]
    texts: dict[str, np.ndarray] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.order:
            object.__setattr__(self, "order", (*self.numeric_names, *self.texts))
        refuse_duplicates(self.order)
        lengths = {len(self.numeric), *(len(column) for column in self.texts.values())}
        if len(lengths) > 1:
            raise InvalidData(
                f"columns have {sorted(lengths)} rows; allowed: one number of rows for all."
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.numeric)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each numeric column in the matrix."""
        return {name: position for position, name in enumerate(self.numeric_names)}

    def __contains__(self, name: object) -> bool:
        return name in self.positions or name in self.texts

    def rows(self, index: slice | np.ndarray) -> Table:
        """Select rows by slice, which gives a view, or by position or mask, which gives a copy."""
        texts = {name: column[index] for name, column in self.texts.items()}
        return Table(self.numeric[index], self.numeric_names, texts, self.order)

    def column(self, name: str) -> np.ndarray:
        """Return one column as numbers or as text."""
        if name in self.texts:
            return self.texts[name]
        if name in self.positions:
            return self.numeric[:, self.positions[name]]
        raise InvalidData(unknown_column("column", name, self.order))

    def select(self, names: Sequence[str]) -> Table:
        """Select columns, in the given order."""
        numeric = tuple(name for name in names if name not in self.texts)
        index = [self.positions[name] for name in numeric]
        texts = {name: self.texts[name] for name in names if name in self.texts}
        return Table(self.numeric[:, index], numeric, texts, tuple(names))

    def without(self, name: str) -> Table:
        """Return the table without the named column."""
        order = tuple(other for other in self.order if other != name)
        texts = {other: column for other, column in self.texts.items() if other != name}
        if name in self.texts:
            return Table(self.numeric, self.numeric_names, texts, order)
        position = self.positions[name]
        names = self.numeric_names[:position] + self.numeric_names[position + 1 :]
        return Table(np.delete(self.numeric, position, axis=1), names, texts, order)


def from_columns(columns: dict[str, np.ndarray]) -> Table:
    """Make a table from separate columns."""
    # The matrix is float32 if every number fits exactly, and float64 otherwise.
    texts = {name: column for name, column in columns.items() if column.dtype == object}
    numbers = {name: column for name, column in columns.items() if name not in texts}
    n_rows = len(next(iter(columns.values()))) if columns else 0
    dtype = np.result_type(np.float32, *(column.dtype for column in numbers.values()))
    numeric = np.empty((n_rows, len(numbers)), dtype=dtype)
    for position, (name, column) in enumerate(numbers.items()):
        if column.shape != (n_rows,):
            raise InvalidData(
                f"column {name!r} has shape {column.shape}; allowed: {n_rows} rows, as in the first "
                "column."
            )
        numeric[:, position] = column
    return Table(numeric, tuple(numbers), texts, tuple(columns))


def stack_rows(tables: Sequence[Table]) -> Table:
    """Stack tables, with columns matched by name."""
    first = tables[0]
    if len(tables) == 1:
        return first
    for table in tables:
        if set(table.order) != set(first.order):
            odd = sorted(set(table.order) ^ set(first.order))
            raise InvalidData(
                f"parts of the data have different columns: {quoted_names(odd)} is missing in some; "
                "allowed: the same columns in every part."
            )
    # A column that is text in one table becomes text in all tables.
    textual = {name for table in tables for name in table.texts}
    numbers = tuple(name for name in first.numeric_names if name not in textual)
    texts = {
        name: np.concatenate([as_text(table.column(name)) for table in tables])
        for name in first.order
        if name in textual
    }
    blocks = [
        table.numeric
        if table.numeric_names == numbers
        else table.numeric[:, [table.positions[name] for name in numbers]]
        for table in tables
    ]
    return Table(np.concatenate(blocks), numbers, texts, first.order)


def as_text(column: np.ndarray) -> np.ndarray:
    """Convert a column to text; numbers get their shortest form, missing values become None."""
    if column.dtype == object:
        return column
    return np.array([None if value != value else number_text(value) for value in column], object)


def number_text(value: float) -> str:
    """Write a number in its shortest form; whole numbers without a point."""
    value = float(value)
    return str(int(value)) if value.is_integer() else repr(value)


def missing_mask(column: np.ndarray) -> np.ndarray:
    """Return the mask of missing values: NaN among numbers, None among texts."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.isnan(column)


LIMIT = ": limit"  # ends the name of a column that marks cells such as <0.1

TOTALS = frozenset(
    {"total", "totals", "grand total", "subtotal", "sum", "mean", "average", "summe", "gesamt"}
)


def without_totals(columns: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Leave out a last row of totals: its first text is "Total" or the like, and no other row's is."""
    for name, column in columns.items():
        if column.dtype != object or len(column) < 3:
            continue
        last = column[-1]
        named = isinstance(last, str) and last.strip(" :.").casefold() in TOTALS
        if named and last not in column[:-1]:
            note = f"the last row is left out: {name!r} is {last!r} there"
            return {key: values[:-1] for key, values in columns.items()}, [note]
        break
    return columns, []


def with_limits(table: Table, needed: Sequence[str]) -> Table:
    """Add the columns that mark cells such as <0.1, if no cell of the new rows is such a cell."""
    added = {
        name: np.zeros(table.n_rows)
        for name in needed
        if name not in table and name.endswith(LIMIT) and name.removesuffix(LIMIT) in table
    }
    if not added:
        return table
    return from_columns({name: table.column(name) for name in table.order} | added)


def without_units(
    columns: dict[str, np.ndarray], worded: Sequence[str]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Leave out a first row of units: it has words in two or more columns of numbers, and no number."""
    numbers = [column for column in columns.values() if column.dtype != object]
    here = [name for name in worded if np.isnan(columns[name][0])]
    if len(here) < 2 or not all(np.isnan(column[0]) for column in numbers):
        return columns, []
    note = f"the first row is left out as a line of units: {quoted_names(here)} hold words there"
    return {key: values[1:] for key, values in columns.items()}, [note]


def refuse_duplicates(names: Iterable[str]) -> None:
    """Raise :class:`InvalidData` if a column name occurs twice."""
    repeated = {name: times for name, times in Counter(names).items() if times > 1}
    if repeated:
        first, *others = repeated
        also = f" (also {quoted_names(others)})" if others else ""
        raise InvalidData(
            f"column name {first!r} occurs {repeated[first]} times{also}; allowed: each name once. "
            "Rename the columns."
        )


def unknown_column(kind: str, name: str, names: Sequence[str]) -> str:
    """Return the message about an unknown column; it suggests the most similar name."""
    near = get_close_matches(name, names, n=1) or [
        other for other in names if other.casefold() == name.casefold()
    ]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{kind} {quoted(name)} is not a column; allowed: {quoted_names(names)}.{hint}"
