"""NPY files, memory-mapped; nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.parts import (
    RawData,
    TablePart,
    array_parts,
    choose_target,
    split_target,
    stretches,
)
from solvable.data.table import Table
from solvable.errors import InvalidData

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
    check_magic(path, NPY_MAGIC)
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise unreadable(path, error) from error
    return array


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
        return read_pair(path, required)
    array = load_npy(path)
    parts, image_shape = array_parts(array, None, where=str(path))
    names = parts[0].columns
    found, notes = choose_target(names, target, required=required, where=str(path))
    if not found:
        return RawData(parts, "", image_shape)
    return RawData(split_target(parts, found), found, None, notes)


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


def read_pair(path: Path, required: bool) -> RawData:
    """``X*.npy`` with the ``y*.npy`` beside it.

    Parameters
    ----------
    path : Path
        The file of inputs.
    required : bool
        Whether there must be one of targets.

    Returns
    -------
    RawData
        Memory-mapped parts.
    """
    label_path = path.with_name("y" + path.name[1:])
    if required and not label_path.exists():
        raise InvalidData(
            f"{path} has no target: {label_path.name} is not beside it. Save the target there, "
            "one value per row."
        )
    pair = MappedPair(path, label_path if label_path.exists() else None)
    return RawData(stretches(pair), "y" if pair.label_path else "", pair.image_shape)


def check_magic(path: Path, magic: bytes) -> None:
    """Raise :class:`InvalidData` if the first bytes of a file are those of another kind."""
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


def unreadable(path: Path, error: Exception) -> InvalidData:
    """Error for a NumPy file that is damaged or holds Python objects."""
    if "Object arrays" in str(error):
        return InvalidData(
            f"{path} holds Python objects (rows or images of different length, or mixed types), "
            "which could run code when read; allowed: arrays of numbers or of text. Bring all rows "
            "to one size and save anew with numpy.save or numpy.savez."
        )
    return InvalidData(f"{path} is damaged ({error}). Save it anew with numpy.save or numpy.savez.")
