"""Parts of a data set that are read one at a time: row groups, files or ranges of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from solvable.data.cells import known_text
from solvable.data.table import Table, refuse_duplicates, unknown_column
from solvable.errors import InvalidData
from solvable.plots.words import quoted_names

PART_ROWS = 16_384  # rows per part of an array; parts of Parquet files are row groups


class Part(Protocol):
    """Part of a data set: rows that are read together."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns without the target."""
        ...

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """Return the requested (or all) columns other than the target, and the target or None."""
        ...


@dataclass(frozen=True)
class RawData:
    """Content of a file or folder before any preparation."""

    parts: tuple[Part, ...]  # at least one part, in the order of rows
    target: str  # name of the target; empty if the data have none
    image_shape: tuple[int, ...] | None = None  # height, width (and channels) if rows are images
    notes: tuple[str, ...] = ()  # sentences about choices made while reading
    row_names: tuple[str, ...] = ()  # file name of each row, if each row is one file

    @property
    def whole(self) -> Part | None:
        """Return the part of which every given part is a row range, or None if no such part exists."""
        first = self.parts[0]
        if len(self.parts) == 1:
            return first
        base = first.base if isinstance(first, Stretch) else None
        same = all(isinstance(part, Stretch) and part.base is base for part in self.parts)
        return base if same else None


@dataclass(frozen=True, eq=False)
class TablePart:
    """Part whose rows are stored in a table, in memory or memory-mapped."""

    table: Table
    values: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns without the target."""
        return self.table.order

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """Return the requested (or all) columns other than the target, and the target or None."""
        table = self.table if columns is None else self.table.select(columns)
        return table, self.values


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive rows of another part, without a copy."""

    base: TablePart
    span: slice

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.span.stop - self.span.start)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns without the target."""
        return self.base.columns

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """Return the requested (or all) columns other than the target, and the target or None."""
        table = self.base.table.rows(self.span)
        values = None if self.base.values is None else self.base.values[self.span]
        return table if columns is None else table.select(columns), values


def target_of(part: Part) -> np.ndarray | None:
    """Read only the values of the target, as numbers or text."""
    return part.read(())[1]


def stretches(part: TablePart) -> tuple[Part, ...]:
    """Split a part into row ranges of ``PART_ROWS`` rows each, without a copy."""
    starts = range(0, part.n_rows, PART_ROWS)
    if len(starts) == 1:
        return (part,)
    return tuple(Stretch(part, slice(i, min(i + PART_ROWS, part.n_rows))) for i in starts)


def split_target(parts: Sequence[Part], target: str) -> tuple[Part, ...]:
    """Make one column the target of all parts."""
    whole = RawData(tuple(parts), "").whole
    assert whole is not None
    table, _ = whole.read()
    return stretches(TablePart(table.without(target), table.column(target)))


def array_parts(
    X: np.ndarray, y: np.ndarray | None, names: Sequence[str] = (), where: str = "the data"
) -> tuple[tuple[Part, ...], tuple[int, ...] | None]:
    """Split an array into parts of ``PART_ROWS`` rows each, without a copy."""
    if X.ndim == 0 or X.ndim > 4:
        raise InvalidData(
            f"X of {where} has shape {X.shape}; allowed: (n, d), or (n, height, width) and "
            "(n, height, width, channels) for images."
        )
    image_shape = tuple(X.shape[1:]) if X.ndim > 2 else None
    n_columns = int(np.prod(X.shape[1:]))
    if len(X) == 0 or n_columns == 0:
        raise InvalidData(
            f"X of {where} has shape {X.shape}; allowed: at least one row and one column."
        )
    matrix = X.reshape(len(X), n_columns)
    if len(names) not in (0, n_columns):
        raise InvalidData(
            f"{where} has {len(names)} column names for {n_columns} columns; allowed: equal numbers."
        )
    names = tuple(map(str, names)) or tuple(f"x{i}" for i in range(n_columns))
    refuse_duplicates(names)
    values = None if y is None else _label_column(y, len(X), where)
    if X.dtype.kind in "US":
        columns = {name: typed_column(matrix[:, i], name) for i, name in enumerate(names)}
        return (TablePart(Table(np.empty((len(X), 0)), (), columns), values),), image_shape
    if X.dtype.kind not in "fiub":
        raise InvalidData(
            f"X of {where} has entries of type {X.dtype}; allowed: real numbers or text."
        )
    return stretches(TablePart(Table(matrix, names), values)), image_shape


def typed_column(column: np.ndarray, name: str) -> np.ndarray:
    """Convert a column of an array file to numbers, or to text with None for missing values."""
    if column.dtype.kind in "fiub":
        return column
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8", "replace")
    if column.dtype.kind != "U":
        raise InvalidData(
            f"column {name!r} has entries of type {column.dtype}; allowed: real numbers or text."
        )
    return text_column(column.tolist())


def text_column(values: Sequence[str | None]) -> np.ndarray:
    """Strip texts, and replace texts that denote a missing value by None."""
    return np.array([known_text((value or "").strip()) for value in values], dtype=object)


def _label_column(y: np.ndarray, n_rows: int, where: str) -> np.ndarray:
    """Check that the target has one value per row."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n_rows,):
        raise InvalidData(
            f"the target of {where} has shape {y.shape}, and X has {n_rows} rows; allowed: one "
            f"value per row, shape ({n_rows},)."
        )
    return typed_column(y, "target")


def choose_target(
    names: Sequence[str], target: str | None, *, required: bool, where: str
) -> tuple[str, tuple[str, ...]]:
    """Choose the name of the target among the columns of a table."""
    # The name is empty if no target is required and none is found, as in new data.
    if target is not None:
        if target in names:
            return target, ()
        if required:
            raise InvalidData(unknown_column("target", target, names))
        return "", ()
    if not required:
        return "", ()
    # usual names of a target, searched if no target is given
    common_targets = ("y", "target", "label", "labels", "class")
    usual = [name for name in names if name.casefold() in common_targets]
    if len(usual) == 1:
        return usual[0], (f"column {usual[0]!r} is the target, chosen by its name",)
    raise InvalidData(
        f"the target of {where} is not known; allowed: one of its columns ({quoted_names(names)}). "
        "Give it with --target COLUMN (target=COLUMN)."
    )
