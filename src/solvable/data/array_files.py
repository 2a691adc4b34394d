"""NPY and NPZ files, and folders of them; nothing is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.parts import (
    Part,
    RawData,
    TablePart,
    array_parts,
    choose_target,
    stretches,
    typed_column,
)
from solvable.data.table import Table, from_columns, listed
from solvable.errors import InvalidData

INPUT_KEYS = ("X", "x", "data", "images", "inputs", "features")
"""Names under which an NPZ file may hold the inputs."""

TARGET_KEYS = ("y", "target", "labels", "label")
"""Names under which it may hold the target if none is asked for."""

NAME_KEYS = ("columns", "feature_names")
"""Names under which it may hold the names of the columns."""


NPY_MAGIC = b"\x93NUMPY"
"""First bytes of an NPY file."""

NPZ_MAGIC = b"PK"
"""First bytes of an NPZ file."""


def load_npy(path: Path, *, mapped: bool = True) -> np.ndarray:
    """Array of a ``.npy`` file, memory-mapped unless asked otherwise.

    Parameters
    ----------
    path : Path
        The file.
    mapped : bool
        Whether to leave the entries on disk.

    Returns
    -------
    ndarray
        The array.

    Raises
    ------
    InvalidData
        If the file is cut, no array, or holds Python objects.
    """
    _check_magic(path, NPY_MAGIC)
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise _unreadable(path, error) from error
    return array


def read_npz(path: Path, target: str | None = None, *, required: bool = True) -> RawData:
    """Inputs and target of an NPZ file.

    Parameters
    ----------
    path : Path
        The file: inputs under X (or data, images, inputs, features), target under y (or target,
        labels, label, or the name asked for), names of the columns under columns. A file of
        one-dimensional arrays only is a table with these columns.
    target : str, optional
        Name of the target.
    required : bool
        Whether a target must be there.

    Returns
    -------
    RawData
        One part per ``PART_ROWS`` rows.

    Raises
    ------
    InvalidData
        If the file cannot be read without unpickling, or what is needed is not in it.
    """
    arrays = _load_npz(path)
    input_key = next((key for key in INPUT_KEYS if key in arrays and arrays[key].ndim > 1), None)
    if input_key is None:
        return _npz_columns(path, arrays, target, required)
    X = arrays.pop(input_key)
    names: list[str] = next((arrays[key].tolist() for key in NAME_KEYS if key in arrays), [])
    if target is not None and target in names and target not in arrays:
        parts, _ = array_parts(X, None, names, str(path))
        return RawData(_split_target(parts, target), target)
    others = [key for key in arrays if key not in NAME_KEYS]
    if target is None:
        target = next((key for key in TARGET_KEYS if key in others), None)
    found, _ = choose_target([*others, *names], target, required=required, where=str(path))
    parts, image_shape = array_parts(X, arrays[found] if found else None, names, str(path))
    return RawData(parts, found, image_shape)


def read_folder(folder: Path, target: str | None = None, *, required: bool = True) -> RawData:
    """Inputs and target of a folder of array files.

    Parameters
    ----------
    folder : Path
        One of: ``X.npy`` and ``y.npy``, or several pairs ``X*.npy`` and ``y*.npy`` (all
        memory-mapped); ``.npz`` shards; one sub-folder of ``.npy`` images per class. Files are taken
        in the order of their names.
    target : str, optional
        Name of the target in NPZ shards.
    required : bool
        Whether a target must be there.

    Returns
    -------
    RawData
        Parts of all files.

    Raises
    ------
    InvalidData
        If the folder is none of these, files do not fit together, or images differ in size.
    """
    inputs = sorted(folder.glob("X*.npy"))
    if inputs:
        return _join(folder, inputs, lambda path: _read_pair(path, required))
    shards = sorted(folder.glob("*.npz"))
    if shards:
        return _join(folder, shards, lambda path: _read_shard(path, target, required))
    classes = [sub for sub in sorted(folder.iterdir()) if sub.is_dir() and any(sub.glob("*.npy"))]
    if classes:
        return _read_image_folders(folder, classes)
    seen = sorted(path.name for path in folder.iterdir())
    raise InvalidData(
        f"folder {folder} holds {listed(seen) or 'nothing'}; allowed: X.npy with y.npy, pairs "
        "X*.npy with y*.npy, .npz shards, .parquet files, or one sub-folder of .npy images per class."
    )


def read_npy(path: Path, target: str | None = None, *, required: bool = True) -> RawData:
    """Inputs of one ``.npy`` file; the target is one of its columns or in ``y.npy`` beside it.

    Parameters
    ----------
    path : Path
        The file. Columns are called x0, x1, ... .
    target : str, optional
        Name of the column to predict.
    required : bool
        Whether a target must be there.

    Returns
    -------
    RawData
        Memory-mapped parts.
    """
    if path.name.startswith("X") and target is None:
        return _read_pair(path, required)
    array = load_npy(path)
    parts, image_shape = array_parts(array, None, where=str(path))
    names = parts[0].columns
    found, notes = choose_target(names, target, required=required, where=str(path))
    if not found:
        return RawData(parts, "", image_shape)
    return RawData(_split_target(parts, found), found, None, notes)


@dataclass(frozen=True)
class NpzPart:
    """An NPZ shard that is loaded when it is read.

    Parameters
    ----------
    path : Path
        The file.
    target_name : str or None
        Name of the target that was asked for.
    n_rows : int
        Rows it holds.
    columns : tuple of str
        Columns besides the target.
    """

    path: Path
    target_name: str | None
    n_rows: int
    columns: tuple[str, ...]

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """The columns besides the target, or some of them; and the target if there is one."""
        raw = read_npz(self.path, self.target_name, required=False)
        assert raw.whole is not None
        return raw.whole.read(columns)

    def target(self) -> np.ndarray | None:
        """Values of the target."""
        return self.read()[1]


def _split_target(parts: Sequence[Part], target: str) -> tuple[Part, ...]:
    """Parts whose target is one of their columns; the parts are stretches of one array."""
    whole = RawData(tuple(parts), "").whole
    assert whole is not None
    table, _ = whole.read()
    return stretches(TablePart(table.without(target), table.column(target)))


def _unreadable(path: Path, error: Exception) -> InvalidData:
    if "Object arrays" in str(error):
        return InvalidData(
            f"{path} holds Python objects (rows or images of different length, or mixed types), "
            "which could run code when read; allowed: arrays of numbers or of text. Bring all rows "
            "to one size and save anew with numpy.save or numpy.savez."
        )
    return InvalidData(f"{path} is damaged ({error}). Save it anew with numpy.save or numpy.savez.")


def _check_magic(path: Path, magic: bytes) -> None:
    """Refuse a file whose first bytes are those of another kind."""
    with path.open("rb") as stream:
        start = stream.read(len(NPY_MAGIC))
    if start.startswith(magic):
        return
    for other, ending in ((NPY_MAGIC, ".npy"), (NPZ_MAGIC, ".npz")):
        if start.startswith(other):
            raise InvalidData(f"{path} is a file of another kind; rename it to end in {ending}.")
    raise InvalidData(
        f"{path} is no NumPy file (it starts with {start!r}). Save it anew with numpy.save or "
        "numpy.savez."
    )


def _load_npz(path: Path) -> dict[str, np.ndarray]:
    _check_magic(path, NPZ_MAGIC)
    # NumPy leaves a damaged file open if it is given a path.
    with path.open("rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
        except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise _unreadable(path, error) from error


def _npz_columns(
    path: Path, arrays: Mapping[str, np.ndarray], target: str | None, required: bool
) -> RawData:
    """NPZ file whose arrays are the columns of a table."""
    if not arrays or any(array.ndim != 1 for array in arrays.values()):
        seen = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "nothing"
        raise InvalidData(
            f"{path} holds {seen}; allowed: an array X of shape (n, d) or (n, height, width) with a "
            "target y of shape (n,), or columns of one length."
        )
    table = from_columns({key: typed_column(array, key) for key, array in arrays.items()})
    found, notes = choose_target(table.order, target, required=required, where=str(path))
    parts = stretches(TablePart(table))
    return RawData(_split_target(parts, found) if found else parts, found, None, notes)


class MappedPair:
    """``X*.npy`` with ``y*.npy`` beside it, memory-mapped.

    Parameters
    ----------
    path, label_path : Path
        The files; no target if the second is None.
    """

    def __init__(self, path: Path, label_path: Path | None) -> None:
        self.path, self.label_path = path, label_path

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickling an array on disk would copy its entries; its path is enough.
        return MappedPair, (self.path, self.label_path)

    @cached_property
    def _arrays(self) -> tuple[TablePart, tuple[int, ...] | None]:
        y = None if self.label_path is None else load_npy(self.label_path)
        parts, image_shape = array_parts(load_npy(self.path), y, where=str(self.path))
        whole = RawData(parts, "").whole
        assert isinstance(whole, TablePart)
        return whole, image_shape

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """Shape of a row if it is an image."""
        return self._arrays[1]

    @property
    def table(self) -> Table:
        """Columns besides the target."""
        return self._arrays[0].table

    @property
    def values(self) -> np.ndarray | None:
        """Values of the target."""
        return self._arrays[0].values

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._arrays[0].n_rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns besides the target."""
        return self._arrays[0].columns

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """The columns besides the target, or some of them; and the target if there is one."""
        return self._arrays[0].read(columns)

    def target(self) -> np.ndarray | None:
        """Values of the target."""
        return self.values


def _read_pair(path: Path, required: bool) -> RawData:
    """``X*.npy`` with the ``y*.npy`` beside it."""
    label_path = path.with_name("y" + path.name[1:])
    if required and not label_path.exists():
        raise InvalidData(
            f"{path} has no target: {label_path.name} is not beside it. Save the target there, "
            "one value per row."
        )
    pair = MappedPair(path, label_path if label_path.exists() else None)
    return RawData(stretches(pair), "y" if pair.label_path else "", pair.image_shape)


def _read_shard(path: Path, target: str | None, required: bool) -> RawData:
    """NPZ shard, read once for its size and columns."""
    raw = read_npz(path, target, required=required)
    n_rows = sum(part.n_rows for part in raw.parts)
    part = NpzPart(path, target, n_rows, raw.parts[0].columns)
    return RawData((part,), raw.target, raw.image_shape, raw.notes)


def _join(folder: Path, paths: Sequence[Path], read: Callable[[Path], RawData]) -> RawData:
    """Parts of several files, which must agree in columns, image shape and target."""
    raws = [read(path) for path in paths]
    first = raws[0]
    for path, raw in zip(paths, raws, strict=True):
        if raw.image_shape != first.image_shape:
            raise InvalidData(
                f"{folder} holds images of mixed size: {paths[0].name} has {first.image_shape}, "
                f"{path.name} has {raw.image_shape}; allowed: one size. Crop or resize them."
            )
        if raw.target != first.target:
            raise InvalidData(
                f"the target is {first.target!r} in {paths[0].name} and {raw.target!r} in "
                f"{path.name}; allowed: one name. Name it with --target."
            )
        if set(raw.parts[0].columns) != set(first.parts[0].columns):
            raise InvalidData(
                f"{path.name} has {len(raw.parts[0].columns)} columns, {paths[0].name} has "
                f"{len(first.parts[0].columns)}, or they differ in name; allowed: the same columns "
                "in every file."
            )
    parts = tuple(part for raw in raws for part in raw.parts)
    return RawData(parts, first.target, first.image_shape, first.notes)


def _read_image_folders(folder: Path, classes: Sequence[Path]) -> RawData:
    """One sub-folder of ``.npy`` images per class; the class is the name of the folder."""
    paths = [path for sub in classes for path in sorted(sub.glob("*.npy"))]
    images = [load_npy(path, mapped=False) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise InvalidData(
                f"{folder} holds images of mixed size: {paths[0].relative_to(folder)} has "
                f"{images[0].shape}, {path.relative_to(folder)} has {image.shape}; allowed: one "
                "size. Crop or resize them."
            )
    labels = np.array([path.parent.name for path in paths])
    parts, image_shape = array_parts(np.stack(images), labels, where=str(folder))
    note = f"the {len(classes)} sub-folders of {folder.name} were taken as classes"
    return RawData(parts, "class", image_shape, (note,))
