"""Load a data set for learning, and new data for a fitted model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.copies import first_equal_rows
from solvable.data.encoders import EITHER, FORMS, form_of, parse_dates
from solvable.data.frames import read_object
from solvable.data.image_files import Colour, ImageForm, is_image
from solvable.data.preparation import Preparation
from solvable.data.raw_data import RawData
from solvable.data.readers import join, read_raw
from solvable.data.reading import Reading
from solvable.data.table import Table, as_text, missing_mask, unknown_column, with_limits
from solvable.data.target import Kind, Task, fit_target, refuse_tiny_target
from solvable.data.target_means import Means
from solvable.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and target of a learning problem, with sentences about their preparation."""

    # inputs in float64, or in float32 if the file is; memory-mapped if the file is memory-mapped and
    # preparation changes no value
    X: np.ndarray
    y: np.ndarray  # target: float64 in regression, otherwise int64 positions in class_labels
    kind: Kind
    class_labels: tuple[str, ...]
    columns: tuple[str, ...]  # names of the columns of X
    target: str
    image_shape: tuple[int, ...] | None  # height, width (and channels) if each row is an image
    name: str
    treatments: tuple[str, ...]  # sentences about the preparation, without full stop
    # Fitted on all rows, which fixes the columns. `split` fits the medians again on the training rows,
    # because otherwise the test error would be biased.
    preparation: Preparation
    table: Table  # inputs before preparation; rows without target are left out
    file_rows: np.ndarray | None = None  # position of each row in the file, from 0
    groups: np.ndarray | None = None  # code of each row's group (person, device or day)
    times: np.ndarray | None = None  # rank of each row's time
    row_names: np.ndarray | None = None  # file name of each row, if each row is one file
    aside: Table | None = None  # columns of groups and times, unchanged from the file

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.y)

    def row_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the file's row numbers, from 1, for the given rows of the data set."""
        places = rows if self.file_rows is None else self.file_rows[rows]
        return np.asarray(places) + 1

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return len(self.columns)

    def identical_rows(self) -> np.ndarray:
        """Return, for each row, the first row equal to it in all columns of the file, target included."""
        # Unused columns and the columns of groups and times are compared too. Missing values are equal.
        # Parquet columns that contain lists are not compared.
        tables = [self.table] if self.aside is None else [self.table, self.aside]
        return first_equal_rows(tables, self.y)

    @property
    def as_new(self) -> np.ndarray:
        """Inputs as they would be prepared for new rows."""
        means = any(isinstance(one, Means) for one in self.preparation.encoders)
        return self.preparation.transform(self.table) if means else self.X

    def split(self, train: np.ndarray, test: np.ndarray) -> Split:
        """Prepare training and test rows, given by position or mask, with the training rows' medians."""
        rows = self.table.rows(train)
        preparation = self.preparation.refit(rows, self.y[train])
        return Split(
            preparation.transform(rows, y=self.y[train]),
            self.y[train],
            preparation.transform(self.table.rows(test)),
            self.y[test],
            preparation,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Prepared training rows and test rows of a data set."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    preparation: Preparation  # preparation whose medians were fitted on the training rows


@dataclass(frozen=True, eq=False)
class NewData:
    """Prepared rows to predict, with their target if it is known."""

    X: np.ndarray
    # Target encoded as in training (NaN or -1 if missing, -1 for an unknown class), or None
    y: np.ndarray | None
    labelled: np.ndarray  # mask of the rows whose target is known
    treatments: tuple[str, ...]  # sentences about the preparation, without full stop
    row_names: np.ndarray | None = None  # file name of each row, if each row is one file


def load(
    data: Any,
    y: Any = None,
    /,
    *,
    target: str | None = None,
    task: Task = "auto",
    keep: Sequence[str] = (),
    missing: Sequence[str] = (),
    numbers: Sequence[str] = (),
    categories: Sequence[str] = (),
    exclude: Sequence[str] = (),
    groups: str | None = None,
    time: str | None = None,
    image_size: int | Sequence[int] | str | None = None,
    colour: Colour = "auto",
) -> Dataset:
    """Load a data set for learning: by name, from a file or folder, a data frame, or a pair X, y.

    Parameters
    ----------
    data : str, Path, data frame or array
        One of :data:`~solvable.data.named.DATASETS`; or a CSV, NPZ, NPY or Parquet file; or a folder of
        array files, of Parquet files or of class folders with images (NPY, PNG, JPEG); or a data frame
        of pandas, polars or Arrow; or inputs X, shape (n, d) or images. A path with the name of a data
        set is written ``./digits``.
    y : array or column, optional
        Labels of the rows of X, shape (n,).
    target : str, optional
        Column to predict, or name of the labels y. May be left out for a data set with a name, for
        arrays X and y, and if one column is called y, target, label, labels or class.
    task : {"auto", "classification", "regression", "binary"}
        Kind of the target. "auto" chooses classes if the values are text, or take two values, or are
        few whole numbers (at most 20, with five rows each on average), and a number otherwise.
    keep : sequence of str
        Columns to keep although they look like identifiers.
    missing : sequence of str
        Further texts or numbers that denote a missing value, in every column.
    numbers : sequence of str
        Columns of numbers, whose words count as missing.
    categories : sequence of str
        Columns whose numbers are names of categories.
    exclude : sequence of str
        Columns that are not used.
    groups : str, optional
        Column that names the group of each row, such as a person, device or day. The column is not an
        input. A row without a value is a separate group.
    time : str, optional
        Column of numbers or dates (as 2026-11-22) that orders the rows in time. It is not an input.
    image_size : int, (int, int) or str, optional
        Height and width to which PNG and JPEG images are resized; by default all must be of one size.
    colour : {"auto", "grey", "rgb"}
        Colours of PNG and JPEG images; "auto" is grey unless a pixel has colour.

    Returns
    -------
    Dataset
        Inputs, target and sentences about their preparation.

    Raises
    ------
    InvalidParameter
        If the name is unknown, the path does not exist, or a package is not installed.
    InvalidData
        If the data are unusable; the message states the remedy.

    Notes
    -----
    Constant columns and identifiers are dropped. Missing values are replaced by medians. Rows without
    target are dropped, as is the only row of a class. Text becomes columns of 0 and 1, or is dropped
    if it takes many values. Each of these is reported in ``treatments``.

    Examples
    --------
    >>> digits = load("digits:even-odd")
    >>> digits.X.shape, digits.kind, digits.class_labels, digits.image_shape
    ((1797, 64), 'binary', ('even', 'odd'), (8, 8))
    >>> load("digit")
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: data set is 'digit'; allowed: ... Did you mean 'digits'? ...
    """
    form = ImageForm.asked(image_size, colour)
    name, raw = _read(data, y, target, form)
    if form != ImageForm() and not all(is_image(name) for name in raw.row_names or [""]):
        raise InvalidParameter(
            f"an image size or colour is given, but {name} holds no PNG or JPEG files; "
            "allowed: these options for folders of such files. Leave them out."
        )
    table, values = join(raw)
    assert values is not None
    reading = Reading(*(tuple(map(str, one)) for one in (missing, numbers, categories, exclude)))
    reading.check([*table.order, raw.target])
    table, stated = reading.applied(table)
    values = reading.values(values)
    used = ~missing_mask(values)
    treatments = [*raw.notes, *stated]
    if not used.all():
        n_missing = int(np.count_nonzero(~used))
        words = " (an empty cell, NA, N/A, NaN, null, None or ?, which are no classes)"
        treatments.append(
            f"dropped {n_missing} of {len(values)} rows: target {raw.target!r} missing"
            + words * (values.dtype == object)
        )
    fitted, notes = fit_target(raw.target, values[used], task)
    y = fitted.encode(values[used])
    if fitted.kind == "regression":
        refuse_tiny_target(fitted.name, y)
    else:  # A class's only row has code -1 and is dropped.
        used[used] = y >= 0
        y = y[y >= 0]
    file_rows = np.flatnonzero(used)
    table = table if used.all() else table.rows(used)
    table, aside, group_of, time_of = _set_aside(table, groups, time, raw.target)
    preparation = Preparation.fit(table, keep=keep, target=fitted, image_shape=raw.image_shape, y=y)
    treatments += [*notes, *preparation.treatments]
    treatments = [*correlated(table, preparation.dropped, y, fitted.kind), *treatments]
    return Dataset(
        X=preparation.transform(table, y=y),
        y=y,
        kind=fitted.kind,
        class_labels=fitted.classes,
        columns=preparation.columns,
        target=raw.target,
        image_shape=raw.image_shape,
        name=name,
        treatments=tuple(treatments),
        preparation=replace(preparation, treatments=tuple(treatments), reading=reading),
        table=table,
        file_rows=file_rows,
        groups=group_of,
        times=time_of,
        row_names=np.array(raw.row_names)[file_rows] if raw.row_names else None,
        aside=aside,
    )


def correlated(
    table: Table, dropped: Sequence[tuple[str, str]], y: np.ndarray, kind: Kind
) -> list[str]:
    """Warn of dropped columns of numbers or dates whose ranks are correlated with the target."""
    sentences = []
    targets = [y] if kind == "regression" else [y == one for one in np.unique(y)]
    for name, reason in dropped:
        column = table.column(name)
        if column.dtype == object:
            if reason != EITHER:
                continue
            moments = parse_dates(column, "day/month/year")
            column = np.where(np.isnat(moments), np.nan, moments.astype(np.float64))
        present = ~missing_mask(column)
        values = column[present]
        if present.sum() < 20 or values.min() == values.max():
            continue
        pairs = [(_ranks(values), _ranks(one[present])) for one in targets]
        largest = max(
            (abs(float(np.corrcoef(x, one)[0, 1])) for x, one in pairs if one.min() < one.max()),
            default=0.0,
        )
        # Ranks of independent columns have a correlation of 1 / sqrt(n).
        if largest > max(4 / present.sum() ** 0.5, 0.1):
            sentences.append(
                f"column {name!r} is dropped ({reason}) although it is correlated with the target "
                f"({largest:.2f}): if new rows have it, keep it with --keep, or write it as numbers"
            )
    return sentences


def _ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values))


def _read(data: Any, y: Any, target: str | None, form: ImageForm) -> tuple[str, RawData]:
    """Return the name of the data, and their columns before preparation."""
    if not isinstance(data, (str, Path)):
        return "data frame" if y is None else "X, y", read_object(data, y, target)
    if y is not None:
        raise InvalidParameter(
            f"y is given with {str(data)!r}, a file or data set; allowed: labels y of a data frame or "
            "array X. Name the column of the file with target=."
        )
    return str(data), read_raw(data, target, form=form)


def _set_aside(
    table: Table, groups: str | None, time: str | None, target: str
) -> tuple[Table, Table | None, np.ndarray | None, np.ndarray | None]:
    """Return the inputs without the group and time columns, these columns, and their codes."""
    found: list[np.ndarray | None] = [None, None]
    for place, name in enumerate((groups, time)):
        if name is None:
            continue
        if name not in table or name == target:
            raise InvalidData(unknown_column(("groups", "time")[place], name, table.order))
        column = table.column(name)
        missing = missing_mask(column)
        if place == 1 and missing.any():
            raise InvalidData(
                f"time {name!r} is missing in {np.count_nonzero(missing)} of {len(column)} rows; "
                "allowed: a value in every row. Remove the rows without time."
            )
        values: np.ndarray = column
        if column.dtype == object:
            values = np.array(["" if cell is None else cell for cell in as_text(column)])
            values = _moments(name, values) if place == 1 else values
        codes = np.unique(values, return_inverse=True)[1]
        codes[missing] = codes.max(initial=0) + 1 + np.arange(np.count_nonzero(missing))
        found[place] = codes
    names = list(dict.fromkeys(name for name in (groups, time) if name is not None))
    aside = table.select(names) if names else None
    for name in names:
        table = table.without(name)
    return table, aside, found[0], found[1]


def _moments(name: str, texts: np.ndarray) -> np.ndarray:
    form = form_of(texts)
    if form in FORMS and not np.isnat(moments := parse_dates(texts, form)).any():
        return moments
    # Others with the year first, such as those with fractions of a second.
    first = re.compile(r"^(\d{4})[/.](\d{2})[/.](\d{2})")
    try:
        return np.array([first.sub(r"\1-\2-\3", text) for text in texts]).astype("datetime64[us]")
    except ValueError as error:
        raise InvalidData(
            f"time {name!r} contains text that is not a date ({str(error)[:80]}); allowed: numbers, or "
            "dates as 2026-11-22 or 2026-11-22T08:30. Write the dates in this form."
        ) from error


def load_new(data: Any, preparation: Preparation) -> NewData:
    """Load rows to predict, and prepare them in the same way as the training rows.

    Parameters
    ----------
    data : str, Path, data frame or array
        Data as for :func:`load`, with or without the target.
    preparation : Preparation
        Preparation fitted on the training rows.

    Returns
    -------
    NewData
        Prepared inputs, and the target if the data contain one.

    Raises
    ------
    InvalidData
        If a column of the model is missing or contains text instead of numbers, or images have another
        size.

    Examples
    --------
    >>> wine = load("wine")
    >>> bool((load_new("wine", wine.preparation).X == wine.X).all())
    True
    """
    target = preparation.target
    name = target.name if target else None
    form = ImageForm.of_shape(preparation.image_shape)
    if isinstance(data, (str, Path)):
        raw = read_raw(data, name, required=False, expected=preparation.needed, form=form)
    else:
        raw, data = read_object(data, None, name, required=False), "the data"
    if raw.image_shape and preparation.image_shape not in (None, raw.image_shape):
        raise InvalidData(
            f"images in {data} have shape {raw.image_shape}, but those of the model have "
            f"{preparation.image_shape}; allowed: the same shape. Crop or resize them."
        )
    names = np.array(raw.row_names) if raw.row_names else None
    table, values = join(raw)
    table, _ = preparation.reading.applied(with_limits(table, preparation.needed))
    values = None if values is None else preparation.reading.values(values)
    treatments = [*raw.notes, *preparation.report(table)]
    X = preparation.transform(table)
    if values is None or target is None:
        return NewData(X, None, np.zeros(len(X), dtype=bool), tuple(treatments), names)
    missing = missing_mask(values)
    if missing.any():
        treatments.append(
            f"target {target.name!r} is missing in {np.count_nonzero(missing)} of {len(X)} rows, "
            "which are predicted but not scored"
        )
    present = target.encode(values[~missing])
    unseen = sorted(set(values[~missing][present == -1].tolist())) if target.classes else []
    if unseen:
        treatments.append(
            f"{np.count_nonzero(present == -1)} rows have a class not seen in training "
            f"({', '.join(map(repr, unseen[:5]))}), so their predictions are wrong"
        )
    y = np.full(len(X), np.nan if not target.classes else -1, dtype=present.dtype)
    y[~missing] = present
    return NewData(X, y, ~missing, tuple(treatments), names)
