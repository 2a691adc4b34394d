"""NPY and NPZ files from untrusted sources: headers and sizes are checked before reading.

Nothing is ever unpickled. An archive may unpack to half of the free memory.
"""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from solvable.errors import InvalidData, MemoryLimitExceeded, quoted
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
"""Exceptions of reading a damaged archive."""

MOST_PACKED = 1100  # largest ratio of unpacked to packed bytes; 1032 for deflate

ANEW = "Save it again with numpy.save or numpy.savez."


@dataclass(frozen=True)
class Member:
    """One array of an NPZ file, read on request."""

    path: Path
    place: str  # name in the archive
    shape: tuple[int, ...] = ()
    dtype: np.dtype | None = None  # None if the header is invalid
    size: int = 0  # unpacked size in bytes
    fault: str = ""  # why the array cannot be read

    @property
    def name(self) -> str:
        """Name under which the array was saved."""
        return self.place.removesuffix(".npy")

    def read(self) -> np.ndarray:
        """Read the array; raises :class:`InvalidData` or :class:`MemoryLimitExceeded`."""
        if self.fault:
            raise InvalidData(f"{self.fault}.")
        check_unpacked(self.size, f"{self.path}: {self.name!r}")
        try:
            with _archive(self.path, _stamp(self.path)).open(self.place) as stream:
                return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        except ZIP_ERRORS as error:
            raise InvalidData(f"it is damaged ({error}).") from error


def npz_members(path: Path) -> list[Member]:
    """List the arrays of an archive from their headers, in one pass."""
    try:
        archive = _archive(path, _stamp(path))
    except ZIP_ERRORS as error:
        raise InvalidData(f"{path} is damaged or not an NPZ file ({error}). {ANEW}") from error
    return [_member(path, archive, entry) for entry in archive.infolist()]


def _member(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # other compression methods unpack whole blocks of any size
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
    if entry.file_size > MOST_PACKED * max(entry.compress_size, 1):
        fault = "it is damaged: it announces more data than can be packed into its size"
        return Member(path, entry.filename, shape, dtype, fault=fault)
    if needed > entry.file_size and not dtype.hasobject:
        fault = "it is truncated: its header announces more data"
        return Member(path, entry.filename, shape, dtype, fault=fault)
    return Member(path, entry.filename, shape, dtype, entry.file_size)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return a key that changes if another file replaces this one."""
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=2)  # two archives: weights, and weights before training
def _archive(path: Path, stamp: tuple[int, int, int]) -> zipfile.ZipFile:
    """Return an open archive from a cache, as reading its directory is slow."""
    return zipfile.ZipFile(path)


def check_unpacked(size: float, what: str, most: float | None = None) -> None:
    """Refuse arrays that unpack to more than half of the free memory."""
    if size < 1e7:
        return  # small arrays: checking the free memory would take longer than reading
    most = unpacked_limit() if most is None else most
    if size > most:
        raise MemoryLimitExceeded(
            f"{what} unpacks to {gigabytes(size)}; allowed: half of the memory that is free, "
            f"{gigabytes(most)}. Free memory, or split the file."
        )


def unpacked_limit() -> float:
    """Return the number of bytes that an archive may unpack to."""
    return min(available_bytes(), 2.0**50) / 2


def npy_header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype]:
    """Read and check shape and type in a header; the stream then stands after it."""
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about literals in an invalid header
            shape, _, dtype = read(stream)
    except (
        Exception
    ) as error:  # a header is a Python literal, so a crafted one can raise any exception
        raise InvalidData(f"{where} is damaged or not a NumPy array ({error}). {ANEW}") from error
    fault = shape_fault(shape, dtype.itemsize)
    if fault:
        raise InvalidData(f"{where} is damaged: {fault}. {ANEW}")
    return shape, dtype


def shape_fault(shape: Iterable[Any], width: int) -> str:
    """Return why an array of this shape and entry size cannot exist; empty if it can."""
    sides = list(islice(shape, 33))  # more axes are not read
    if isinstance(shape, str | bytes) or any(type(side) is not int or side < 0 for side in sides):
        return f"its shape {_short(sides)} is invalid; allowed: whole numbers from 0"
    # NumPy allows 2^63 bytes, counted without zero sides, and 64 axes. Sides are compared before their
    # product, because a file may hold numbers of thousands of digits.
    if (
        len(sides) > 32
        or max(sides, default=0) >= 2**63
        or max(width, 1) * math.prod(max(side, 1) for side in sides) >= 2**63
    ):
        return f"its shape {_short(sides)} is larger than any array can be"
    return ""


def _short(sides: Sequence[Any]) -> str:
    text = ", ".join(quoted(side) for side in sides[:33])
    text = f"({text})"
    return text if len(text) <= 60 else f"{text[:57]}..."


def holds_objects(path: Path) -> InvalidData:
    """Return the error for a file with pickled entries."""
    return InvalidData(
        f"{path} holds Python objects (rows or images of different length, or mixed types), which "
        "could run code when read; allowed: arrays of numbers or of text. Bring all rows to one "
        f"size. {ANEW}"
    )


def open_npy(path: Path, *, mapped: bool = True) -> np.ndarray:
    """Read a ``.npy`` file, memory-mapped by default."""
    with path.open("rb") as stream:
        shape, dtype = npy_header(stream, str(path))
        held = path.stat().st_size - stream.tell()
    if dtype.hasobject:
        raise holds_objects(path)
    if dtype.itemsize * math.prod(shape) > held:
        raise InvalidData(
            f"{path} is damaged: its header announces shape {shape} of {dtype} and {held} bytes are "
            f"there. {ANEW}"
        )
    try:
        array: np.ndarray = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise InvalidData(f"{path} is damaged ({error}). {ANEW}") from error
    return array
