"""Arrays of a safetensors file; sizes in the header are checked before anything is read."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights, broken, precision_of
from solvable.errors import InvalidData
from solvable.numpy_files import shape_fault

# Largest size of a safetensors header in bytes, as in the reference implementation.
HEADER_LIMIT = 100_000_000

_PLAIN = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|u1",
}  # fmt: skip

# Exponent bits and bias of the eight-bit types; E8M0, the type of scales, has no mantissa.
_EIGHT_BITS = {"F8_E4M3": (4, 7), "F8_E5M2": (5, 15), "F8_E8M0": (8, 127)}


def open_safetensors(path: Path) -> Weights:
    """Return the arrays in the header of a safetensors file, and its metadata."""
    header, length, total = read_header(path)
    # Results of the rest of a cut file would look complete.
    if (needed := 8 + length + _last_byte(header)) > total:
        raise InvalidData(
            f"{path} is cut: it has {total:,} bytes of {needed:,}. Copy or download it again."
        )
    arrays = tuple(
        _described(path, name, entry, 8 + length, total)
        for name, entry in header.items()
        if name != "__metadata__"
    )
    stored = header.get("__metadata__")
    table = {str(k): str(v) for k, v in stored.items()} if isinstance(stored, dict) else {}
    return Weights(path.name, arrays, (path,), ((path.name, table),))


def read_header(path: Path) -> tuple[dict[str, Any], int, int]:
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
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise InvalidData(
            f"{path} has a damaged safetensors header ({error}). Save it again."
        ) from error
    if not isinstance(header, dict):
        raise InvalidData(
            f"{path} has a damaged safetensors header: no table of arrays. Save it again."
        )
    return header, length, total


def _last_byte(header: dict[str, Any]) -> int:
    """Return the largest end of data in a header; entries that contradict themselves do not count."""
    ends = [0]
    for name, entry in header.items():
        try:
            begin, end = entry["data_offsets"]
            width = _width(str(entry["dtype"]))
            # The shape is checked before its product, which may take any time or memory.
            if name == "__metadata__" or shape_fault(entry["shape"], width):
                continue
            if 0 <= begin <= end and end - begin == width * math.prod(entry["shape"]):
                ends.append(end)
        except (KeyError, TypeError, ValueError):
            continue
    return max(ends)


def _width(dtype: str) -> int:
    """Return the bytes of an entry; 0 for a type that is not supported."""
    width = 2 if dtype == "BF16" else int(dtype in _EIGHT_BITS)
    return np.dtype(_PLAIN[dtype]).itemsize if dtype in _PLAIN else width


def _described(path: Path, name: str, entry: Any, offset: int, total: int) -> StoredArray:
    """Describe the array of one header entry; a fault in the entry is raised when the array is read."""
    try:
        dtype = str(entry["dtype"])[:40]
        shape = tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if type(begin) is not int or type(end) is not int:
            raise TypeError
    except (KeyError, TypeError, ValueError):
        return broken(name, "its entry in the header is damaged")
    width = _width(dtype)
    fault = shape_fault(shape, width) if width else f"its type {dtype} is not supported"
    if fault:
        return broken(name, fault, (), dtype)
    if not 0 <= begin <= end <= total - offset or end - begin != width * math.prod(shape):
        return broken(name, "its position does not fit its shape", shape, dtype)
    reader = partial(_read_tensor, path, offset + begin, end - begin, dtype, shape)
    return StoredArray(name, shape, dtype, precision_of(dtype), reader, "", True, bool(shape))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary; raise if a name stands there twice, because only one entry can be kept."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name occurs twice")
    return table


def _read_tensor(
    path: Path,
    begin: int,
    count: int,
    dtype: str,
    shape: tuple[int, ...],
    member: int | None = None,
) -> np.ndarray:
    if member is not None:
        count, shape = count // shape[0], shape[1:]
        begin += member * count
    stored = np.dtype(_PLAIN.get(dtype, "<u2" if dtype == "BF16" else "|u1"))
    # Entries are read into their place, and converted in blocks, because an array may be large.
    data = np.empty(count // stored.itemsize, stored if dtype in _PLAIN else np.float32)
    block = max(data.size, 1) if dtype in _PLAIN else 2**20
    with path.open("rb") as stream:
        stream.seek(begin)
        for start in range(0, data.size, block):
            part = data[start : start + block]
            raw = part if dtype in _PLAIN else np.empty(part.size, stored)
            done = stream.readinto(raw.view(np.uint8).data)
            if done != raw.nbytes:
                done += start * stored.itemsize
                raise InvalidData(f"the file is truncated: {done} of {count} bytes could be read.")
            if dtype == "BF16":
                # bfloat16 is the upper half of float32.
                np.left_shift(raw, 16, out=part.view(np.uint32), dtype=np.uint32)
            elif dtype not in _PLAIN:
                part[:] = eight_bits(*_EIGHT_BITS[dtype])[raw]
    return data.reshape(shape)


def eight_bits(exponent_bits: int, bias: int) -> np.ndarray:
    """Return the 256 values of an eight-bit floating-point type."""
    code = np.arange(256)
    if exponent_bits == 8:  # no sign, no zero, and one code for NaN
        return np.where(code < 255, 2.0 ** (code - bias), np.nan).astype(np.float32)
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
