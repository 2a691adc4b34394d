"""Learning curve (measured error against sample size) with replicates, from arrays or a text file."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import to_numpy
from solvable.errors import InvalidData, quoted
from solvable.paths import check_path
from solvable.plots.words import quoted_names


@dataclass(frozen=True, eq=False)
class LearningCurve:
    r"""Errors :math:`e_j` measured with :math:`n_j` samples; a size may have any number of replicates.

    Parameters
    ----------
    samples : array of shape (m,)
        Sample sizes :math:`n_j`, above 0; a size that occurs several times has replicates.
    errors : array of shape (m,)
        Errors :math:`e_j\ge0`: error rates, mean squared errors, or errors that fall to an offset of
        at least 0.
    replicates : sequence of shape (m,), optional
        Replicate to which each error belongs, such as a seed. Errors of one replicate at different
        sizes may be correlated (the same test rows, the same teacher). With names this correlation
        is estimated and included; without names errors count as independent.
    shared : float
        Correlation of two replicates at n samples, divided by n, due to shared training rows; the
        correlation is at most 0.9. For k folds of cross-validation with n_k training rows it is
        1 / (k n_k) (Nadeau and Bengio, Mach. Learn. 52 (2003)); for independent samples it is 0.
    tested : float, optional
        Number of test rows behind the mean at each size, if errors are shares of wrong predictions.
        Their sampling noise is then included, also for an error of 0.
    fixed_epochs : bool
        True if every model was trained for the same number of epochs, so that more samples mean more
        training steps. Such a curve may steepen beyond the data; the lower ends of a forecast then
        allow for this.

    Raises
    ------
    InvalidData
        If shapes disagree, values are not finite or negative, or a replicate has two errors at the
        same size.

    Examples
    --------
    >>> curve = LearningCurve([100, 100, 200, 200], [0.31, 0.29, 0.21, 0.19])
    >>> curve.sizes, curve.means
    (array([100., 200.]), array([0.3, 0.2]))
    """

    samples: np.ndarray
    errors: np.ndarray
    replicates: tuple[str, ...] | None = None
    shared: float = 0.0
    tested: float | None = None
    fixed_epochs: bool = False

    def __post_init__(self) -> None:
        samples, errors = (_vector(name, getattr(self, name)) for name in ("samples", "errors"))
        if samples.shape != errors.shape or samples.size == 0:
            raise InvalidData(
                f"samples have shape {samples.shape} and errors {errors.shape}; allowed: (m,) for "
                "both, m at least 1. Give one sample size per error."
            )
        _check(samples > 0, "samples", samples, "above 0")
        _check(errors >= 0, "errors", errors, "at least 0 (an error, not a score or an accuracy)")
        # Squares and ratios of numbers outside the allowed range overflow.
        inside = (samples >= 1 / LARGEST) & (samples <= LARGEST)
        _check(inside, "samples", samples, f"{1 / LARGEST:g} to {LARGEST:g}, in another unit")
        inside = (errors == 0) | ((errors >= 1 / LARGEST) & (errors <= LARGEST))
        _check(inside, "errors", errors, f"0, or {1 / LARGEST:g} to {LARGEST:g}, in another unit")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "errors", errors)
        if not 0 <= self.shared < math.inf:
            raise InvalidData(f"shared is {self.shared}; allowed: finite numbers of at least 0.")
        if self.tested is not None and not (1 <= self.tested < math.inf and (errors <= 1).all()):
            raise InvalidData(
                f"tested is {self.tested} and the largest error is {errors.max():g}; allowed: at least 1 "
                "test row, and errors of at most 1 (shares of wrong predictions)."
            )
        if self.replicates is not None:
            object.__setattr__(self, "replicates", self._named_replicates())

    def _named_replicates(self) -> tuple[str, ...]:
        names = tuple(str(name) for name in self.replicates or ())
        if len(names) != self.samples.size:
            raise InvalidData(
                f"replicates has {len(names)} entries for {self.samples.size} errors; allowed: one "
                "name per error."
            )
        seen = set()
        for name, size in zip(names, self.samples.tolist(), strict=True):
            if (name, size) in seen:
                raise InvalidData(
                    f"replicate {name!r} has two errors at n = {size:g}; allowed: one. Give "
                    "repeated measurements different names, or give no names."
                )
            seen.add((name, size))
        return names

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        samples: str | None = None,
        error: str | None = None,
        replicate: str | None = None,
    ) -> LearningCurve:
        """Read a curve from a text file with a header line.

        A long file has columns ``n`` (or ``samples``), ``error`` and optionally ``replicate`` (or
        ``seed``). A wide file has a column ``n`` and one column per replicate, or one column per sample
        size, with the sizes in the header, and one row per replicate. Cells are separated by commas,
        semicolons or tabs.

        Parameters
        ----------
        path : str or path
            Path of the text file, in UTF-8.
        samples, error, replicate : str, optional
            Column names in a long file, needed if the names are unusual or there are other columns.

        Returns
        -------
        LearningCurve
            Curve, with names of the replicates if the file has them.

        Raises
        ------
        InvalidData
            If the file cannot be read as a curve; the message names the line and the column.
        """
        table = _read_table(path)
        measured, errors, names = _columns(table, samples, error, replicate)
        return cls(np.array(measured), np.array(errors), names)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Distinct sample sizes in increasing order, shape (k,)."""
        return np.unique(self.samples)

    @cached_property
    def _place(self) -> np.ndarray:
        return np.searchsorted(self.sizes, self.samples)

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of replicates at each size, shape (k,)."""
        return np.bincount(self._place, minlength=self.sizes.size)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean error at each size, shape (k,)."""
        return np.asarray(np.bincount(self._place, self.errors) / self.counts)

    @cached_property
    def expected(self) -> np.ndarray:
        """Error that the fits use at each size, shape (k,): the mean, or a rate's posterior mean."""
        # k wrong predictions among m rows give (k + 1) / (m + 2), the posterior mean of a uniform prior.
        m = self.tested
        return self.means if m is None else (self.means * m + 1) / (m + 2)

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance between replicates at each size, shape (k,); NaN for a single replicate."""
        squares = np.bincount(self._place, (self.errors - self.means[self._place]) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.counts > 1, squares / (self.counts - 1), np.nan)

    def up_to(self, n_sizes: int) -> LearningCurve:
        """Return the curve of the ``n_sizes`` smallest sizes."""
        kept = self._place < n_sizes
        names = self.replicates
        if names is not None:
            names = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
        return replace(self, samples=self.samples[kept], errors=self.errors[kept], replicates=names)


def _vector(name: str, values: Any) -> np.ndarray:
    try:
        array = np.array(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidData(
            f"{name} cannot be read as numbers; allowed: a list of numbers."
        ) from error
    if array.ndim != 1:
        raise InvalidData(f"{name} has shape {array.shape}; allowed: (m,).")
    _check(np.isfinite(array), name, array, "finite")
    array.setflags(write=False)
    return array


def _check(good: np.ndarray, name: str, values: np.ndarray, allowed: str) -> None:
    if not good.all():
        first = int(np.argmin(good))
        raise InvalidData(
            f"{name} holds {values[first]:g} at place {first + 1} of {values.size}; allowed: "
            f"{allowed}. Correct or remove it."
        )


LARGEST = 1e30  # largest allowed sample size and error; the smallest allowed value is the inverse

# Sample sizes, errors and, if the file has them, names of replicates: one entry per error.
Columns = tuple[list[float], list[float], tuple[str, ...] | None]

# Usual names of the columns of a file, in lower case
SAMPLES = ("n", "samples", "n_samples", "sample_size", "size", "n_train", "train_size")
ERRORS = (
    "error", "errors", "test_error", "error_rate", "mse", "nmse", "normalised_mse", "loss",
    "test_loss", "rmse", "value",
)  # fmt: skip
REPLICATES = ("replicate", "rep", "seed", "run", "fold", "trial", "repeat", "repetition")


class _Table(NamedTuple):
    """Text table with a header, and rows with their line numbers."""

    name: str
    header: list[str]
    rows: list[tuple[int, list[str]]]


def _columns(
    table: _Table, samples: str | None, error: str | None, replicate: str | None
) -> Columns:
    """Return the columns of a long or a wide file."""
    lowered = [name.lower() for name in table.header]
    if samples is None and error is None and _all_sizes(lowered):
        return _wide_by_size(table, lowered)
    n = _column(table, lowered, samples, SAMPLES, "samples")
    if n is None:
        raise InvalidData(
            f"{table.name}: no column of sample sizes among {quoted_names(table.header, 8)}; needed: a "
            f"column named {' or '.join(SAMPLES[:3])}, or sample sizes as the header. Rename the "
            "column, or give its name with samples=."
        )
    e = _column(table, lowered, error, ERRORS, "error")
    r = _column(table, lowered, replicate, REPLICATES, "replicate")
    others = [k for k in range(len(lowered)) if k not in (n, e, r)]
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
            "replicate. Remove them, or give the name of the column of errors with error=."
        )
    return _long(table, n, e, r)


def _read_table(path: str | PathLike[str]) -> _Table:
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
    return _Table(name, header[1], body)


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
    lowered = [title.lower() for title in header]
    twice = next((title for title in lowered if lowered.count(title) > 1), None)
    if twice is not None:
        raise InvalidData(
            f"{name}: two columns are named {twice!r}; allowed: distinct names. Rename one."
        )


def _column(
    table: _Table, lowered: list[str], asked: str | None, known: tuple[str, ...], what: str
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
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number, but tables contain no such numbers.
    return None if "_" in text else value


def _value(table: _Table, line: int, column: int, text: str, *, size: bool) -> float:
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


def _long(table: _Table, n: int, e: int, r: int | None) -> Columns:
    samples = [_value(table, line, n, row[n], size=True) for line, row in table.rows]
    errors = [_value(table, line, e, row[e], size=False) for line, row in table.rows]
    names = None if r is None else tuple(row[r] for _, row in table.rows)
    return samples, errors, names


def _wide_by_replicate(table: _Table, n: int, columns: list[int]) -> Columns:
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


def _wide_by_size(table: _Table, lowered: list[str]) -> Columns:
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


def _checked(table: _Table, samples: list[float], errors: list[float], names: list[str]) -> Columns:
    if not errors:
        raise InvalidData(f"{table.name}: no errors below the header; allowed: at least one.")
    return samples, errors, tuple(names)
