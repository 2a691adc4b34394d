"""Copy of an ONNX graph with other entries, or with factors that the graph multiplies."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from solvable.data.weights.onnx_file import outside_file, tensors_of_graph
from solvable.data.weights.stored import package, shown_name
from solvable.data.weights.writing.replacement import (
    LEFT,
    RIGHT,
    Factors,
    Replacement,
    stored_bytes,
)

_NAMES = {"FLOAT": "F32", "DOUBLE": "F64", "FLOAT16": "F16", "BFLOAT16": "BF16"}


def copy_onnx(path: Path, target: Path, changes: dict[str, Replacement]) -> None:
    """Write a copy, with copies of the files next to the graph that hold entries."""
    onnx = package("onnx", "weights", path)
    helper = package("onnx.numpy_helper", "weights", path)
    model = onnx.load(path, load_external_data=False)
    tensors = list(tensors_of_graph(model.graph))
    for place in sorted({outside_file(tensor) for _, tensor in tensors} - {""}):
        (target.parent / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path.parent / place, target.parent / place)
    for name, tensor in tensors:
        change = changes.pop(shown_name(name), None)
        if change is None:
            continue
        old = np.asarray(helper.to_array(tensor, str(path.parent)))
        new = change(old if old.dtype.kind == "f" else old.astype(np.float32))
        kind = _NAMES.get(onnx.TensorProto.DataType.Name(tensor.data_type), "unknown")
        if isinstance(new, Factors):
            _split(onnx, model.graph, tensor, new, kind)
        elif outside_file(tensor):
            _patch(target.parent / outside_file(tensor), tensor, stored_bytes(new, kind, name))
        else:
            _fill(tensor, stored_bytes(new, kind, name))
    target.write_bytes(model.SerializeToString(deterministic=True))


def _patch(path: Path, tensor: Any, data: bytes) -> None:
    table = {entry.key: entry.value for entry in tensor.external_data}
    with path.open("r+b") as stream:
        stream.seek(int(table.get("offset", 0)))
        stream.write(data)


def _fill(tensor: Any, data: bytes) -> None:
    for field in ("float_data", "double_data", "int32_data"):
        tensor.ClearField(field)
    tensor.raw_data = data


def _split(onnx: Any, graph: Any, tensor: Any, new: Factors, kind: str) -> None:
    """Store two factors, and let the graph multiply them under the name of the array."""
    helper, name = onnx.helper, tensor.name
    right = new.right.reshape(len(new.right), -1)
    for ending, factor in ((LEFT, new.left), (RIGHT, right)):
        part = graph.initializer.add(name=name + ending, data_type=tensor.data_type)
        part.dims.extend(factor.shape)
        part.raw_data = stored_bytes(factor, kind, name)
    shape = list(tensor.dims)
    flat = name if len(shape) == 2 else f"{name}.flat"
    nodes = [helper.make_node("MatMul", [name + LEFT, name + RIGHT], [flat])]
    if len(shape) > 2:
        sides = graph.initializer.add(name=f"{name}.shape", data_type=onnx.TensorProto.INT64)
        sides.dims.append(len(shape))
        sides.raw_data = np.array(shape, dtype="<i8").tobytes()
        nodes.append(helper.make_node("Reshape", [flat, sides.name], [name]))
    kept = [node for node in graph.node if name not in node.output]
    initial = [one for one in graph.initializer if one.name != name]
    inputs = [one for one in graph.input if one.name != name]  # old graphs list weights as inputs
    for field, entries in (("node", nodes + kept), ("initializer", initial), ("input", inputs)):
        copies = [type(one).FromString(one.SerializeToString()) for one in entries]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
