"""Weights of an ONNX graph: its initialisers and constants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from solvable.data.weights.stored import (
    StoredArray,
    Weights,
    broken,
    package,
    precision_of,
    stamp_of,
)
from solvable.errors import InvalidData
from solvable.numpy_files import shape_fault
from solvable.paths import error_line

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
    files = {
        path,
        *(path.parent / outside_file(tensor) for _, tensor in tensors if _is_valid(tensor)),
    }
    return Weights(path.name, arrays, tuple(sorted(file for file in files if file.is_file())))


@lru_cache(maxsize=2)  # the weights, and the weights before training
def _tensors(path: Path, stamp: tuple[int, int, int]) -> list[tuple[str, Any]]:
    onnx = package("onnx", "weights", path)
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf raises its own exceptions for damaged files
        raise InvalidData(
            f"{path} is damaged or not an ONNX file ({error_line(error)}). Export it again."
        ) from error
    return list(tensors_of_graph(model.graph))


def tensors_of_graph(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and entries of initialisers and constants."""
    for tensor in graph.initializer:
        yield _text(tensor.name), tensor
    # Some exporters store weights as constants.
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.HasField("t"):
                    yield _text(node.output[0] if node.output else node.name), attribute.t


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
    if not fault and outside_file(tensor) and not _is_valid(tensor):
        fault = (
            f"its data are said to be in {outside_file(tensor)[:80]!r}; allowed: a file in the folder of "
            f"{path.name}"
        )
    if not fault and outside_file(tensor) and not (path.parent / outside_file(tensor)).is_file():
        fault = f"its data are in the file {outside_file(tensor)[:80]!r}, which is missing"
    if fault:
        return broken(name, fault, shape, dtype)
    return StoredArray(name, shape, dtype, precision_of(dtype), partial(_read, path, place))


def outside_file(tensor: Any) -> str:
    """Name of the file that holds the entries; empty if they are in the graph's file."""
    if tensor.data_location != 1:
        return ""
    stored = tensor.external_data
    return _text(next((entry.value for entry in stored if entry.key == "location"), ""))


def _is_valid(tensor: Any) -> bool:
    place = PurePosixPath(outside_file(tensor).replace("\\", "/"))
    return bool(place.parts) and not place.is_absolute() and ".." not in place.parts


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
