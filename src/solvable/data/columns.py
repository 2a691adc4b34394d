"""What a column holds: its range, what is missing, whether it merely numbers the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.data.cells import first_odd_cell
from solvable.data.table import listed
from solvable.errors import InvalidData

MAX_CATEGORIES = 20
"""Distinct texts up to which a column of text becomes one column of 0 and 1 per text."""

MEDIAN_ROWS = 100_000
"""Evenly spaced rows from which the medians of a longer table are taken."""

EXPECTED_REPEATS = 7.0
"""Repeats expected among random whole numbers above which their absence betrays an identifier.

The chance that none occurs is about exp(-7), one in a thousand.
"""

BLOCK_ENTRIES = 4_000_000
"""Entries that are looked at together: about 32 MB, whatever the size of a memory-mapped file."""


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Range, missing values and median of each column of numbers.

    Parameters
    ----------
    n_rows : int
        Rows looked at.
    n_missing : ndarray of int, shape (p,)
        NaN in each column.
    low, high : ndarray of shape (p,)
        Smallest and largest value; NaN where all are missing.
    medians : ndarray of shape (p,)
        Medians of the values that are not missing; 0 where all are.
    """

    n_rows: int
    n_missing: np.ndarray
    low: np.ndarray
    high: np.ndarray
    medians: np.ndarray

    @property
    def empty(self) -> np.ndarray:
        """Columns without a value, as a mask."""
        return self.n_missing == self.n_rows

    @property
    def constant(self) -> np.ndarray:
        """Columns with one value, as a mask."""
        return ~self.empty & (self.low == self.high)


def row_blocks(matrix: np.ndarray) -> Iterator[slice]:
    """Slices of rows that hold about ``BLOCK_ENTRIES`` entries each.

    Examples
    --------
    >>> list(row_blocks(np.zeros((3, 2))))
    [slice(0, 3, None)]
    """
    rows = max(1, BLOCK_ENTRIES // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield slice(start, min(start + rows, len(matrix)))


def refuse_infinite(matrix: np.ndarray, names: Sequence[str], first_row: int = 0) -> bool:
    """Raise :class:`InvalidData` on an infinite value; otherwise say whether any is missing.

    Parameters
    ----------
    matrix : ndarray of shape (n, p)
        Columns of numbers, read block by block.
    names : sequence of str, length p
        Their names.
    first_row : int
        Position of the first row in the whole, for the message.

    Returns
    -------
    bool
        Whether a value is NaN.

    Examples
    --------
    >>> refuse_infinite(np.array([[1.0, np.nan]]), ("a", "b"))
    True
    """
    missing = False
    if matrix.dtype.kind in "biu":
        return False
    for rows in row_blocks(matrix):
        block = matrix[rows]
        finite = np.isfinite(block)
        if finite.all():
            continue
        infinite = ~finite & ~np.isnan(block)
        if infinite.any():
            columns = np.flatnonzero(infinite.any(axis=0)).tolist()
            row = first_row + rows.start + int(np.argmax(infinite[:, columns[0]]))
            raise InvalidData(
                f"{listed(names[column] for column in columns)} is infinite, first in row "
                f"{row + 1}; allowed: finite numbers, or an empty cell or NaN where a value is "
                "missing. Mend or remove these rows."
            )
        missing = True
    return missing


def column_statistics(matrix: np.ndarray) -> ColumnStatistics:
    """Statistics of each column, in blocks of rows.

    Parameters
    ----------
    matrix : ndarray of shape (n, p)
        Numbers, NaN where missing.

    Returns
    -------
    ColumnStatistics
        Exact but for the medians of more than ``MEDIAN_ROWS`` rows, which are those of evenly
        spaced rows.

    Examples
    --------
    >>> column_statistics(np.array([[1.0, 5.0], [3.0, np.nan]])).medians
    array([2., 5.])
    """
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
    """Median of each column over evenly spaced rows, 0 for a column without value."""
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
    r"""Whether whole numbers identify rows rather than measure something.

    They do if all are distinct although, drawn at random from their range of :math:`m` whole
    numbers, :math:`n(n-1)/(2m)` pairs would be expected to agree and that is at least 7.

    Parameters
    ----------
    column : ndarray of shape (n,)
        Numbers.

    Returns
    -------
    bool
        False if a value is missing or not whole.

    Examples
    --------
    >>> numbers_the_rows(np.arange(100.0)), numbers_the_rows(np.arange(100.0) ** 3)
    (True, False)
    """
    n = len(column)
    head = column[:1000]
    # Most columns are told apart by their first rows.
    if not np.isfinite(head).all() or (head != np.round(head)).any():
        return False
    if len(np.unique(head)) < len(head) or not np.isfinite(column).all():
        return False
    span = float(column.max()) - float(column.min()) + 1
    if n * (n - 1) / (2 * span) < EXPECTED_REPEATS or (column != np.round(column)).any():
        return False
    return len(np.unique(column)) == n


def text_reason(column: np.ndarray, others: frozenset[str] = frozenset()) -> str:
    """Why a column of text cannot be used, or nothing if it can.

    Parameters
    ----------
    column : ndarray of object, shape (n,)
        Text, None where missing.
    others : frozenset of str
        Texts of the column outside these rows.

    Returns
    -------
    str
        The reason; empty if the column becomes columns of 0 and 1.

    Examples
    --------
    >>> text_reason(np.array(["red", "blue", "red", "red"], dtype=object))
    ''
    >>> text_reason(np.array(["Ada", "Emmy", "Sofia"], dtype=object))
    'a text of its own in every row'
    """
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
        return f"text though most cells are numbers: {odd[1]!r} in row {odd[0] + 1} is none"
    if len(set(present)) == len(column):
        return "a text of its own in every row"
    if distinct > MAX_CATEGORIES:
        return f"text with more than {MAX_CATEGORIES} distinct values, such as {present[0]!r}"
    return f"text with {distinct} distinct values in {len(column)} rows"
