"""Which columns of numbers cannot be used, and how treatments are told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.data.columns import ColumnStatistics, numbers_the_rows
from solvable.data.table import SHOWN_NAMES, Table, listed


def unusable_numbers(
    table: Table, statistics: ColumnStatistics, keep: set[str], keep_constant: set[str]
) -> dict[str, str]:
    """Columns of numbers that are not to be learned from.

    Parameters
    ----------
    table : Table
        Training rows.
    statistics : ColumnStatistics
        Of the columns of numbers.
    keep : set of str
        Columns that are not identifiers, whatever they look like.
    keep_constant : set of str
        Columns to keep though constant in these rows.

    Returns
    -------
    dict from str to str
        The reason by column.

    Examples
    --------
    >>> from solvable.data.columns import column_statistics
    >>> table = Table(np.column_stack([np.arange(99.0), np.ones(99), np.arange(99) % 7]), tuple("abc"))
    >>> for item in unusable_numbers(table, column_statistics(table.numeric), set(), set()).items():
    ...     print(item)
    ('b', 'constant')
    ('a', 'another whole number in every row, as identifiers have')
    """
    dropped: dict[str, str] = {}
    identifiers = []
    for i, name in enumerate(table.numeric_names):
        if statistics.empty[i] or statistics.constant[i]:
            if name not in keep_constant:
                dropped[name] = "no value in any row" if statistics.empty[i] else "constant"
        elif name not in keep and numbers_the_rows(table.numeric[:, i]):
            identifiers.append(name)
    # A single column that happens to count is data, not a key to data.
    if len(identifiers) + len(dropped) < len(table.numeric_names):
        for name in identifiers:
            dropped[name] = "another whole number in every row, as identifiers have"
    return dropped


def describe(
    dropped: Sequence[tuple[str, str]], categories: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[str, ...]:
    """Sentences on columns that were dropped or replaced.

    Parameters
    ----------
    dropped : sequence of (str, str)
        Column and reason.
    categories : sequence of (str, tuple of str)
        Column of text and its texts.

    Returns
    -------
    tuple of str
        One sentence per reason and per column of text.

    Examples
    --------
    >>> describe([("a", "constant"), ("b", "constant")], [("c", ("x", "y"))])
    ("dropped 2 columns 'a', 'b': constant", "column 'c': text, replaced by 2 columns of 0 and 1")
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in dropped:
        by_reason.setdefault(reason, []).append(name)
    sentences = []
    for reason, names in by_reason.items():
        noun = "column" if len(names) == 1 else f"{len(names)} columns"
        sentences.append(f"dropped {noun} {listed(names)}: {reason}")
    for name, texts in categories:
        noun = "column" if len(texts) == 1 else "columns"
        sentences.append(f"column {name!r}: text, replaced by {len(texts)} {noun} of 0 and 1")
    return tuple(sentences)


def describe_gaps(
    names: Sequence[str],
    n_missing: np.ndarray,
    n_rows: int,
    medians: Sequence[float] | None = None,
) -> tuple[str, ...]:
    """Sentences on missing values.

    Parameters
    ----------
    names : sequence of str, length p
        Columns of numbers.
    n_missing : ndarray of int, shape (p,)
        Values missing in each.
    n_rows : int
        Rows.
    medians : sequence of float, length p, optional
        What stands in for them, to be told.

    Returns
    -------
    tuple of str
        One sentence per column with gaps, or one for all if they are many.

    Examples
    --------
    >>> describe_gaps(["a", "b"], np.array([0, 2]), 10, [1.0, 2.5])
    ("column 'b': 2 of 10 values missing, replaced by 2.5, the median of the training rows",)
    """
    gaps = np.flatnonzero(n_missing).tolist()
    if len(gaps) > SHOWN_NAMES:
        return (
            f"{len(gaps)} columns ({listed(names[i] for i in gaps)}) have {n_missing.sum()} missing "
            "values, replaced by the medians of the training rows",
        )
    sentences = []
    for i in gaps:
        value = "" if medians is None else f"{medians[i]:.6g}, "
        sentences.append(
            f"column {names[i]!r}: {n_missing[i]} of {n_rows} values missing, replaced by "
            f"{value}the median of the training rows"
        )
    return tuple(sentences)
