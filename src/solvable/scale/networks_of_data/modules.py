"""Descriptions of torch modules, which are run once, and of files, which are never executed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from solvable.data.weights.opening import iter_weights
from solvable.documents import read_document
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.fitting.devices import import_torch
from solvable.paths import check_path
from solvable.scale.forward_pass import VIEWS, Operation, read_forward
from solvable.scale.networks_of_data.layer_description import (
    ModelDescription,
    describe_layers,
    is_model,
    model_of,
)
from solvable.scale.networks_of_data.layer_walk import (
    ACTIVATIONS,
    Walk,
    checked_entry,
    checked_shape,
)

WEIGHTS = (".safetensors", ".npz")
"""Endings of the names of weight files."""


def describe_module(
    module: Any, input_shape: int | Sequence[int] | None = None
) -> ModelDescription:
    """Describe a torch module by the layers of its forward pass.

    Parameters
    ----------
    module : torch.nn.Module
        A chain of linear layers, 1- and 2-dimensional convolutions, pooling and activations, as modules
        or functions. It is run once on a batch of two. Dropout and normalisation are ignored.
    input_shape : int or sequence of int, optional
        Shape of one input, channels first; may be left out if the first layer is linear.

    Returns
    -------
    ModelDescription
        Sizes of the model, and their exponents; the method ``save`` writes a file for ``solvable scale``.

    Raises
    ------
    InvalidData
        If the forward pass is no such chain: residual connections, attention, recurrence and so on, which
        :func:`width_rules` reads.

    Notes
    -----
    Needs torch. Backed by ``tests/scale/networks_of_data/test_modules.py``.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    ... )  # doctest: +SKIP
    >>> describe_module(net).numbers  # doctest: +SKIP
    {'d': 64, 'N': 32}
    """
    torch = import_torch("describing a module")
    if not isinstance(module, torch.nn.Module):
        raise InvalidData(f"module is a {type(module).__name__}; allowed: a torch.nn.Module.")
    if input_shape is None:
        layers = [
            part for part in module.modules() if next(part.parameters(False), None) is not None
        ]
        if not layers or not isinstance(layers[0], torch.nn.Linear):
            raise InvalidData(
                "the first layer is not linear, so that the number of inputs is unknown; pass "
                "input_shape, for example (1, 28, 28)."
            )
        input_shape = layers[0].in_features
    shape = checked_shape(input_shape)
    operations, _ = read_forward(module, [torch.randn(2, *shape)])
    entries: list[dict[str, Any]] = []
    walk = Walk(shape)
    for entry, made in _chain(operations, type(module).__name__):
        walk.step(checked_entry(entry, len(entries)))
        entries.append(entry)
        if walk.shape != made:
            raise InvalidData(
                f"layer {entry['name']} gives shape {list(made)}, and its sizes give {list(walk.shape)}; "
                "allowed: layers without options that change the shape otherwise, such as ceil_mode."
            )
    return describe_layers(entries, shape)


def read_model(path: str | Path, *, act: str | None = None) -> ModelDescription:
    """Read a model description from JSON or TOML, or from the shapes of weights; no code is run."""
    path = check_path(path)
    if path.suffix.lower() in WEIGHTS:
        return _of_shapes(path, act)
    return model_of(_content(path), path)


def find_model(source: Any, act: str | None = None) -> ModelDescription | None:
    """Return the real model that a mapping or file describes; None for a network in exponents."""
    if isinstance(source, Mapping):
        return model_of(source) if is_model(source) else None
    if source is None:
        return None
    path = check_path(source)
    if path.suffix.lower() in WEIGHTS:
        return read_model(path, act=act)
    content = _content(path)
    return model_of(content, path) if is_model(content) else None


def _content(path: Path) -> Any:
    """Read the content of a JSON or TOML file."""
    if path.suffix.lower() not in (".json", ".toml"):
        raise InvalidData(
            f"{path} ends in {path.suffix!r}; allowed: .json, .toml, .safetensors, .npz. Files that "
            "hold Python objects (.pt, .pkl) are not read: write "
            "describe_module(model).save('model.json')."
        )
    return read_document(path)


_BRANCHES = {
    "add": "a residual connection", "sub": "a difference of two branches", "mul": "a gate",
    "cat": "a concatenation", "stack": "a concatenation", "softmax": "a softmax",
    "matmul": "a matrix product", "multi_head_attention_forward": "attention",
    "scaled_dot_product_attention": "attention",
    "lstm": "recurrence", "gru": "recurrence", "rnn_tanh": "recurrence", "rnn_relu": "recurrence",
    "linear": "a layer that acts on each position",
    "embedding": "an embedding", "embedding_bag": "an embedding", "pad": "padding with other than zeros",
    "conv1d": "a convolution with groups or dilation", "conv2d": "a convolution with groups or dilation",
}  # fmt: skip
_NORMALISATIONS = ("batch_norm", "layer_norm", "group_norm", "rms_norm", "instance_norm")


def _chain(
    operations: Sequence[Operation], title: str
) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
    """Yield the layers of a chain, each with the shape of its outputs; refuse any other forward pass."""
    for place, operation in enumerate(operations):
        data = operation.data
        before = place - 1 if place else None
        entry = _layer(operation) if len(data) == 1 and data[0].origin == before else None
        if entry is None:
            kind = _BRANCHES.get(
                operation.function.strip("_"), f"the function {operation.function}"
            )
            where = operation.module or title
            raise InvalidData(
                f"{where} has {kind}; the theory of the number of samples covers chains of "
                "linear layers, convolutions, pooling and activations. Width and learning rate of any "
                "module: solvable scale FILE.py:FUNCTION --width 256 1024, or width_rules."
            )
        if entry:
            name = operation.module or operation.function
            yield {"name": name, **entry}, operation.shape[1:]


def _layer(operation: Operation) -> dict[str, Any] | None:
    """Describe an operation as a layer: empty for one that changes nothing, None for an unknown one."""
    function, (data,) = operation.function.strip("_"), operation.data
    weights = [
        operand for operand in operation.operands if len(operand.shape) > 1 and operand.parameter
    ]
    if function == "linear" or (function in ("matmul", "addmm", "mm") and len(weights) == 1):
        flat = len(data.shape) == 2
        sizes = {"inputs": data.shape[-1], "size": operation.shape[-1]}
        return {"kind": "linear"} | sizes if flat else None
    if function in ("conv1d", "conv2d"):
        return _convolution(operation, weights[0].shape)
    if pool := re.fullmatch(r"(adaptive_)?(max|avg)_pool[12]d", function):
        if pool[1]:
            return {"kind": "pool", "output": _plain(_option(operation, 1, "output_size", None))}
        kernel = _option(operation, 1, "kernel_size", None)
        stride = _option(operation, 2, "stride", None) or kernel
        padding = _option(operation, 3, "padding", 0)
        named = {"kernel": kernel, "stride": stride, "padding": padding}
        return {"kind": "pool"} | {key: _plain(value) for key, value in named.items()}
    if "dropout" in function:
        return {"kind": "dropout"}
    if function in _NORMALISATIONS:
        return {"kind": "normalisation"}
    if (name := function.replace("_", "")) in ACTIVATIONS:
        return {"kind": name}
    if operation.shape == data.shape and (function in VIEWS or operation.number is not None):
        return {}
    flattened = operation.shape == (data.shape[0], math.prod(data.shape[1:]))
    return {"kind": "flatten"} if function in VIEWS and flattened else None


def _convolution(operation: Operation, weight: Sequence[int]) -> dict[str, Any] | None:
    kernel = list(weight[2:])
    if _option(operation, 6, "groups", 1) != 1:
        return None
    if any(step != 1 for step in _listed(_option(operation, 5, "dilation", 1))):
        return None
    stride, padding = _option(operation, 3, "stride", 1), _option(operation, 4, "padding", 0)
    if padding == "same":
        if any(size % 2 == 0 for size in kernel):
            return None
        padding = [size // 2 for size in kernel]
    sizes = {"kernel": kernel, "stride": _listed(stride), "padding": _listed(padding)}
    return {"kind": "conv", "size": weight[0]} | sizes


def _option(operation: Operation, place: int, name: str, default: Any) -> Any:
    """Return an argument that is given by position or by name."""
    return operation.options.get(name, operation.options.get(place, default))


def _listed(sizes: Any) -> list[int]:
    return [sizes] if isinstance(sizes, int) else list(sizes)


def _plain(sizes: Any) -> Any:
    return sizes if isinstance(sizes, int) else list(sizes)


def _filled(entries: list[dict[str, Any]], act: str) -> list[dict[str, Any]]:
    """Add an activation after each layer with weights that has none, except the last."""
    if act not in ACTIVATIONS:
        raise InvalidParameter(unknown_choice("act", act, tuple(ACTIVATIONS)))
    filled: list[dict[str, Any]] = []
    open_ = False
    for entry in entries:
        if entry["kind"] in ("linear", "conv"):
            filled += [{"kind": act}] if open_ else []
            open_ = True
        elif entry["kind"] in ACTIVATIONS:
            open_ = False
        filled.append(entry)
    return filled


def _of_shapes(path: Path, act: str | None) -> ModelDescription:
    """Build a model from the shapes of stored weights of linear layers."""
    if act is None:
        raise InvalidParameter(
            f"{path} holds no activations; give the activation between its layers by act."
        )
    found = [stored for stored in iter_weights(path) if stored.is_matrix]
    if not found:
        raise InvalidData(f"{path} contains no matrix; allowed: weights of linear layers.")
    for stored in found:
        if len(stored.shape) != 2:
            raise InvalidData(
                f"{path}: {stored.name!r} has shape {stored.shape}, and its stride and padding are not "
                "stored; allowed: matrices. Use describe_module(model).save('model.json')."
            )
    # Files sort names as text, so that 10.weight comes before 2.weight.
    found.sort(key=lambda stored: [
        (0, int(part), "") if re.fullmatch("[0-9]{1,9}", part) else (1, 0, part)
        for part in re.split(r"([0-9]+)", stored.name)
    ])  # fmt: skip
    entries: list[dict[str, Any]] = [
        {"kind": "linear", "name": stored.name, "inputs": stored.shape[1], "size": stored.shape[0]}
        for stored in found
    ]
    return describe_layers(_filled(entries, act), found[0].shape[1])
