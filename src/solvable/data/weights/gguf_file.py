"""Tensors of GGUF files; quantised ones are converted to float32 by the package gguf."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights, broken, package, precision_of
from solvable.errors import InvalidData
from solvable.numpy_files import shape_fault
from solvable.paths import error_line
from solvable.plots.words import counted, listed

_DIRECT = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I8": "|i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
}


def open_gguf(path: Path) -> Weights:
    """Return the tensors of a GGUF file; the number of heads comes from its fields."""
    gguf = package("gguf", "weights", path)
    try:
        reader = gguf.GGUFReader(path)
        settings = _settings(reader)
    except Exception as error:  # truncated or hostile files raise any exception
        raise InvalidData(
            f"{path} is damaged or not a GGUF file ({error_line(error)}). Download or convert it again."
        ) from error
    if str(reader.byte_order) == "S":
        raise InvalidData(
            f"{path} has the byte order of another machine; allowed: little-endian GGUF files. Convert "
            "it with gguf-convert-endian."
        )
    arrays = tuple(_described(path, tensor) for tensor in reader.tensors)
    notes = _warning([array for array in arrays if array.is_matrix])
    return Weights(path.name, arrays, (path,), ((path.name, settings),), notes)


def _settings(reader: Any) -> dict[str, object]:
    """Return the fields that describe attention, under the names of config.json."""
    values: dict[str, object] = {}
    for field, name in (
        ("general.architecture", "model_type"),
        (".attention.head_count", "num_attention_heads"),
        (".attention.head_count_kv", "num_key_value_heads"),
    ):
        for key, entry in reader.fields.items():
            if key == field or (field.startswith(".") and key.endswith(field)):
                values[name] = entry.contents()
    return values


def _described(path: Path, tensor: Any) -> StoredArray:
    # GGUF lists the axis of the inputs first.
    shape = tuple(int(side) for side in reversed(tensor.shape.tolist()))
    kind = tensor.tensor_type.name
    fault = shape_fault(shape, 8)
    if fault:
        return broken(tensor.name, fault, (), kind)
    reader = partial(_read, path, int(tensor.data_offset), int(tensor.n_bytes), kind, shape)
    # Quantised types: half of the spacing of 8-bit integers, as for bfloat16, and so an upper bound
    # on how exactly entries are compared.
    precision = precision_of(kind) or (0.0 if kind in _DIRECT else 2.0**-7)
    return StoredArray(tensor.name, shape, kind, precision, reader)


def _read(path: Path, begin: int, count: int, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    gguf = package("gguf", "weights", path)
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
