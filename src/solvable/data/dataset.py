"""Loading a data set for learning, and new data for a fitted model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from solvable.data.copies import first_equal_rows
from solvable.data.image_files import Colour, ImageForm, is_image
from solvable.data.preparation import Preparation
from solvable.data.readers import join, read_raw
from solvable.data.table import Table, as_text, missing_mask, unknown_column
from solvable.data.target import Kind, Task, fit_target, refuse_tiny_target
from solvable.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and target of a learning problem, and what was done to get them."""

    # float64, or float32 if the file is no more exact; memory-mapped if the file is and nothing had to
    # be done
    X: np.ndarray
    y: np.ndarray  # float64 in regression; otherwise int64 codes, positions in class_labels
    kind: Kind
    class_labels: tuple[str, ...]
    columns: tuple[str, ...]  # of X
    target: str
    image_shape: tuple[int, ...] | None  # height, width (and channels) if each row is an image
    name: str
    treatments: tuple[str, ...]  # sentences without full stop
    # fitted on all rows, which decides the columns once; an honest error needs medians of the training
    # rows: see split
    preparation: Preparation
    table: Table  # inputs before preparation, rows without target left out
    file_rows: np.ndarray | None = None  # position of each row in the file, from 0
    groups: np.ndarray | None = None  # number of the person, device or day of each row
    times: np.ndarray | None = None  # only their order counts
    row_names: np.ndarray | None = None  # file of each row, where each has its own
    aside: Table | None = None  # columns of groups and times as they are in the file

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.y)

    def row_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of rows in the file, from 1, whether or not others had no target."""
        places = rows if self.file_rows is None else self.file_rows[rows]
        return np.asarray(places) + 1

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return len(self.columns)

    def identical_rows(self) -> np.ndarray:
        """First row that is equal to each in all columns of the file, the target included; shape (n,)."""
        # Columns that are not learned from count as well, those of groups and times too. A missing
        # value is equal to a missing value. Columns of lists in Parquet files are not read, and do not
        # count.
        tables = [self.table] if self.aside is None else [self.table, self.aside]
        return first_equal_rows(tables, self.y)

    def split(self, train: np.ndarray, test: np.ndarray) -> Split:
        """Training and test rows by position or mask: the same columns, medians of the training rows."""
        # So that the test rows are treated as rows that come later.
        rows = self.table.rows(train)
        preparation = self.preparation.refit(rows)
        return Split(
            preparation.transform(rows),
            self.y[train],
            preparation.transform(self.table.rows(test)),
            self.y[test],
            preparation,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of a data set."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    preparation: Preparation  # fitted on the training rows


@dataclass(frozen=True, eq=False)
class NewData:
    """Rows to predict."""

    X: np.ndarray
    # as in training, if the data have it: NaN or -1 where missing, -1 for an unknown class
    y: np.ndarray | None
    labelled: np.ndarray  # rows whose target is known
    treatments: tuple[str, ...]  # sentences without full stop
    row_names: np.ndarray | None = None  # file of each row, where each has its own


def load(
    name_or_path: str | Path,
    *,
    target: str | None = None,
    task: Task = "auto",
    keep: Sequence[str] = (),
    groups: str | None = None,
    time: str | None = None,
    image_size: int | Sequence[int] | str | None = None,
    colour: Colour = "auto",
) -> Dataset:
    """Load a data set by name, or from a file or folder, ready to learn from.

    Parameters
    ----------
    name_or_path : str or Path
        One of :data:`~solvable.data.named.DATASETS`; or a CSV, NPZ, NPY or Parquet file; or a folder of
        array files, of Parquet files or of class folders with images (NPY, PNG, JPEG). A path
        with the name of a data set is written ``./digits``.
    target : str, optional
        Column to predict. May be left out for a data set with a name, for arrays X and y, and if
        one column is called y, target, label, labels or class.
    task : {"auto", "classification", "regression", "binary"}
        What to predict. "auto": classes if the values are text, or take two values, or are few
        whole numbers (at most 20, with five rows each on average); a number otherwise.
    keep : sequence of str
        Columns to keep though they look like identifiers.
    groups : str, optional
        Column that says which rows belong together (person, device, day); not an input. A row without
        a value is a group of its own.
    time : str, optional
        Column of numbers or dates (as 2026-11-22) that says in which order rows came; not an input.
    image_size : int, (int, int) or str, optional
        Height and width that PNG and JPEG images are resized to; default as they are, all of one size.
    colour : {"auto", "grey", "rgb"}
        What PNG and JPEG images are made into; "auto" is grey unless a pixel has colour.

    Returns
    -------
    Dataset
        Inputs, target and what was done.

    Raises
    ------
    InvalidParameter
        If the name is unknown, nothing is at the path, or a package is not installed.
    InvalidData
        If the data cannot be learned from; the message says what to do.

    Notes
    -----
    Treatments: constant columns and identifiers are dropped; missing values are replaced by
    medians; rows without target are dropped, and the only row of a class; text becomes columns of
    0 and 1, or is dropped if it takes many values. Each is a sentence in ``treatments``.

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
    raw = read_raw(name_or_path, target, form=form)
    if form != ImageForm() and not all(is_image(name) for name in raw.row_names or [""]):
        raise InvalidParameter(
            f"an image size or colour is asked for, and {name_or_path} holds no PNG or JPEG files; "
            "allowed: these options with a folder of such. Leave them out."
        )
    table, values = join(raw)
    assert values is not None
    used = ~missing_mask(values)
    treatments = list(raw.notes)
    if not used.all():
        n_missing = int(np.count_nonzero(~used))
        treatments.append(
            f"dropped {n_missing} of {len(values)} rows: target {raw.target!r} missing"
        )
    fitted, notes = fit_target(raw.target, values[used], task)
    y = fitted.encode(values[used])
    if fitted.kind == "regression":
        refuse_tiny_target(fitted.name, y)
    else:  # the only row of a class has no code
        used[used] = y >= 0
        y = y[y >= 0]
    file_rows = np.flatnonzero(used)
    table = table if used.all() else table.rows(used)
    table, aside, group_of, time_of = _set_aside(table, groups, time, raw.target)
    preparation = Preparation.fit(table, keep=keep, target=fitted, image_shape=raw.image_shape)
    treatments += [*notes, *preparation.treatments]
    return Dataset(
        X=preparation.transform(table),
        y=y,
        kind=fitted.kind,
        class_labels=fitted.classes,
        columns=preparation.columns,
        target=raw.target,
        image_shape=raw.image_shape,
        name=str(name_or_path),
        treatments=tuple(treatments),
        preparation=replace(preparation, treatments=tuple(treatments)),
        table=table,
        file_rows=file_rows,
        groups=group_of,
        times=time_of,
        row_names=np.array(raw.row_names)[file_rows] if raw.row_names else None,
        aside=aside,
    )


def _set_aside(
    table: Table, groups: str | None, time: str | None, target: str
) -> tuple[Table, Table | None, np.ndarray | None, np.ndarray | None]:
    """Inputs without the columns of groups and times, these as they are, and each as numbers."""
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
                "allowed: a value in every row. Remove the others."
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
    # Year first is plain with any separator; day and month first are not.
    first = re.compile(r"^(\d{4})[/.](\d{2})[/.](\d{2})")
    try:
        return np.array([first.sub(r"\1-\2-\3", text) for text in texts]).astype("datetime64[us]")
    except ValueError as error:
        raise InvalidData(
            f"time {name!r} holds text that is no date ({str(error)[:80]}); allowed: numbers, or dates "
            "as 2026-11-22 or 2026-11-22T08:30. Write the dates in that order."
        ) from error


def load_new(name_or_path: str | Path, preparation: Preparation) -> NewData:
    """Load rows to predict, treated as the training rows were.

    Parameters
    ----------
    name_or_path : str or Path
        As for :func:`load`. The target need not be there.
    preparation : Preparation
        Fitted on the training rows.

    Returns
    -------
    NewData
        Inputs, and the target if there is one.

    Raises
    ------
    InvalidData
        If a column that was learned from is not there or holds text instead of numbers, or images
        have another size.

    Examples
    --------
    >>> wine = load("wine")
    >>> bool((load_new("wine", wine.preparation).X == wine.X).all())
    True
    """
    target = preparation.target
    name = target.name if target else None
    form = ImageForm.of_shape(preparation.image_shape)
    raw = read_raw(name_or_path, name, required=False, expected=preparation.needed, form=form)
    if raw.image_shape and preparation.image_shape not in (None, raw.image_shape):
        raise InvalidData(
            f"images in {name_or_path} have shape {raw.image_shape}, and the model learned from "
            f"{preparation.image_shape}; allowed: the same shape. Crop or resize them."
        )
    names = np.array(raw.row_names) if raw.row_names else None
    table, values = join(raw)
    treatments = [*raw.notes, *preparation.report(table)]
    X = preparation.transform(table)
    if values is None or target is None:
        return NewData(X, None, np.zeros(len(X), dtype=bool), tuple(treatments), names)
    missing = missing_mask(values)
    if missing.any():
        treatments.append(
            f"target {target.name!r} is missing in {np.count_nonzero(missing)} of {len(X)} rows, "
            "which are predicted and not scored"
        )
    present = target.encode(values[~missing])
    unseen = sorted(set(values[~missing][present == -1].tolist())) if target.classes else []
    if unseen:
        treatments.append(
            f"{np.count_nonzero(present == -1)} rows have a class not seen in training "
            f"({', '.join(map(repr, unseen[:5]))}): no prediction can be right there"
        )
    y = np.full(len(X), np.nan if not target.classes else -1, dtype=present.dtype)
    y[~missing] = present
    return NewData(X, y, ~missing, tuple(treatments), names)
