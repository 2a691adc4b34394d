"""Read NPY files (memory-mapped) and NPZ files without unpickling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.raw_data import (
    RawData,
    TablePart,
    array_parts,
    choose_target,
    split_target,
    stretches,
    typed_column,
)
from solvable.data.table import Table, from_columns
from solvable.errors import InvalidData
from solvable.numpy_files import ANEW, check_unpacked, holds_objects, npz_members, open_npy

# First bytes of an NPY file and of an NPZ file.
NPY_MAGIC = b"\x93NUMPY"
NPZ_MAGIC = b"PK"


def load_npy(path: Path, *, mapped: bool = True) -> np.ndarray:
    """Read the array of a ``.npy`` file, memory-mapped by default."""
    check_magic(path, NPY_MAGIC)
    return open_npy(path, mapped=mapped)


def read_npy(path: Path, target: str | None = None, *, required: bool = True) -> RawData:
    """Read inputs from a ``.npy`` file; the target is a column or the neighbouring file ``y.npy``."""
    if path.name.startswith("X") and target is None:
        return read_pair(path, required)
    array = load_npy(path)
    parts, image_shape = array_parts(array, None, where=str(path))
    names = parts[0].columns
    chosen, notes = choose_target(names, target, required=required, where=str(path))
    if not chosen:
        return RawData(parts, "", image_shape)
    return RawData(split_target(parts, chosen), chosen, None, notes)


@dataclass(frozen=True, eq=False, kw_only=True)
class MappedPair(TablePart):
    """Memory-mapped pair of files ``X*.npy`` and ``y*.npy`` in one folder."""

    paths: tuple[Path, Path | None]
    image_shape: tuple[int, ...] | None

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the paths are pickled, as pickling a mapped array would copy its entries.
        return open_pair, self.paths


def open_pair(path: Path, label_path: Path | None) -> MappedPair:
    """Memory-map the files of inputs and target, or only the inputs if there is no target."""
    y = None if label_path is None else load_npy(label_path)
    parts, image_shape = array_parts(load_npy(path), y, where=str(path))
    whole = RawData(parts, "").whole
    assert isinstance(whole, TablePart)
    return MappedPair(whole.table, whole.values, paths=(path, label_path), image_shape=image_shape)


def read_pair(path: Path, required: bool) -> RawData:
    """Read the files ``X*.npy`` and ``y*.npy`` in one folder."""
    label_path = path.with_name("y" + path.name[1:])
    if required and not label_path.exists():
        raise InvalidData(
            f"{path} has no target: {label_path.name} is not in the same folder. Save the target in that "
            "file, one value per row."
        )
    pair = open_pair(path, label_path if label_path.exists() else None)
    return RawData(stretches(pair), "y" if pair.values is not None else "", pair.image_shape)


def read_npz(path: Path, target: str | None = None, *, required: bool = True) -> RawData:
    """Read inputs and target from an NPZ file by the names of the arrays."""
    arrays = _load_npz(path)
    inputs = ("X", "x", "data", "images", "inputs", "features")
    input_key = next((key for key in inputs if key in arrays and arrays[key].ndim > 1), None)
    if input_key is None:
        # If all arrays are one-dimensional, they are the columns of a table.
        return _npz_columns(path, arrays, target, required)
    name_keys = ("columns", "feature_names")
    X = arrays.pop(input_key)
    names: list[str] = next((arrays[key].tolist() for key in name_keys if key in arrays), [])
    if target is not None and target in names and target not in arrays:
        parts, _ = array_parts(X, None, names, str(path))
        return RawData(split_target(parts, target), target)
    others = [key for key in arrays if key not in name_keys]
    if target is None:
        usual = ("y", "target", "labels", "label")
        target = next((key for key in usual if key in others), None)
    chosen, _ = choose_target([*others, *names], target, required=required, where=str(path))
    parts, image_shape = array_parts(X, arrays[chosen] if chosen else None, names, str(path))
    return RawData(parts, chosen, image_shape)


@dataclass(frozen=True)
class NpzPart:
    """NPZ file of a folder, loaded only when its rows are read."""

    path: Path
    target_name: str | None  # requested name of the target
    n_rows: int
    columns: tuple[str, ...]  # names of the columns without the target

    def read(self, columns: Sequence[str] | None = None) -> tuple[Table, np.ndarray | None]:
        """Return the requested (or all) columns other than the target, and the target or None."""
        raw = read_npz(self.path, self.target_name, required=False)
        assert raw.whole is not None
        return raw.whole.read(columns)


def read_shard(path: Path, target: str | None, required: bool) -> RawData:
    """Return an NPZ file as one part that is loaded when needed; here only the size is read."""
    raw = read_npz(path, target, required=required)
    n_rows = sum(part.n_rows for part in raw.parts)
    part = NpzPart(path, target, n_rows, raw.parts[0].columns)
    return RawData((part,), raw.target, raw.image_shape, raw.notes)


def _load_npz(path: Path) -> dict[str, np.ndarray]:
    check_magic(path, NPZ_MAGIC)
    members = npz_members(path)
    check_unpacked(sum(member.size for member in members), str(path))
    arrays = {}
    for member in members:
        if member.dtype is not None and member.dtype.hasobject:
            raise holds_objects(path)
        try:
            arrays[member.name] = member.read()
        except InvalidData as error:
            raise InvalidData(f"{path} is damaged: {member.name!r}: {error} {ANEW}") from error
    return arrays


def _npz_columns(
    path: Path, arrays: Mapping[str, np.ndarray], target: str | None, required: bool
) -> RawData:
    """Read an NPZ file whose arrays are the columns of a table."""
    if not arrays or any(array.ndim != 1 for array in arrays.values()):
        seen = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "nothing"
        raise InvalidData(
            f"{path} holds {seen}; allowed: an array X of shape (n, d) or (n, height, width) with a "
            "target y of shape (n,), or columns of one length."
        )
    table = from_columns({key: typed_column(array, key) for key, array in arrays.items()})
    chosen, notes = choose_target(table.order, target, required=required, where=str(path))
    parts = stretches(TablePart(table))
    return RawData(split_target(parts, chosen) if chosen else parts, chosen, None, notes)


def check_magic(path: Path, magic: bytes) -> None:
    """Raise :class:`InvalidData` if a file's first bytes do not belong to the format of its ending."""
    with path.open("rb") as stream:
        start = stream.read(len(NPY_MAGIC))
    if start.startswith(magic):
        return
    for other, ending in ((NPY_MAGIC, ".npy"), (NPZ_MAGIC, ".npz")):
        if start.startswith(other):
            raise InvalidData(f"{path} has another format; rename the file to end in {ending}.")
    raise InvalidData(
        f"{path} is not a NumPy file (it starts with {start!r}). Save it again with numpy.save or "
        "numpy.savez."
    )
