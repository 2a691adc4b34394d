"""Arrays of HDF5 files, as Keras writes them, and of .keras archives that contain one."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights, broken, of_numpy, package
from solvable.errors import InvalidData
from solvable.numpy_files import MOST_PACKED, ZIP_ERRORS, check_unpacked, shape_fault
from solvable.paths import error_line

MEMBER = "model.weights.h5"  # file of the weights in a .keras archive


def open_hdf5(path: Path, *, zipped: bool = False) -> Weights:
    """Return the arrays of an HDF5 file, or of the one in a .keras archive, whose code is not read."""
    with _file(path, zipped=zipped) as file:
        arrays = tuple(
            _described(path, zipped, place, name_of(place), dataset)
            for place, dataset in datasets_of(path, file)
        )
    return Weights(path.name, arrays, (path,))


@contextmanager
def _file(path: Path, *, zipped: bool) -> Iterator[Any]:
    h5py = package("h5py", "weights", path)
    opened: Any = nullcontext(path)
    with path.open("rb") as raw, _member(path, raw) if zipped else opened as source:
        try:
            file = h5py.File(source, "r")
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidData(
                f"{path} is damaged or not an HDF5 file ({error_line(error)}). Save it again."
            ) from error
        with file:
            yield file


def _member(path: Path, raw: BinaryIO) -> io.BytesIO | io.RawIOBase:
    """Return the HDF5 file in an archive: in place if it is not compressed, as Keras writes it."""
    try:
        archive = zipfile.ZipFile(raw)
        entry = archive.getinfo(MEMBER)
        if entry.compress_type == zipfile.ZIP_STORED:
            with archive.open(entry):  # checks the local header, and moves to its end
                raw.seek(entry.header_offset + 26)
                name, extra = (int.from_bytes(raw.read(2), "little") for _ in range(2))
            return _Part(path, entry.header_offset + 30 + name + extra)
        if entry.file_size > MOST_PACKED * max(entry.compress_size, 1):
            raise ValueError("it announces more data than can be packed into its size")
        check_unpacked(entry.file_size, f"{path}: {MEMBER}")
        with archive.open(entry) as stream:
            # At most the announced size is unpacked, whatever follows.
            return io.BytesIO(stream.read(entry.file_size))
    except KeyError as error:
        raise InvalidData(
            f"{path} has no {MEMBER}; allowed: an archive written by model.save('name.keras')."
        ) from error
    except ZIP_ERRORS as error:
        raise InvalidData(
            f"{path} is damaged or not a .keras archive ({error_line(error)}). Save it again."
        ) from error


class _Part(io.FileIO):
    """File from a byte on, as a file."""

    def __init__(self, path: Path, begin: int) -> None:
        super().__init__(path)
        self.begin = begin

    def seek(self, offset: int, whence: int = 0, /) -> int:
        # a damaged file may ask for any place
        place = super().seek(min(offset, 2**60) + (0 if whence else self.begin), whence)
        return max(place - self.begin, 0)

    def tell(self) -> int:
        return max(super().tell() - self.begin, 0)


def name_of(place: str | bytes) -> str:
    """Return the name of a data set; h5py gives bytes for names that are not Unicode."""
    text = place.decode("utf-8", "replace") if isinstance(place, bytes) else place
    return text.removeprefix("model_weights/")


def datasets_of(path: Path, file: Any) -> list[tuple[str | bytes, Any]]:
    """List the data sets; links to other files and places are not followed."""
    h5py = package("h5py", "weights", path)
    found: list[tuple[str | bytes, Any]] = []
    try:
        file.visititems(
            lambda name, value: (
                found.append((name, value)) if isinstance(value, h5py.Dataset) else None
            )
        )
    except Exception as error:  # HDF5 raises many exceptions for damaged files
        raise InvalidData(f"{path} is damaged ({error_line(error)}). Save it again.") from error
    return found


def _described(
    path: Path, zipped: bool, place: str | bytes, name: str, dataset: Any
) -> StoredArray:
    try:
        shape, dtype = dataset.shape, dataset.dtype
        if shape is None:
            return broken(name, "it is empty")
        fault = shape_fault((int(side) for side in shape), dtype.itemsize)
        if dataset.is_virtual or dataset.external:
            fault = "its data are in another file; allowed: data in the file itself"
    except Exception as error:  # types that NumPy lacks
        return broken(name, f"it cannot be read ({error_line(error)})")
    if fault:
        return broken(name, fault)
    turned, layout = _outputs_first(name, tuple(shape))
    stored = of_numpy(name, turned, dtype, partial(_read, path, zipped, place))
    return replace(stored, layout=layout)


def _outputs_first(name: str, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Shape with the outputs of a Keras kernel first, and the layout that was assumed."""
    if len(shape) < 3:
        return shape, ""
    words = re.split(r"[/:_\d]+", name.lower())
    if len(shape) == 3 and "attention" in words:
        # The dense layers of Keras' attention: (inputs, heads, dimensions), and back.
        if "output" in words:
            sides = (shape[0] * shape[1], shape[2])
            return sides, "(heads, dimensions, outputs) of Keras' attention, heads joined"
        sides = (shape[0], shape[1] * shape[2])
        return sides, "(inputs, heads, dimensions) of Keras' attention, heads joined"
    text = "filters of Keras, outputs last: read as outputs x all other axes"
    return (shape[-1], *shape[:-1]), text


def _read(path: Path, zipped: bool, place: str | bytes) -> np.ndarray:
    with _file(path, zipped=zipped) as file:
        try:
            dataset = file[place]
            # A compressed or unwritten data set may announce any size.
            size = dataset.size * max(dataset.dtype.itemsize, 1)
            if size > max(1e7, MOST_PACKED * dataset.id.get_storage_size()):
                raise InvalidData(f"its shape {dataset.shape} needs more data than are stored.")
            check_unpacked(size, "the array")
            array = np.asarray(dataset[()])
        except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
            raise InvalidData(f"it is damaged ({error_line(error)}).") from error
    shape, layout = _outputs_first(name_of(place), array.shape)
    if layout and len(shape) == array.ndim:
        return np.moveaxis(array, -1, 0)
    return array.reshape(shape)
