"""NPY and NPZ files of any origin: headers and sizes are checked before memory is taken.

Nothing is ever unpickled. An archive may unpack to half of the memory that is free.
"""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.memory import available_bytes, gigabytes

ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What reading a damaged archive raises."""

ANEW = "Save it anew with numpy.save or numpy.savez."


@dataclass(frozen=True)
class Member:
    """One array of an NPZ file, read when asked for."""

    path: Path
    place: str  # in the archive
    shape: tuple[int, ...] = ()
    dtype: np.dtype | None = None  # None if the header cannot be used
    size: int = 0  # bytes that it unpacks to
    fault: str = ""  # why it cannot be read

    @property
    def name(self) -> str:
        """The name it was saved under."""
        return self.place.removesuffix(".npy")

    def read(self) -> np.ndarray:
        """The array; raises :class:`InvalidData` or :class:`MemoryLimitExceeded`."""
        if self.fault:
            raise InvalidData(f"{self.fault}.")
        check_unpacked(self.size, f"{self.path}: {self.name!r}")
        try:
            with _archive(self.path, _stamp(self.path)).open(self.place) as stream:
                return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        except ZIP_ERRORS as error:
            raise InvalidData(f"it is damaged ({error}).") from error


def npz_members(path: Path) -> list[Member]:
    """Arrays of an archive by their headers, read in one pass."""
    try:
        archive = _archive(path, _stamp(path))
    except ZIP_ERRORS as error:
        raise InvalidData(f"{path} is damaged or no NPZ file ({error}). {ANEW}") from error
    return [_member(path, archive, entry) for entry in archive.infolist()]


def _member(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Other methods unpack a block whole, however large it is.
        return Member(
            path, entry.filename, fault="it is packed in a way that numpy.savez never uses"
        )
    try:
        with archive.open(entry) as stream:
            shape, dtype = npy_header(stream, entry.filename.removesuffix(".npy"))
    except InvalidData as error:
        return Member(path, entry.filename, fault=str(error).rstrip("."))
    except ZIP_ERRORS as error:
        return Member(path, entry.filename, fault=f"it is damaged ({error})")
    needed = dtype.itemsize * math.prod(shape)
    if needed > entry.file_size and not dtype.hasobject:
        fault = "it is cut: its header promises more than there is"
        return Member(path, entry.filename, shape, dtype, fault=fault)
    return Member(path, entry.filename, shape, dtype, entry.file_size)


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes when another file takes the name."""
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=2)  # weights, and those before training
def _archive(path: Path, stamp: tuple[int, int, int]) -> zipfile.ZipFile:
    """An archive kept open: its directory takes as long to read as all of its small arrays."""
    return zipfile.ZipFile(path)


def check_unpacked(size: float, what: str, most: float | None = None) -> None:
    """Refuse what unpacks to more than half of the memory that is free, or was when it began."""
    if size < 1e7:
        return  # looking for free memory would take longer than reading it
    most = unpacked_limit() if most is None else most
    if size > most:
        raise MemoryLimitExceeded(
            f"{what} unpacks to {gigabytes(size)}; allowed: half of the memory that is free, "
            f"{gigabytes(most)}. Free memory, or split the file."
        )


def unpacked_limit() -> float:
    """Bytes that a packed file may unpack to."""
    return min(available_bytes(), 2.0**50) / 2


def npy_header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type that a header announces, checked; the stream is left behind it."""
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of literals in a header that is no header
            shape, _, dtype = read(stream)
    except Exception as error:  # a header is a Python literal: a crafted one raises anything
        raise InvalidData(f"{where} is damaged or no NumPy array ({error}). {ANEW}") from error
    fault = shape_fault(shape, dtype.itemsize)
    if fault:
        raise InvalidData(f"{where} is damaged: {fault}. {ANEW}")
    return shape, dtype


def shape_fault(shape: Iterable[Any], width: int) -> str:
    """Why no array has this shape with entries of so many bytes; empty if one may."""
    sides = list(shape)
    if any(type(side) is not int or side < 0 for side in sides):
        return f"its shape {_short(sides)} is none; allowed: whole numbers from 0"
    # NumPy counts bytes in 63 bits, as if no side were zero, and axes up to 64.
    if len(sides) > 32 or max(width, 1) * math.prod(max(side, 1) for side in sides) >= 2**63:
        return f"its shape {_short(sides)} is larger than any array can be"
    return ""


def _short(sides: Sequence[Any]) -> str:
    text = str(tuple(sides))
    return text if len(text) <= 60 else f"{text[:57]}..."


def holds_objects(path: Path) -> InvalidData:
    """The error for a file whose entries are pickled."""
    return InvalidData(
        f"{path} holds Python objects (rows or images of different length, or mixed types), which "
        "could run code when read; allowed: arrays of numbers or of text. Bring all rows to one "
        f"size. {ANEW}"
    )


def open_npy(path: Path, *, mapped: bool = True) -> np.ndarray:
    """Array of a ``.npy`` file, memory-mapped unless asked otherwise."""
    with path.open("rb") as stream:
        shape, dtype = npy_header(stream, str(path))
        held = path.stat().st_size - stream.tell()
    if dtype.hasobject:
        raise holds_objects(path)
    if dtype.itemsize * math.prod(shape) > held:
        raise InvalidData(
            f"{path} is damaged: its header promises shape {shape} of {dtype} and {held} bytes are "
            f"there. {ANEW}"
        )
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise InvalidData(f"{path} is damaged ({error}). {ANEW}") from error
    return array
