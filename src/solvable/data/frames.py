"""Read data frames of pandas, polars and Arrow, and pairs (X, y), into the table that files give."""

from __future__ import annotations

import datetime as dates
import numbers
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from solvable.data.cells import parse_cells
from solvable.data.raw_data import (
    RawData,
    TablePart,
    array_parts,
    choose_target,
    stretches,
    text_column,
)
from solvable.data.table import Table, from_columns, number_text, refuse_duplicates
from solvable.errors import InvalidData, InvalidParameter

ALLOWED = "a data frame of pandas, polars or Arrow, arrays X and y, or the path of a file or folder"
"""Data in memory or on disk that can be read."""


def read_object(
    data: Any, y: Any = None, target: str | None = None, *, required: bool = True
) -> RawData:
    """Read a data frame, or inputs X with labels y; `target` names the labels."""
    target = None if target is None else str(target)  # names of pandas may be numbers
    data, y = _without_masked(data), _without_masked(y)
    named = _named_columns(data)
    if named is None:
        return _read_arrays(data, y, target, required)
    table, notes = _table(named)
    if table.n_rows == 0:
        raise InvalidData(
            f"the data frame has {len(named)} columns and no rows; allowed: at least one row. Check the "
            "selection of the rows."
        )
    if y is None:
        chosen, more = choose_target(table.order, target, required=required, where="the data frame")
        if not chosen:
            return RawData(stretches(TablePart(table)), "", None, tuple(notes))
        part = TablePart(table.without(chosen), table.column(chosen))
        return RawData(stretches(part), chosen, None, (*notes, *more))
    _refuse_permuted(data, y)
    name, values, note = _labels(y, target, table.n_rows)
    if name in table:
        raise InvalidData(
            f"y is named {name!r}, and X has a column of this name; allowed: another name. Remove the "
            "column from X, or name y with target=."
        )
    return RawData(stretches(TablePart(table, values)), name, None, (*notes, *note))


def _without_masked(values: Any) -> Any:
    """Return a masked array with NaN for the masked entries; other data as they are."""
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.kind not in "fiub":
        return values
    return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))


def _named_columns(data: Any) -> list[tuple[str, Any]] | None:
    """Return the names and columns of a data frame; None if the data are no data frame."""
    import narwhals.stable.v2 as nw

    # Labels may be numbers or tuples in pandas; a repeated one is reported before narwhals meets it.
    if hasattr(data, "collect") or hasattr(data, "compute"):
        raise InvalidParameter(
            f"data is a {_kind(data)}, whose rows are not computed yet; allowed: {ALLOWED}. Compute the "
            "rows first, with .collect() in polars or .compute() in dask."
        )
    labels = getattr(data, "column_names", getattr(data, "columns", None))
    if isinstance(data, (str, bytes)) or labels is None or callable(labels):
        return None
    try:
        frame = nw.from_native(data, eager_only=True)
    except Exception as error:
        # narwhals, pandas and polars have an error class each for repeated names.
        names = [str(label) for label in labels]
        refuse_duplicates(names)
        raise InvalidParameter(_unreadable(data, error)) from error
    # An empty name gets the name that it would get in a CSV file.
    names = [str(label).strip() or f"unnamed {place}" for place, label in enumerate(labels)]
    refuse_duplicates(names)
    return list(zip(names, frame.iter_columns(), strict=True))


def _unreadable(data: Any, error: Exception) -> str:
    return f"data is a {type(data).__name__}, which cannot be read ({error}); allowed: {ALLOWED}."


def _table(columns: Sequence[tuple[str, Any]]) -> tuple[Table, list[str]]:
    """Convert columns of a data frame to a table, with sentences about unusual ones."""
    converted: dict[str, np.ndarray] = {}
    notes = []
    for name, series in columns:
        values, note = _of_series(name, series)
        notes += note
        if values is not None:
            converted[name] = values
    return from_columns(converted), notes


def _of_series(name: str, series: Any) -> tuple[np.ndarray | None, list[str]]:
    """Convert a column by its dtype to numbers or texts; None if its values are neither."""
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype == nw.Boolean or dtype.is_numeric():
        return _numbers(series), []
    if dtype in (nw.Datetime, nw.Date):
        if getattr(dtype, "time_zone", None):
            series = series.dt.replace_time_zone(None)  # keeps the clock time
        return _written_dates(series.to_numpy()), []
    if dtype == nw.Duration:
        seconds = _numbers(series.dt.total_milliseconds()) / 1000
        return seconds, [f"column {name!r}: durations, read as seconds"]
    if dtype in (nw.Categorical, nw.Enum):
        # Categories stay categories, also if they are numbers.
        values = [None if _is_missing(value) else value for value in series.to_list()]
        texts = [None if value is None else _text(value) or str(value) for value in values]
        return text_column(texts), []
    if dtype in (nw.String, nw.Object, nw.Unknown, nw.Time):
        return _of_objects(name, series.to_list())
    return None, [f"dropped column {name!r}: it holds values of type {dtype}"]


def _numbers(series: Any) -> np.ndarray:
    """Return float32 for float32, and float64 for other numbers; NaN if missing."""
    values = np.asarray(series.to_numpy())
    if values.dtype.kind not in "fiub":
        values = np.array(
            [np.nan if _is_missing(value) else float(value) for value in series.to_list()]
        )
    return values if values.dtype == np.float32 else values.astype(np.float64)


def _written_dates(values: np.ndarray) -> np.ndarray:
    """Write dates in ISO form, as in files, without the time if it is always midnight."""
    moments = values.astype("datetime64[s]")
    days = moments.astype("datetime64[D]")
    known = ~np.isnat(moments)
    if (days[known] == moments[known]).all():
        moments = days
    texts = np.datetime_as_string(moments).astype(object)
    texts[~known] = None
    return np.asarray(texts)


def _of_objects(name: str, values: Sequence[Any]) -> tuple[np.ndarray | None, list[str]]:
    """Convert Python objects as if they were written to a CSV file and read again."""
    for value in values:
        if not _is_missing(value) and _text(value) is None:
            return None, [f"dropped column {name!r}: it holds values of type {_kind(value)}"]
    cells = [_text(value) or "" for value in values]
    # Each distinct text is parsed once.
    codes: dict[str, int] = {}
    places = np.fromiter((codes.setdefault(cell, len(codes)) for cell in cells), int, len(cells))
    parsed, note, _ = parse_cells(list(codes), counts=np.bincount(places, minlength=len(codes)))
    if parsed.dtype != object and any(isinstance(value, str) for value in values):
        note = note or (
            "texts that are numbers were read as numbers; a categorical dtype keeps them as categories"
        )
    return parsed[places], [f"column {name!r}: {note}"] if note else []


def _text(value: Any) -> str | None:
    """Write a value as a CSV file would contain it; None if it is missing or no single value."""
    if isinstance(value, str):
        return value
    if _is_missing(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer, Decimal)):
        return str(value)
    if isinstance(value, numbers.Real):
        return number_text(float(value)) if np.isfinite(float(value)) else str(float(value))
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[s]"))
    if isinstance(value, dates.datetime):
        return value.replace(tzinfo=None, microsecond=0).isoformat()
    return value.isoformat() if isinstance(value, (dates.date, dates.time)) else None


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating, Decimal)) and bool(value != value)


def _kind(value: Any) -> str:
    return type(value).__name__


def _read_arrays(data: Any, y: Any, target: str | None, required: bool) -> RawData:
    """Read inputs X, shape (n, d) or images, and labels y."""
    if hasattr(data, "toarray"):
        raise InvalidParameter(
            f"X is a sparse {_kind(data)}; allowed: {ALLOWED}. Use X.toarray() if it fits into memory."
        )
    if isinstance(data, (str, bytes, dict)) or (y is None and required):
        what = "X without y" if isinstance(data, (list, np.ndarray)) else f"a {_kind(data)}"
        raise InvalidParameter(f"data is {what}; allowed: {ALLOWED}.")
    try:
        X = np.asarray(data)
    except (ValueError, TypeError) as error:  # rows of different length
        raise InvalidParameter(_unreadable(data, error)) from error
    if X.dtype == object and X.ndim == 2 and X.size:
        table, notes = _of_matrix(X)
        labels = _labels(y, target, len(X)) if y is not None else ("", None, [])
        part = TablePart(table, labels[1])
        return RawData(stretches(part), labels[0], None, (*notes, *labels[2]))
    parts, image_shape = array_parts(X, None, where="the data")
    whole = RawData(parts, "").whole
    assert whole is not None
    if y is None:
        return RawData(parts, "", image_shape)
    name, values, note = _labels(y, target, len(X))
    part = TablePart(whole.read()[0], values)
    return RawData(stretches(part), name, image_shape, tuple(note))


def _of_matrix(X: np.ndarray) -> tuple[Table, list[str]]:
    """Convert a matrix of Python objects, column by column."""
    columns: dict[str, np.ndarray] = {}
    notes = []
    for place, values in enumerate(X.T):
        column, note = _of_objects(f"x{place}", values.tolist())
        notes += note
        if column is not None:
            columns[f"x{place}"] = column
    return from_columns(columns), notes


def _labels(y: Any, target: str | None, rows: int) -> tuple[str, np.ndarray, list[str]]:
    """Return the name of the labels, the labels as numbers or texts, and sentences about them."""
    label: Any
    columns = _named_columns(y)
    if columns is not None:
        if len(columns) != 1:
            raise InvalidData(f"y has {len(columns)} columns; allowed: one value per row.")
        ((label, series),) = columns
    else:
        label, series = getattr(y, "name", None), _as_series(y)
    name = target or ("y" if label in (None, "") else str(label))
    values: np.ndarray | None
    if series is not None:
        values, notes = _of_series(name, series)
    else:
        try:
            array = np.asarray(y)
        except ValueError as error:
            raise InvalidParameter(
                f"y cannot be read ({error}); allowed: one value per row."
            ) from error
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InvalidData(
                f"y has shape {array.shape}, and X has {rows} rows; allowed: one value per row, shape "
                f"({rows},)."
            )
        numeric = array.dtype.kind in "fiub"
        notes = []
        if numeric:
            values = array.astype(np.float64)
        elif array.dtype.kind == "M":
            values = _written_dates(array)
        else:
            values, notes = _of_objects(name, array.tolist())
    if values is None:
        raise InvalidData(
            f"target {name!r} holds no numbers or texts; allowed: numbers or text. Convert it."
        )
    if len(values) != rows:
        raise InvalidData(
            f"y has {len(values)} values, and X has {rows} rows; allowed: one value per row."
        )
    return name, values, notes


def _as_series(y: Any) -> Any:
    """Return a column of pandas, polars or Arrow; None for other labels."""
    if isinstance(y, (np.ndarray, list, tuple)):
        return None
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(y, series_only=True)
    except TypeError:
        return None


def _refuse_permuted(X: Any, y: Any) -> None:
    """Raise :class:`InvalidData` if the rows of X and y have the same labels in another order."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(getattr(y, "index", None), pandas.Index):
        return
    index = getattr(X, "index", None)
    if not isinstance(index, pandas.Index) or len(index) != len(y.index) or index.equals(y.index):
        return
    if index.is_unique and y.index.is_unique and not len(index.symmetric_difference(y.index)):
        raise InvalidData(
            "the rows of X and y have the same index in another order; allowed: equal order. Use "
            "y.loc[X.index], or reset the index of both."
        )
