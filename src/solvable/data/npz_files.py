"""NPZ files; nothing is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from solvable.data.npy_files import NPZ_MAGIC, check_magic, unreadable
from solvable.data.parts import (
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

INPUT_KEYS = ("X", "x", "data", "images", "inputs", "features")
"""Names under which an NPZ file may hold the inputs."""

TARGET_KEYS = ("y", "target", "labels", "label")
"""Names under which it may hold the target if none is asked for."""

NAME_KEYS = ("columns", "feature_names")
"""Names under which it may hold the names of the columns."""


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
        return RawData(split_target(parts, target), target)
    others = [key for key in arrays if key not in NAME_KEYS]
    if target is None:
        target = next((key for key in TARGET_KEYS if key in others), None)
    found, _ = choose_target([*others, *names], target, required=required, where=str(path))
    parts, image_shape = array_parts(X, arrays[found] if found else None, names, str(path))
    return RawData(parts, found, image_shape)


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


def read_shard(path: Path, target: str | None, required: bool) -> RawData:
    """NPZ file as one part that is loaded when it is read.

    Parameters
    ----------
    path : Path
        The file; read once for its size and columns.
    target : str, optional
        Name of the target.
    required : bool
        Whether a target must be there.

    Returns
    -------
    RawData
        One part.
    """
    raw = read_npz(path, target, required=required)
    n_rows = sum(part.n_rows for part in raw.parts)
    part = NpzPart(path, target, n_rows, raw.parts[0].columns)
    return RawData((part,), raw.target, raw.image_shape, raw.notes)


def _load_npz(path: Path) -> dict[str, np.ndarray]:
    check_magic(path, NPZ_MAGIC)
    # NumPy leaves a damaged file open if it is given a path.
    with path.open("rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
        except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise unreadable(path, error) from error


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
    return RawData(split_target(parts, found) if found else parts, found, None, notes)
