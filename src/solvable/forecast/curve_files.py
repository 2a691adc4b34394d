"""Reading a learning curve from a text file, with a clear answer to every kind of rubbish."""

from __future__ import annotations

import csv
import math
from os import PathLike, fspath
from typing import NamedTuple

from solvable.errors import InvalidData

SAMPLES = ("n", "samples", "n_samples", "sample_size", "size", "n_train", "train_size")
"""Names by which the column of sample sizes is known, in lower case."""

ERRORS = (
    "error", "errors", "test_error", "error_rate", "mse", "nmse", "normalised_mse", "loss",
    "test_loss", "rmse", "value",
)  # fmt: skip
"""Names by which the column of errors is known."""

REPLICATES = ("replicate", "rep", "seed", "run", "fold", "trial", "repeat", "repetition")
"""Names by which the column of replicates is known."""

MOST_CHARACTERS = 50_000_000
"""Length beyond which a file is surely something else."""


class CurveColumns(NamedTuple):
    """Columns of a curve as they were read.

    Parameters
    ----------
    samples, errors : list of float
        One entry per error.
    replicates : tuple of str or None
        Names, if the file has them.
    """

    samples: list[float]
    errors: list[float]
    replicates: tuple[str, ...] | None


class _Table(NamedTuple):
    """A text table: header, and rows with the line on which each stands."""

    name: str
    header: list[str]
    rows: list[tuple[int, list[str]]]


def read_curve(
    path: str | PathLike[str],
    *,
    samples: str | None = None,
    error: str | None = None,
    replicate: str | None = None,
) -> CurveColumns:
    """Read a long or wide file; see :meth:`solvable.forecast.LearningCurve.from_csv`.

    Parameters
    ----------
    path : str or path
        The file.
    samples, error, replicate : str, optional
        Names of columns.

    Returns
    -------
    CurveColumns
        As many samples as errors.

    Raises
    ------
    InvalidData
        If the file is no curve.
    """
    table = _read_table(path)
    lowered = [name.lower() for name in table.header]
    if samples is None and error is None and _all_sizes(lowered):
        return _wide_by_size(table, lowered)
    n = _column(table, lowered, samples, SAMPLES, "samples")
    if n is None:
        raise InvalidData(
            f"{table.name}: no column of sample sizes among {_listed(table.header)}; allowed: a "
            f"column named {' or '.join(SAMPLES[:3])}, or sample sizes as the header. Rename the "
            "column, or name it."
        )
    e = _column(table, lowered, error, ERRORS, "error")
    r = _column(table, lowered, replicate, REPLICATES, "replicate")
    others = [k for k in range(len(lowered)) if k not in (n, e, r)]
    if e is None and r is None and others:
        return _wide_by_replicate(table, n, others)
    if e is None:
        raise InvalidData(
            f"{table.name}: no column of errors among {_listed(table.header)}; allowed: a column "
            f"named error, or a column per replicate beside {table.header[n]!r}."
        )
    if others and error is None:
        raise InvalidData(
            f"{table.name}: columns {_listed([table.header[k] for k in others])} beside "
            f"{table.header[n]!r} and {table.header[e]!r} may change what the errors mean; allowed: "
            "sample size, error, replicate. Remove them, or name the column of errors."
        )
    return _long(table, n, e, r)


def _read_table(path: str | PathLike[str]) -> _Table:
    name = fspath(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except FileNotFoundError:
        raise InvalidData(f"{name}: no such file; allowed: a text file with a header.") from None
    except UnicodeDecodeError as found:
        raise InvalidData(
            f"{name}: byte {found.start} is no UTF-8 text; allowed: CSV. Export the table as CSV."
        ) from None
    except OSError as found:
        raise InvalidData(f"{name}: cannot be read: {found.strerror}.") from None
    if len(text) > MOST_CHARACTERS:
        raise InvalidData(f"{name}: longer than {MOST_CHARACTERS} characters; that is no curve.")
    if "\0" in text:
        raise InvalidData(f"{name}: holds NUL bytes; allowed: CSV. Export the table as CSV.")
    header, *body = _cells(name, text.splitlines()) or [(0, [])]
    if not header[1]:
        raise InvalidData(f"{name}: the file is empty; allowed: a header and a row per error.")
    if not body:
        raise InvalidData(
            f"{name}: 0 rows below the header; allowed: at least 1. Give a header and a row per error."
        )
    for number, row in body:
        if len(row) != len(header[1]):
            raise InvalidData(
                f"{name}, line {number}: {len(row)} cells where the header has {len(header[1])}; "
                "allowed: as many. Write decimal points, not commas."
            )
    _check_header(name, header[1])
    return _Table(name, header[1], body)


def _cells(name: str, lines: list[str]) -> list[tuple[int, list[str]]]:
    """Rows that hold anything, with their numbers; the delimiter is the header's commonest."""
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    try:
        return [
            (number, [cell.strip() for cell in row])
            for number, row in enumerate(csv.reader(lines, delimiter=delimiter), start=1)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as found:
        raise InvalidData(f"{name}: no CSV: {found}. Export the table as CSV.") from None


def _check_header(name: str, header: list[str]) -> None:
    for k, title in enumerate(header):
        if not title:
            raise InvalidData(f"{name}: column {k + 1} has no name; allowed: a name per column.")
    lowered = [title.lower() for title in header]
    twice = next((title for title in lowered if lowered.count(title) > 1), None)
    if twice is not None:
        raise InvalidData(
            f"{name}: two columns are named {twice!r}; allowed: distinct names. Rename one."
        )


def _column(
    table: _Table, lowered: list[str], asked: str | None, known: tuple[str, ...], what: str
) -> int | None:
    """Place of a column; None if it is not asked for and none has a known name."""
    if asked is not None:
        if asked.lower() not in lowered:
            raise InvalidData(
                f"{table.name}: no column {asked!r}; allowed: {_listed(table.header)}."
            )
        return lowered.index(asked.lower())
    found = [k for k, name in enumerate(lowered) if name in known]
    if len(found) > 1:
        raise InvalidData(
            f"{table.name}: {_listed([table.header[k] for k in found])} could each be the column of "
            f"{what}; allowed: one. Rename or remove the others, or name the column."
        )
    return found[0] if found else None


def _all_sizes(lowered: list[str]) -> bool:
    """Whether a header consists of sample sizes, apart from a first column that names replicates."""
    titles = lowered[1:] if lowered[0] in REPLICATES else lowered
    return bool(titles) and all(_number(title) is not None for title in titles)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number; a table never means it.
    return None if "_" in text else value


def _value(table: _Table, line: int, column: int, text: str, *, size: bool) -> float:
    where = f"{table.name}, line {line}, column {table.header[column]!r}"
    value = _number(text)
    what = "a sample size above 0" if size else "an error of at least 0"
    if value is None:
        seen = f"{text[:40]!r} is no number" if text else "the cell is empty"
        hint = " Write a decimal point, not a comma." if "," in text else ""
        raise InvalidData(f"{where}: {seen}; allowed: {what}.{hint}")
    if not math.isfinite(value) or value < 0 or (size and value == 0):
        raise InvalidData(f"{where}: {text!r}; allowed: {what}. Correct or remove the row.")
    return value


def _long(table: _Table, n: int, e: int, r: int | None) -> CurveColumns:
    samples = [_value(table, line, n, row[n], size=True) for line, row in table.rows]
    errors = [_value(table, line, e, row[e], size=False) for line, row in table.rows]
    names = None if r is None else tuple(row[r] for _, row in table.rows)
    return CurveColumns(samples, errors, names)


def _wide_by_replicate(table: _Table, n: int, columns: list[int]) -> CurveColumns:
    samples, errors, names = [], [], []
    for line, row in table.rows:
        size = _value(table, line, n, row[n], size=True)
        for k in columns:
            # A replicate that was not run at a size leaves its cell empty.
            if row[k]:
                samples.append(size)
                errors.append(_value(table, line, k, row[k], size=False))
                names.append(table.header[k])
    return _checked(table, samples, errors, names)


def _wide_by_size(table: _Table, lowered: list[str]) -> CurveColumns:
    first = 1 if lowered[0] in REPLICATES else 0
    samples, errors, names = [], [], []
    for k in range(first, len(lowered)):
        size = float(lowered[k])
        if not math.isfinite(size) or size <= 0:
            raise InvalidData(
                f"{table.name}: the header has the sample size {lowered[k]!r}; allowed: above 0."
            )
        for line, row in table.rows:
            if row[k]:
                samples.append(size)
                errors.append(_value(table, line, k, row[k], size=False))
                names.append(row[0] if first else str(line))
    return _checked(table, samples, errors, names)


def _checked(
    table: _Table, samples: list[float], errors: list[float], names: list[str]
) -> CurveColumns:
    if not errors:
        raise InvalidData(f"{table.name}: no errors below the header; allowed: at least one.")
    return CurveColumns(samples, errors, tuple(names))


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
