"""Read the matrices in a file of weights one at a time, without unpickling."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.numpy_files import npy_header, npz_members, open_npy, shape_fault
from solvable.paths import check_path, printable

# Largest size of a safetensors header in bytes, as in the reference implementation.
HEADER_LIMIT = 100_000_000

ENDINGS = (".safetensors", ".npz", ".npy")  # endings of the weight files that can be read

_PLAIN = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|u1",
}  # fmt: skip

_PRECISION = {"F64": 2.0**-52, "F32": 2.0**-23, "F16": 2.0**-10, "BF16": 2.0**-7}

_NUMPY_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16"}


@dataclass(frozen=True)
class StoredArray:
    """Array in a file; its entries are read on request."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # type of the entries in the file, such as "BF16" or "float32"
    precision: float  # relative spacing of neighbouring numbers in this type; 0 for integers
    reader: Callable[[], np.ndarray]  # function that returns the entries or raises InvalidData
    layout: str = ""  # sentence about the split of a fused projection

    def read(self) -> np.ndarray:
        """Read the entries as stored; bfloat16 is converted to float32."""
        return self.reader()


def iter_weights(path: str | Path) -> Iterator[StoredArray]:
    """Yield the arrays of a .safetensors, .npz or .npy file; sizes in headers are checked first."""
    path = check_path(path)
    if not path.is_file():
        raise InvalidData(f"{path} is not a file; allowed: a file ending in {', '.join(ENDINGS)}.")
    kinds = {".safetensors": _safetensors, ".npz": _npz, ".npy": _npy}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise InvalidData(
            f"{path} ends in {path.suffix!r}; allowed: {', '.join(ENDINGS)}. Files that hold Python "
            "objects (.pt, .pkl, .joblib) are not read: save the state dict as safetensors."
        )
    yield from kind(path)


def stored_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file, or an empty dictionary for other files."""
    if path.suffix.lower() != ".safetensors":
        return {}
    stored = _header(path)[0].get("__metadata__")
    return {str(k): str(v) for k, v in stored.items()} if isinstance(stored, dict) else {}


def _safetensors(path: Path) -> Iterator[StoredArray]:
    header, length, total = _header(path)
    for name, entry in header.items():
        if name != "__metadata__":
            yield _described(path, name, entry, 8 + length, total)


def _header(path: Path) -> tuple[dict[str, Any], int, int]:
    """Read the header of a safetensors file; return it with its length and the file size."""
    total = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if total < 8 or length > min(total - 8, HEADER_LIMIT):
            raise InvalidData(
                f"{path} is truncated or not a safetensors file: it has {total} bytes, but its header "
                f"should have {length} bytes. Save it again."
            )
        text = stream.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidData(
            f"{path} has a damaged safetensors header ({error}). Save it again."
        ) from error
    if not isinstance(header, dict):
        raise InvalidData(
            f"{path} has a damaged safetensors header: no table of arrays. Save it again."
        )
    return header, length, total


def _described(path: Path, name: str, entry: Any, offset: int, total: int) -> StoredArray:
    """Describe the array of one header entry; a fault in the entry is raised when the array is read."""
    name = printable(name)  # JSON may contain unpaired surrogates, which cannot be written.
    try:
        dtype = str(entry["dtype"])[:40]
        shape = tuple(entry["shape"])
        begin, end = entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        return _broken(name, "its entry in the header is damaged")
    if type(begin) is not int or type(end) is not int:
        return _broken(name, "its position in the header is damaged")
    width = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}.get(dtype)
    if dtype in _PLAIN:
        width = np.dtype(_PLAIN[dtype]).itemsize
    if width is None:
        return _broken(name, f"its type {dtype} is not supported", (), dtype)
    fault = shape_fault(shape, width)
    if fault:
        return _broken(name, fault, (), dtype)
    if not 0 <= begin <= end <= total - offset or end - begin != width * math.prod(shape):
        return _broken(name, "its position is outside the file: the file is cut", shape, dtype)
    reader = partial(_read_tensor, path, offset + begin, end - begin, dtype, shape)
    return StoredArray(name, shape, dtype, _PRECISION.get(dtype, 0.0), reader)


def _broken(
    name: str, reason: str, shape: tuple[int, ...] = (), dtype: str = "unknown"
) -> StoredArray:
    def reader() -> np.ndarray:
        raise InvalidData(f"{reason}.")

    return StoredArray(name, shape, dtype, 0.0, reader)


def _read_tensor(
    path: Path, begin: int, count: int, dtype: str, shape: tuple[int, ...]
) -> np.ndarray:
    with path.open("rb") as stream:
        stream.seek(begin)
        data = stream.read(count)
    if len(data) != count:
        raise InvalidData(f"the file is truncated: {len(data)} of {count} bytes could be read.")
    if dtype in _PLAIN:
        return np.frombuffer(data, dtype=_PLAIN[dtype]).reshape(shape)
    if dtype == "BF16":
        # bfloat16 is the upper half of float32.
        wide = np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    table = _eight_bits(*((4, 7) if dtype == "F8_E4M3" else (5, 15)))
    return table[np.frombuffer(data, dtype=np.uint8)].reshape(shape)


def _eight_bits(exponent_bits: int, bias: int) -> np.ndarray:
    """Return the 256 values of an eight-bit floating-point type."""
    code = np.arange(256)
    mantissa_bits = 7 - exponent_bits
    mantissa = (code & (2**mantissa_bits - 1)) / 2**mantissa_bits
    exponent = (code >> mantissa_bits) & (2**exponent_bits - 1)
    size = np.where(
        exponent > 0, (1 + mantissa) * 2.0 ** (exponent - bias), mantissa * 2.0 ** (1 - bias)
    )
    if exponent_bits == 5:
        size[exponent == 31] = np.where(mantissa[exponent == 31] > 0, np.nan, np.inf)
    else:
        # E4M3 has no infinity, and one code for NaN per sign.
        size[(code & 127) == 127] = np.nan
    return np.where(code > 127, -size, size).astype(np.float32)


def _npy(path: Path) -> Iterator[StoredArray]:
    with path.open("rb") as stream:
        shape, dtype = npy_header(stream, str(path))
    # The file is memory-mapped, so that a wrong size in the header takes no memory.
    yield _of_numpy(path.stem, shape, dtype, partial(open_npy, path))


def _npz(path: Path) -> Iterator[StoredArray]:
    for member in npz_members(path):
        if member.fault or member.dtype is None:
            yield _broken(member.name, member.fault, member.shape)
        else:
            yield _of_numpy(member.name, member.shape, member.dtype, member.read)


def _of_numpy(
    name: str, shape: tuple[int, ...], dtype: np.dtype, reader: Callable[[], np.ndarray]
) -> StoredArray:
    if dtype.kind not in "fiub":
        seen = "Python objects, which could run code" if dtype.hasobject else f"type {dtype}"
        return _broken(name, f"it holds {seen}; allowed: real numbers", shape, str(dtype))
    precision = _PRECISION.get(_NUMPY_NAMES.get(dtype.name, ""), 0.0)
    return StoredArray(name, shape, dtype.name, precision, reader)
