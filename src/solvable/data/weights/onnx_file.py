"""Weights of an ONNX graph and of the graphs in its nodes: initialisers and constants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.stored import (
    StoredArray,
    Weights,
    broken,
    package,
    precision_of,
    stamp_of,
)  # fmt: skip
from solvable.errors import InvalidData
from solvable.numpy_files import shape_fault
from solvable.paths import error_line, place_inside

_TYPES = {
    "FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "F8_E4M3FN", "FLOAT8E5M2": "F8_E5M2", "FLOAT8E4M3FNUZ": "F8_E4M3FNUZ",
    "FLOAT8E5M2FNUZ": "F8_E5M2FNUZ",
}  # fmt: skip


def open_onnx(path: Path) -> Weights:
    """Return the initialisers and constants of a graph; arrays in other files are read on request."""
    tensors = _tensors(path, stamp_of(path))
    arrays = tuple(
        _described(path, place, name, tensor) for place, (name, tensor) in enumerate(tensors)
    )
    files = {path, *(_data_of(path, tensor)[0] for _, tensor in tensors)}
    return Weights(path.name, arrays, tuple(sorted(files)))


@lru_cache(maxsize=2)  # the weights, and the weights before training
def _tensors(path: Path, stamp: tuple[int, int, int]) -> list[tuple[str, Any]]:
    onnx = package("onnx", "weights", path)
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf raises its own exceptions for damaged files
        raise InvalidData(
            f"{path} is damaged or not an ONNX file ({error_line(error)}). Export it again."
        ) from error
    return list(_tensors_of_graph(model.graph, ""))


def _tensors_of_graph(graph: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield initialisers, constants, and those of graphs in nodes: If, Loop, Scan."""
    for tensor in graph.initializer:
        yield f"{place}{_text(tensor.name)}", tensor
    for number, node in enumerate(graph.node):
        for attribute in node.attribute:
            # Some exporters store weights as constants.
            if node.op_type == "Constant" and attribute.name == "value" and attribute.HasField("t"):
                yield f"{place}{_text(node.output[0] if node.output else node.name)}", attribute.t
            # protobuf refuses graphs nested more than 100 times
            label = _text(node.name) or f"{_text(node.op_type)}_{number}"
            inner = [attribute.g] if attribute.HasField("g") else []
            for part in (*inner, *attribute.graphs):
                yield from _tensors_of_graph(part, f"{place}{label}.{_text(attribute.name)}/")


def _text(name: str | bytes) -> str:
    """Return a name; protobuf gives bytes for damaged text."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _described(path: Path, place: int, name: str, tensor: Any) -> StoredArray:
    onnx = package("onnx", "weights", path)
    shape = tuple(int(side) for side in tensor.dims)
    known = onnx.TensorProto.DataType.values()
    kind = onnx.TensorProto.DataType.Name(tensor.data_type) if tensor.data_type in known else ""
    dtype = _TYPES.get(kind, kind.lower() or "unknown")
    fault = shape_fault(shape, 1)
    if not fault and kind in ("", "UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128"):
        fault = f"it holds type {kind or tensor.data_type}; allowed: real numbers"
    fault = fault or _data_of(path, tensor)[1]
    if not fault and math.prod(shape) * _bits(onnx, tensor.data_type) > 8 * _held(path, tensor):
        fault = f"its shape {shape} needs more data than the file holds"
    if fault:
        return broken(name, fault, shape, dtype)
    return StoredArray(name, shape, dtype, precision_of(dtype), partial(_read, path, place))


def _data_of(path: Path, tensor: Any) -> tuple[Path, str]:
    """Return the file that holds the entries; or the graph's file, and why they cannot be read."""
    if tensor.data_location != 1:
        return path, ""
    table = _external(tensor)
    name = table.get("location", "")
    try:
        place = place_inside(path.parent, name)
    except InvalidData as error:
        return path, f"its data are said to be in another file: {error}"
    if not place.is_file():
        return path, f"its data are in the file {name[:80]!r}, which is missing"
    numbers = [table[key] for key in ("offset", "length") if key in table]
    if not all(number.isdecimal() and len(number) < 19 for number in numbers):
        return path, f"its place in {name[:80]!r} is damaged"
    return place, ""


def _external(tensor: Any) -> dict[str, str]:
    return {_text(entry.key): _text(entry.value) for entry in tensor.external_data}


def _held(path: Path, tensor: Any) -> int:
    """Return the number of bytes that are stored for a tensor, or more."""
    if tensor.data_location != 1:
        return int(tensor.ByteSize())
    table = _external(tensor)
    size = _data_of(path, tensor)[0].stat().st_size - int(table.get("offset", 0))
    return min(size, int(table.get("length", size)))


def _bits(onnx: Any, kind: int) -> int:
    """Return the least number of bits of an entry; small numbers in lists may take one byte."""
    name = onnx.TensorProto.DataType.Name(kind)
    return {"FLOAT": 32, "DOUBLE": 64, "FLOAT16": 8, "BFLOAT16": 8}.get(name, 2)


def _read(path: Path, place: int) -> np.ndarray:
    helper = package("onnx.numpy_helper", "weights", path)
    _, tensor = _tensors(path, stamp_of(path))[place]
    try:
        array = np.asarray(helper.to_array(tensor, str(path.parent)))
    except Exception as error:  # wrong sizes, missing files
        raise InvalidData(f"it is damaged ({error_line(error)}).") from error
    if array.dtype.kind not in "fiub" or array.dtype.itemsize * array.size < math.prod(array.shape):
        array = array.astype(np.float32)  # bfloat16 and eight-bit types of ml_dtypes
    return array
