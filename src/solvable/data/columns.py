"""Compute statistics of columns, choose usable columns, and describe the choice in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from solvable.data.cells import first_odd_cell
from solvable.data.csv_memory import MOST_GAPS
from solvable.data.table import Table, missing_mask
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.memory import available_bytes, gigabytes
from solvable.plots.words import quoted_names

MAX_CATEGORIES = 20  # largest number of texts of a column that is encoded by a 0/1 column per text
MEDIAN_ROWS = 100_000  # evenly spaced rows that give the medians of a longer table
LARGEST = 1e30  # largest allowed absolute value in a column
GAP_SHARE = 0.05  # smallest share of missing values of a column that gets an indicator of these
BLOCK_ENTRIES = 4_000_000  # number of entries processed at a time, about 32 MB


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Range, number of missing values and median of each column of numbers."""

    n_rows: int
    n_missing: np.ndarray  # number of missing values (NaN) in each column
    low: np.ndarray  # smallest value of each column; NaN if all values are missing
    high: np.ndarray  # largest value of each column; NaN if all values are missing
    medians: np.ndarray  # median of each column's present values; 0 if all are missing

    @property
    def empty(self) -> np.ndarray:
        """Mask of the columns in which every value is missing."""
        return self.n_missing == self.n_rows

    @property
    def constant(self) -> np.ndarray:
        """Mask of the columns with a single distinct value."""
        return ~self.empty & (self.low == self.high)


def row_blocks(matrix: np.ndarray) -> Iterator[slice]:
    """Yield slices of rows with about ``BLOCK_ENTRIES`` entries each."""
    rows = max(1, BLOCK_ENTRIES // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield slice(start, min(start + rows, len(matrix)))


def refuse_infinite(matrix: np.ndarray, names: Sequence[str], first_row: int = 0) -> bool:
    """Raise :class:`InvalidData` on an infinite value; return True if a value is missing."""
    missing = False
    if matrix.dtype.kind in "biu":
        return False
    # The range of half precision is smaller than the allowed range. Comparisons with NaN are False.
    most = min(LARGEST, float(np.finfo(matrix.dtype).max))
    for rows in row_blocks(matrix):
        block = matrix[rows]
        fine = (block >= -most) & (block <= most)
        if fine.all():
            continue
        beyond = ~fine & ~np.isnan(block)
        if beyond.any():
            columns = np.flatnonzero(beyond.any(axis=0)).tolist()
            row = int(np.argmax(beyond[:, columns[0]]))
            value = block[row, columns[0]]
            seen = f"holds {value:.3g}" if np.isfinite(value) else "is infinite"
            raise InvalidData(
                f"{quoted_names(names[column] for column in columns)} {seen}, first in row "
                f"{first_row + rows.start + row + 1}; allowed: finite numbers up to {LARGEST:g}, or "
                "an empty cell or NaN for a missing value. Correct or remove these rows, or express the "
                "column in another unit."
            )
        missing = True
    return missing


def refuse_tiny(statistics: ColumnStatistics, names: Sequence[str]) -> None:
    """Raise :class:`InvalidData` if the squares of all values of a column underflow."""
    # Columns without a value have the bounds NaN here, so comparisons are False for these columns.
    largest = np.fmax(np.abs(statistics.low), np.abs(statistics.high))
    columns = np.flatnonzero((largest > 0) & (largest < 1e-60)).tolist()
    if columns:
        raise InvalidData(
            f"{quoted_names(names[column] for column in columns)} has no value larger than "
            f"{largest[columns[0]]:.3g}; allowed: columns with values of 1e-60 or more. Express the "
            "column in another unit."
        )


def refuse_large(n_rows: int, n_columns: int, dtype: str) -> None:
    """Raise :class:`MemoryLimitExceeded` if the 0/1 columns of encoded texts do not fit into memory."""
    # Each 0/1 column is stored as single bytes before the matrix is made.
    size = float(n_rows) * n_columns * (np.dtype(dtype).itemsize + 1)
    if size > 1e7 and size > available_bytes():
        raise MemoryLimitExceeded(
            f"{n_rows} rows with {n_columns} columns, one for each text, need {gigabytes(size)} of "
            f"memory; allowed: the {gigabytes(available_bytes())} that are free. Use fewer rows, or "
            "leave out columns of text."
        )


def column_statistics(matrix: np.ndarray) -> ColumnStatistics:
    """Compute the statistics of each column, in blocks of rows."""
    n_rows, n_columns = matrix.shape
    n_missing = np.zeros(n_columns, dtype=np.int64)
    low = np.full(n_columns, np.nan)
    high = np.full(n_columns, np.nan)
    for rows in row_blocks(matrix):
        block = matrix[rows]
        n_missing += np.count_nonzero(block != block, axis=0)
        low = np.fmin(low, np.fmin.reduce(block, axis=0))
        high = np.fmax(high, np.fmax.reduce(block, axis=0))
    return ColumnStatistics(n_rows, n_missing, low, high, _medians(matrix))


def _medians(matrix: np.ndarray) -> np.ndarray:
    """Compute the median of each column over evenly spaced rows; 0 for a column without values."""
    step = -(-len(matrix) // MEDIAN_ROWS) or 1
    columns = max(1, BLOCK_ENTRIES // max(1, len(matrix) // step))
    medians = np.zeros(matrix.shape[1])
    for start in range(0, matrix.shape[1], columns):
        block = np.asarray(matrix[::step, start : start + columns], dtype=np.float64)
        for position, values in enumerate(block.T, start):
            values = values[~np.isnan(values)]
            if len(values):
                medians[position] = np.median(values)
    return medians


def numbers_the_rows(column: np.ndarray) -> bool:
    """Return True if a column of whole numbers contains row identifiers, not measurements."""
    n = len(column)
    head = column[:1000]
    # For most columns, the first rows already show that they are not identifiers.
    if not np.isfinite(head).all() or (head != np.round(head)).any():
        return False
    if len(np.unique(head)) < len(head) or not np.isfinite(column).all():
        return False
    span = float(column.max()) - float(column.min()) + 1
    # Among n whole numbers drawn at random from m, n (n - 1) / (2 m) pairs are equal on average. If 7
    # or more are expected, none is equal with probability below exp(-7), about 0.001; such a column is
    # taken as row numbers.
    if n * (n - 1) / (2 * span) < 7 or (column != np.round(column)).any():
        return False
    return len(np.unique(column)) == n


MANY_TEXTS = (
    "a different text in every row, as in an identifier",
    "nearly every text occurs once, as in an identifier",
)
"""Reasons why a column of many texts is dropped unless it is encoded by words or frequencies."""


def text_reason(column: np.ndarray, others: frozenset[str] = frozenset()) -> str:
    """Return why texts cannot be 0/1 columns, "" if they can; `others` are texts of other rows."""
    present = [value for value in column if value is not None]
    distinct = len(others.union(present))
    if distinct == 0:
        return "no value in any row"
    if distinct == 1 and len(present) == len(column):
        return "constant"
    if distinct <= min(MAX_CATEGORIES, max(2, len(column) // 2)) and distinct < len(column):
        return ""
    odd = first_odd_cell(column)
    if odd is not None:
        return f"text, although most cells are numbers: {odd[1]!r} in row {odd[0] + 1} is not"
    if len(set(present)) == len(present):
        return MANY_TEXTS[0]
    if distinct > MAX_CATEGORIES:
        return MANY_TEXTS[1]
    return f"text with {distinct} distinct values in {len(column)} rows"


def unusable_numbers(
    table: Table, statistics: ColumnStatistics, keep: set[str], keep_constant: set[str]
) -> dict[str, str]:
    """Return the unusable columns of numbers, each with the reason."""
    dropped: dict[str, str] = {}
    identifiers = []
    for i, name in enumerate(table.numeric_names):
        if statistics.empty[i] or statistics.constant[i]:
            # One value and gaps are two groups, which the indicator of the gaps separates.
            least = least_gaps(table.n_rows)
            groups = least <= statistics.n_missing[i] <= table.n_rows - least
            if name not in keep_constant and not groups:
                dropped[name] = "no value in any row" if statistics.empty[i] else "constant"
        elif name not in keep and numbers_the_rows(table.numeric[:, i]):
            identifiers.append(name)
    # Identifiers are kept if the table has no other usable column of numbers.
    if len(identifiers) + len(dropped) < len(table.numeric_names):
        for name in identifiers:
            dropped[name] = "a different whole number in every row, as in an identifier"
    return dropped


def least_gaps(n_rows: int) -> float:
    """Fewest missing and fewest present values of a column that gets an indicator."""
    return max(10, GAP_SHARE * n_rows)


def marked_gaps(table: Table, n_missing: np.ndarray, used: Sequence[int]) -> tuple[str, ...]:
    """Choose the number columns that get an indicator of missing values; equal indicators once."""
    # A column that is 1 in few rows has large values once it is standardised, and disturbs kernels.
    least = least_gaps(table.n_rows)
    marked: dict[bytes, int] = {}
    for place in sorted(used, key=lambda place: -n_missing[place]):
        if least <= n_missing[place] <= table.n_rows - least and len(marked) < MOST_GAPS:
            missing = missing_mask(table.numeric[:, place])
            marked.setdefault(blake2b(missing.tobytes(), digest_size=16).digest(), place)
    return tuple(table.numeric_names[place] for place in sorted(marked.values()))


def describe(
    dropped: Sequence[tuple[str, str]], categories: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[str, ...]:
    """Return sentences about dropped columns, grouped by reason, and about columns of text."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in dropped:
        by_reason.setdefault(reason, []).append(name)
    sentences = []
    for reason, names in by_reason.items():
        noun = "column" if len(names) == 1 else f"{len(names)} columns"
        sentences.append(f"dropped {noun} {quoted_names(names)}: {reason}")
    for name, texts in categories:
        noun = "column" if len(texts) == 1 else "columns"
        sentences.append(f"column {name!r}: text, replaced by {len(texts)} {noun} of 0 and 1")
    return tuple(sentences)


def describe_gaps(
    names: Sequence[str], n_missing: np.ndarray, n_rows: int, medians: Sequence[float] | None = None
) -> tuple[str, ...]:
    """Return sentences about missing values and, if given, about the medians that replace them."""
    gaps = np.flatnonzero(n_missing).tolist()
    if len(gaps) > 5:
        return (
            f"{len(gaps)} columns ({quoted_names(names[i] for i in gaps)}) have {n_missing.sum()} "
            "missing values, replaced by the medians of the training rows",
        )
    sentences = []
    for i in gaps:
        value = "" if medians is None else f"{medians[i]:.6g}, "
        sentences.append(
            f"column {names[i]!r}: {n_missing[i]} of {n_rows} values missing, replaced by "
            f"{value}the median of the training rows"
        )
    return tuple(sentences)
