"""Choose the reader for a data set's name, a file or a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from solvable.data.array_files import read_npy, read_npz
from solvable.data.csv_table import read_csv
from solvable.data.folders import read_folder
from solvable.data.image_files import IMAGE_ENDINGS, ImageForm, read_images, visible
from solvable.data.named import DATASETS, read_named
from solvable.data.parquet import read_parquet
from solvable.data.raw_data import RawData, TablePart, array_parts, choose_target, stretches
from solvable.data.table import Table, as_text, stack_rows
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.paths import check_path

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")  # delimited text
PARQUET_ENDINGS = (".parquet", ".pq")  # file endings of Parquet files

ENDINGS = (*CSV_ENDINGS, ".npz", ".npy", *PARQUET_ENDINGS, *IMAGE_ENDINGS)
"""Endings of all files that can be read."""


def read_raw(
    name_or_path: str | Path,
    target: str | None = None,
    *,
    required: bool = True,
    expected: Sequence[str] = (),
    form: ImageForm | None = None,
) -> RawData:
    """Read the parts of a named data set, file or folder; PNG and JPEG are converted to `form`."""
    text = str(name_or_path)
    if isinstance(name_or_path, str) and text in DATASETS:
        return _other_target(read_named(text), target, required)
    path = check_path(name_or_path).expanduser()
    if not path.exists():
        if isinstance(name_or_path, Path) or os.sep in text or text.lower().endswith(ENDINGS):
            raise InvalidParameter(
                f"there is no file or folder {text}; allowed: an existing one, or a data set: "
                f"{', '.join(DATASETS)}."
            )
        message = unknown_choice("data set", text, DATASETS)
        if "Did you mean" not in message and text.casefold() in DATASETS:
            message += f" Did you mean {text.casefold()!r}?"
        raise InvalidParameter(f"{message} For other data give the path of a file or folder.")
    try:
        return _read_path(path, target, required, expected, form or ImageForm())
    except OSError as error:
        raise InvalidData(f"{path} cannot be read ({error}). Check the file.") from error


def join(raw: RawData) -> tuple[Table, np.ndarray | None]:
    """Join all parts in memory; a single array file stays memory-mapped."""
    if raw.whole is not None:
        return raw.whole.read()
    read = [part.read() for part in raw.parts]
    table = stack_rows([table for table, _ in read])
    columns = [values for _, values in read if values is not None]
    if not columns:
        return table, None
    if any(column.dtype == object for column in columns):
        columns = [as_text(column) for column in columns]
    return table, np.concatenate(columns)


def parquet_paths(path: Path) -> list[Path]:
    """List the Parquet files in a folder by name, without hidden files."""
    files = [file for file in visible(path) if file.suffix in PARQUET_ENDINGS]
    return [file for file in files if not file.name.startswith("_")]


def _read_path(
    path: Path, target: str | None, required: bool, expected: Sequence[str], form: ImageForm
) -> RawData:
    if path.is_dir():
        paths = parquet_paths(path)
        if paths:
            return read_parquet(paths, target, required=required)
        return read_folder(path, target, required=required, form=form)
    name = path.name.lower()
    if name.endswith(IMAGE_ENDINGS):
        if required:
            raise InvalidData(
                f"{path} is a single image; allowed: a folder with a sub-folder of images per class."
            )
        images, notes = read_images(path.parent, [path], form)
        parts, image_shape = array_parts(images, None, where=str(path))
        return RawData(parts, "", image_shape, notes, (path.name,))
    if name.endswith(PARQUET_ENDINGS):
        return read_parquet([path], target, required=required)
    if name.endswith(".npz"):
        return read_npz(path, target, required=required)
    if name.endswith(".npy"):
        return read_npy(path, target, required=required)
    if not name.endswith(CSV_ENDINGS):
        raise InvalidParameter(
            f"{path} has an unknown ending; allowed: {', '.join(ENDINGS)}, or a folder. Convert or "
            "rename it."
        )
    table, notes = read_csv(path, [*expected, *([target] if target else [])])
    chosen, more = choose_target(table.order, target, required=required, where=str(path))
    if not chosen:
        return RawData(stretches(TablePart(table)), "", None, notes)
    part = TablePart(table.without(chosen), table.column(chosen))
    return RawData(stretches(part), chosen, None, (*notes, *more))


def _other_target(raw: RawData, target: str | None, required: bool) -> RawData:
    """Return a named data set; on request, another column is the target."""
    part = raw.parts[0]
    if target in (None, raw.target) or (not required and target not in part.columns):
        return raw
    table, _ = part.read()
    choose_target([raw.target, *table.order], target, required=True, where="the data set")
    split = TablePart(table.without(str(target)), table.column(str(target)))
    note = f"column {raw.target!r} is left out, as the target is {target!r}"
    return RawData((split,), str(target), None, (*raw.notes, note))
