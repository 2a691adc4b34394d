"""Text files of learning curves: one row per error, or a column per replicate or sample size."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from os import PathLike, fspath
from typing import NamedTuple

from solvable.errors import InvalidData, quoted
from solvable.paths import check_path
from solvable.plots.words import quoted_names

# Sample sizes, errors and, if the file has them, names of replicates: one entry per error; notes.
Columns = tuple[list[float], list[float], tuple[str, ...] | None, tuple[str, ...]]

# Usual names of the columns of a file, in lower case
SAMPLES = (
    "n", "samples", "n_samples", "sample_size", "size", "n_train", "train_size", "train_sizes", "step",
)  # fmt: skip
ERRORS = (
    "error", "errors", "test_error", "error_rate", "mse", "nmse", "normalised_mse", "loss",
    "test_loss", "rmse", "value", "val_loss", "val_error",
)  # fmt: skip
SCORES = (
    "accuracy",
    "acc",
    "test_accuracy",
    "val_accuracy",
    "score",
    "test_score",
    "auc",
    "f1",
    "r2",
)
SPREADS = ("std", "sd", "stdev", "std_error", "error_std", "sem", "se", "stderr")
COUNTS = ("count", "runs", "replicates", "seeds", "k", "repeats")
REPLICATES = ("replicate", "rep", "seed", "run", "fold", "trial", "repeat", "repetition")


class TextTable(NamedTuple):
    """Text table with a header, and rows with their line numbers."""

    name: str
    header: list[str]
    rows: list[tuple[int, list[str]]]


def read_columns(
    path: str | PathLike[str], samples: str | None, error: str | None, replicate: str | None
) -> Columns:
    """Return the columns of a long or a wide file."""
    return columns_of(_read_table(path), samples, error, replicate)


def columns_of(
    table: TextTable, samples: str | None, error: str | None, replicate: str | None
) -> Columns:
    """Return the columns of a long or a wide table."""
    table = _without_extremes(table)
    lowered = [name.lower() for name in table.header]
    if samples is None and error is None and _all_sizes(lowered):
        return _wide_by_size(table, lowered)
    n = _column(table, lowered, samples, SAMPLES, "samples")
    if n is None:
        raise InvalidData(
            f"{table.name}: no column of sample sizes among {quoted_names(table.header, 8)}; needed: a "
            f"column named {' or '.join(SAMPLES[:3])}, or sample sizes as the header. Rename the "
            "column (in Python, `samples` may name it)."
        )
    scored = error is None and not set(lowered) & set(ERRORS)
    e = _column(table, lowered, error, SCORES if scored else ERRORS, "error")
    r = _column(table, lowered, replicate, REPLICATES, "replicate")
    s = _column(table, lowered, None, SPREADS, "standard deviation") if e is not None else None
    c = _column(table, lowered, None, COUNTS, "number of runs") if s is not None else None
    others = [k for k in range(len(lowered)) if k not in (n, e, r, s, c)]
    if e is None and r is None and others:
        return _wide_by_replicate(table, n, others)
    if e is None:
        raise InvalidData(
            f"{table.name}: no column of errors among {quoted_names(table.header, 8)}; needed: a column "
            f"named error, or {table.header[n]!r} and a column per replicate."
        )
    if others and error is None:
        raise InvalidData(
            f"{table.name}: columns {quoted_names([table.header[k] for k in others], 8)} in addition to "
            f"{table.header[n]!r} and {table.header[e]!r} are ambiguous; allowed: sample size, error, "
            "replicate. Remove them (in Python, `error` may name the column of errors)."
        )
    found = _long(table, n, e, r) if s is None else _of_spreads(table, n, e, s, c)
    return _from_scores(found, table.header[e]) if scored else found


def _without_extremes(table: TextTable) -> TextTable:
    """Leave out the columns of extremes that Weights & Biases exports next to each run."""
    kept = [k for k, title in enumerate(table.header) if not title.endswith(("__MIN", "__MAX"))]
    if len(kept) == len(table.header):
        return table
    rows = [(line, [row[k] for k in kept]) for line, row in table.rows]
    return TextTable(table.name, [table.header[k] for k in kept], rows)


def _from_scores(found: Columns, title: str) -> Columns:
    """Turn scores of at most 1, or percentages, into errors."""
    samples, scores, names, notes = found
    top = 1.0 if max(scores) <= 1 else 100.0
    if max(scores) > top:
        raise InvalidData(
            f"column {title!r} holds {max(scores):g}; allowed: scores of at most 1, or percentages. "
            "Give errors in a column named error."
        )
    note = f"Errors are {top:g} minus the column {title!r}" + (", in percent." if top > 1 else ".")
    return samples, [top - score for score in scores], names, (*notes, note)


def _of_spreads(table: TextTable, n: int, e: int, s: int, c: int | None) -> Columns:
    """Return errors with the given mean and standard deviation, or standard error of the mean."""
    of_mean = table.header[s].lower() in ("sem", "se", "stderr", "std_error")
    if c is None and not of_mean:
        raise InvalidData(
            f"{table.name}: the standard deviation {table.header[s]!r} is that of an unknown number of "
            f"runs; needed: a column named {' or '.join(COUNTS[:3])}, or the standard error in a column "
            "named se."
        )
    samples, errors = [], []
    for line, row in table.rows:
        size = _value(table, line, n, row[n], size=True)
        mean, spread = (_value(table, line, k, row[k], size=False) for k in (e, s))
        runs = 2 if c is None else round(_value(table, line, c, row[c], size=True))
        if runs < 2:
            samples.append(size)
            errors.append(mean)
            continue
        # Runs in pairs m - a, m + a; the last of an odd number is m. Their variance is 2 a² p / (R - 1)
        # for p pairs; that of the mean is 1 / R of it.
        pairs = runs // 2
        variance = spread**2 * (runs if of_mean else 1)
        away = math.sqrt(variance * (runs - 1) / (2 * pairs))
        signs = [-1.0, 1.0] * pairs + [0.0] * (runs % 2)
        samples += [size] * runs
        errors += [max(mean + sign * away, 0.0) for sign in signs]
    note = f"The noise is that of the column {table.header[s]!r}; runs are taken as independent."
    return samples, errors, None, (note,)


def _read_table(path: str | PathLike[str]) -> TextTable:
    name = fspath(check_path(path))
    most = 50_000_000  # largest number of characters; a longer file is not a learning curve
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read(most + 1)
    except FileNotFoundError:
        raise InvalidData(f"{name}: no such file; allowed: a text file with a header.") from None
    except UnicodeDecodeError as error:
        raise InvalidData(
            f"{name}: byte {error.start} is not UTF-8 text; allowed: CSV. Export the table as CSV."
        ) from None
    except OSError as error:
        raise InvalidData(f"{name}: cannot be read: {error.strerror}.") from None
    if len(text) > most:
        raise InvalidData(
            f"{name}: longer than {most} characters; allowed: a learning curve. Give another file."
        )
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
                f"{name}, line {number}: {len(row)} cells, but the header has {len(header[1])}; "
                "allowed: equal numbers. Write decimal points, not commas."
            )
    _check_header(name, header[1])
    return TextTable(name, header[1], body)


def _cells(name: str, lines: list[str]) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty, with their line numbers, split at the header's delimiter."""
    first = next((line for line in lines if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    try:
        return [
            (number, [cell.strip() for cell in row])
            for number, row in enumerate(csv.reader(lines, delimiter=delimiter), start=1)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise InvalidData(f"{name}: not CSV: {error}. Export the table as CSV.") from None


def _check_header(name: str, header: list[str]) -> None:
    for k, title in enumerate(header):
        if not title:
            raise InvalidData(f"{name}: column {k + 1} has no name; allowed: a name per column.")
    counts = Counter(title.lower() for title in header)
    twice = next((title for title, count in counts.items() if count > 1), None)
    if twice is not None:
        raise InvalidData(
            f"{name}: two columns are named {twice!r}; allowed: distinct names. Rename one."
        )


def _column(
    table: TextTable, lowered: list[str], asked: str | None, known: tuple[str, ...], what: str
) -> int | None:
    """Return the index of a column by its given or usual name; None if there is no such column."""
    if asked is not None:
        if asked.lower() not in lowered:
            raise InvalidData(
                f"{table.name}: no column {quoted(asked)}; allowed: {quoted_names(table.header, 8)}."
            )
        return lowered.index(asked.lower())
    places = [k for k, name in enumerate(lowered) if name in known]
    if len(places) > 1:
        raise InvalidData(
            f"{table.name}: {quoted_names([table.header[k] for k in places], 8)} could each be the "
            f"column of {what}; allowed: one such column. Rename or remove the others, or give its name."
        )
    return places[0] if places else None


def _all_sizes(lowered: list[str]) -> bool:
    """Return True if a header consists of sample sizes, apart from a first column of replicates."""
    titles = lowered[1:] if lowered[0] in REPLICATES else lowered
    return bool(titles) and all(_number(title) is not None for title in titles)


def _number(text: str) -> float | None:
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):  # separators of thousands
        text = text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number, but tables contain no such numbers.
    return None if "_" in text else value


def _value(table: TextTable, line: int, column: int, text: str, *, size: bool) -> float:
    where = f"{table.name}, line {line}, column {table.header[column]!r}"
    value = _number(text)
    what = "a sample size above 0" if size else "an error of at least 0"
    if value is None:
        seen = f"{text[:40]!r} is not a number" if text else "the cell is empty"
        hint = " Write a decimal point, not a comma." if "," in text else ""
        raise InvalidData(f"{where}: {seen}; allowed: {what}.{hint}")
    if not math.isfinite(value) or value < 0 or (size and value == 0):
        raise InvalidData(f"{where}: {text!r}; allowed: {what}. Correct or remove the row.")
    return value


def _long(table: TextTable, n: int, e: int, r: int | None) -> Columns:
    samples = [_value(table, line, n, row[n], size=True) for line, row in table.rows]
    errors = [_value(table, line, e, row[e], size=False) for line, row in table.rows]
    names = None if r is None else tuple(row[r] for _, row in table.rows)
    return samples, errors, names, ()


def _wide_by_replicate(table: TextTable, n: int, columns: list[int]) -> Columns:
    samples, errors, names = [], [], []
    for line, row in table.rows:
        size = _value(table, line, n, row[n], size=True)
        for k in columns:
            # The cell of a replicate is empty at sizes at which the replicate was not run.
            if row[k]:
                samples.append(size)
                errors.append(_value(table, line, k, row[k], size=False))
                names.append(table.header[k])
    return _checked(table, samples, errors, names)


def _wide_by_size(table: TextTable, lowered: list[str]) -> Columns:
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
    table: TextTable, samples: list[float], errors: list[float], names: list[str]
) -> Columns:
    if not errors:
        raise InvalidData(f"{table.name}: no errors below the header; allowed: at least one.")
    return samples, errors, tuple(names), ()
