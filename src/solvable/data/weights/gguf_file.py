"""Tensors of GGUF files; quantised ones are converted to float32 by the package gguf."""

from __future__ import annotations

import math
import mmap
import struct
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights, broken, package, precision_of
from solvable.errors import InvalidData, quoted
from solvable.numpy_files import shape_fault
from solvable.paths import error_line
from solvable.plots.words import counted, listed

_DIRECT = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "|i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
}  # fmt: skip

# Bytes of each type of a field, by its code; strings and arrays have no fixed size.
_SIZES = dict(zip((*range(8), 10, 11, 12), [f"<{code}" for code in "BbHhIif?Qqd"], strict=True))
_STRING, _ARRAY = 8, 9
_LONGEST_LIST = 10_000  # elements of a field that is read: one number a layer


def open_gguf(path: Path) -> Weights:
    """Return the tensors of a GGUF file; the number of heads comes from its fields."""
    gguf = package("gguf", "weights", path)
    with path.open("rb") as stream:
        start = stream.read(24)
        if start[:4] == b"GGUF" and len(start) == 24 and start[4:6] == b"\0\0":
            raise InvalidData(
                f"{path} has the byte order of another machine; allowed: little-endian GGUF files. "
                "Convert it with gguf-convert-endian."
            )
        try:
            if start[:4] != b"GGUF" or len(start) < 24:
                raise ValueError("it does not begin as a GGUF file")
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                settings, arrays = _Header(gguf, path, data).content()
        except (ValueError, struct.error, KeyError) as error:
            raise InvalidData(
                f"{path} is damaged or not a GGUF file ({error_line(error)}). Download or convert it "
                "again."
            ) from error
    notes = _warning([array for array in arrays if array.is_matrix])
    return Weights(path.name, tuple(arrays), (path,), ((path.name, settings),), notes)


class _Header:
    """Fields and tensors in the header of a GGUF file; every count is compared with the file's size.

    The reader of the package gguf makes several arrays for each element before it checks a count, so
    that a file of 60 bytes can take any memory.
    """

    def __init__(self, gguf: Any, path: Path, data: mmap.mmap) -> None:
        self.gguf, self.path, self.data, self.place = gguf, path, data, 4

    def content(self) -> tuple[dict[str, object], list[StoredArray]]:
        """Return the fields that describe attention, as config.json names them, and the tensors."""
        version = self._number("<I")
        if version not in (2, 3):
            raise ValueError(f"its version is {version}; allowed: 2 and 3")
        tensors, fields = self._count(24), self._count(13)
        values: dict[str, object] = {}
        alignment: Any = 32
        for _ in range(fields):
            key = self._text()
            name = _setting(key)
            value = self._value(self._number("<I"), kept=bool(name) or key == "general.alignment")
            if name:
                values[name] = value
            elif key == "general.alignment":
                alignment = value
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"its alignment is {quoted(alignment)}; allowed: powers of two")
        entries = [self._tensor() for _ in range(tensors)]
        begin = -(-self.place // alignment) * alignment
        return values, [self._described(begin, *entry) for entry in entries]

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.data, self.place)
        self.place += struct.calcsize(form)
        return value

    def _count(self, width: int) -> int:
        """Read a number of entries, which take at least this many bytes each."""
        count: int = self._number("<Q")
        if count * width > len(self.data) - self.place:
            raise ValueError(f"it announces {count} entries, and has {len(self.data)} bytes")
        return count

    def _text(self) -> str:
        length = self._count(1)
        self.place += length
        return self.data[self.place - length : self.place].decode("utf-8", "replace")

    def _value(self, kind: int, *, kept: bool, depth: int = 0) -> Any:
        """Read a value, or skip it."""
        if kind == _STRING:
            if kept:
                return self._text()
            length = self._count(1)
            self.place += length
            return None
        if kind != _ARRAY:
            return self._number(_SIZES[kind])
        inner = self._number("<I")
        if depth > 4:
            raise ValueError("its arrays are nested more than 4 times")
        if inner in _SIZES:
            count = self._count(struct.calcsize(_SIZES[inner]))
            if kept and count <= _LONGEST_LIST:
                return [self._number(_SIZES[inner]) for _ in range(count)]
            self.place += count * struct.calcsize(_SIZES[inner])
            return None
        for _ in range(self._count(8)):
            self._value(inner, kept=False, depth=depth + 1)
        return None

    def _tensor(self) -> tuple[str, tuple[int, ...], str, int]:
        name, axes = self._text(), self._number("<I")
        if axes > 8:
            raise ValueError(f"a tensor has {axes} axes; allowed: at most 8")
        # GGUF lists the axis of the inputs first.
        shape = tuple(reversed([self._number("<Q") for _ in range(axes)]))
        kind = self.gguf.GGMLQuantizationType(self._number("<I")).name
        return name, shape, kind, self._number("<Q")

    def _described(
        self, begin: int, name: str, shape: tuple[int, ...], kind: str, offset: int
    ) -> StoredArray:
        fault = shape_fault(shape, 8)
        if fault:
            return broken(name, fault, (), kind)
        block, width = self.gguf.GGML_QUANT_SIZES[self.gguf.GGMLQuantizationType[kind]]
        count = math.prod(shape) * width // block
        if begin + offset + count > len(self.data):
            raise ValueError(f"it is cut: {name[:80]!r} ends after {len(self.data)} bytes")
        reader = partial(_read, self.path, begin + offset, count, kind, shape)
        # Quantised types: half of the spacing of 8-bit integers, as for bfloat16, and so an upper bound
        # on how exactly entries are compared.
        precision = precision_of(kind) or (0.0 if kind in _DIRECT else 2.0**-7)
        return StoredArray(name, shape, kind, precision, reader, members=len(shape) > 1)


def _setting(key: str) -> str:
    """Return the name in config.json of a field that describes attention; empty for others."""
    if key == "general.architecture":
        return "model_type"
    if key.endswith(".attention.head_count"):
        return "num_attention_heads"
    return "num_key_value_heads" if key.endswith(".attention.head_count_kv") else ""


def _read(
    path: Path, begin: int, count: int, kind: str, shape: tuple[int, ...], member: int | None = None
) -> np.ndarray:
    gguf = package("gguf", "weights", path)
    if member is not None:
        count, shape = count // shape[0], shape[1:]
        begin += member * count
    with path.open("rb") as stream:
        stream.seek(begin)
        data = stream.read(count)
    if len(data) != count:
        raise InvalidData(f"the file is truncated: {len(data)} of {count} bytes could be read.")
    try:
        if kind in _DIRECT:
            return np.frombuffer(data, dtype=_DIRECT[kind]).reshape(shape)
        code = gguf.GGMLQuantizationType[kind]
        sides = gguf.quant_shape_to_byte_shape(shape, code)
        blocks = np.frombuffer(data, dtype=np.uint8).reshape(sides)
        with np.errstate(all="ignore"):  # damaged scales give entries that are not finite
            return np.asarray(gguf.dequantize(blocks, code)).reshape(shape)
    except (ValueError, NotImplementedError, KeyError) as error:
        raise InvalidData(f"type {kind} cannot be converted ({error_line(error)}).") from error


def _warning(matrices: list[StoredArray]) -> tuple[str, ...]:
    """Sentence on what quantisation does to a spectrum; none if all matrices are floating-point."""
    kinds = Counter(
        stored.dtype for stored in matrices if stored.dtype not in (*_DIRECT, "BF16", "unknown")
    )
    if not kinds:
        return ()
    which = listed([f"{count} as {kind}" for kind, count in kinds.most_common()], 5)
    return (
        f"{counted(kinds.total(), 'matrix is', 'matrices are')} quantised ({which}). The rounding of "
        "each entry acts like independent noise, of about 0.5 % of the norm at 8 bits and 9 % at 4 bits. "
        "With 5 bits or fewer it fills singular values that were zero, and hides features below it; "
        "features far above the edge hardly change. For an exact spectrum use the weights before "
        "quantisation.",
    )
