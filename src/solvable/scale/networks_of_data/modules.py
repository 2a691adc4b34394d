"""Descriptions of torch modules, which are run once, and of files, which are never executed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from solvable.documents import read_document
from solvable.errors import InvalidData
from solvable.fitting.devices import import_torch
from solvable.paths import check_path
from solvable.scale.forward_pass import VIEWS, Operation, read_forward
from solvable.scale.networks_of_data.layer_description import (
    ACTIVATIONS,
    LayerSize,
    ModelDescription,
    is_model,
    model_of,
)


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
    shape = tuple(input_shape) if isinstance(input_shape, Sequence) else (input_shape,)
    if not 1 <= len(shape) <= 3 or math.prod(shape) < 2:
        raise InvalidData(
            f"input_shape is {input_shape!r}; allowed: the number of inputs, at least 2, or (channels, "
            "height, width)."
        )
    operations, _ = read_forward(module, [torch.randn(2, *shape)])
    walk = _Walk(shape)
    for place, operation in enumerate(operations):
        data = operation.data
        chained = len(data) == 1 and data[0].origin == (place - 1 if place else None)
        if not chained or not walk.step(operation):
            function = operation.function
            kind = _BRANCHES.get(function.strip("_"), f"the function {function}")
            raise InvalidData(
                f"{operation.module or type(module).__name__} has {kind}; the theory of the number of "
                "samples covers chains of linear layers, convolutions, pooling and activations. Width "
                "and learning rate of any module: solvable scale FILE.py:FUNCTION --width 256 1024, or "
                "width_rules."
            )
    return walk.finish()


def find_model(source: Any) -> ModelDescription | None:
    """Return the real model that a mapping or file describes; None for a network in exponents."""
    if source is None:
        return None
    path = "the description" if isinstance(source, Mapping) else check_path(source)
    content = source if isinstance(path, str) else _content(path)
    return model_of(content, path) if is_model(content) else None


def _content(path: Path) -> Any:
    """Read the content of a JSON or TOML file."""
    if path.suffix.lower() not in (".json", ".toml"):
        raise InvalidData(
            f"{path} ends in {path.suffix!r}; allowed: .json, .toml. Files of weights do not hold the "
            "forward pass: write describe_module(model).save('model.json')."
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


class _Walk:
    """Hidden layers of a chain of operations, with the part of the inputs that each filter sees."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.inputs = shape
        # Side of one output's receptive field, and distance between neighbouring fields.
        self.field, self.apart = [1] * (len(shape) - 1), [1] * (len(shape) - 1)
        self.hidden: list[LayerSize] = []
        self.open: LayerSize | None = None  # layer with weights that waits for its activation
        self.notes: list[str] = []

    def step(self, operation: Operation) -> bool:
        """Follow one operation; return False if it is no part of a chain."""
        function, (data,) = operation.function.strip("_"), operation.data
        name = operation.module or operation.function
        weights = [
            operand
            for operand in operation.operands
            if operand.parameter and len(operand.shape) > 1
        ]
        if function == "linear" or (function in ("matmul", "addmm", "mm") and len(weights) == 1):
            self._open(LayerSize(name, operation.shape[-1], ""))
            return len(data.shape) == 2
        if function in ("conv1d", "conv2d"):
            return self._convolution(operation, weights[0].shape, name)
        if pool := re.fullmatch(r"(adaptive_)?(max|avg)_pool[12]d", function):
            return self._pool(operation, bool(pool[1]), name)
        if "dropout" in function or function in _NORMALISATIONS:
            kind = "dropout" if "dropout" in function else "normalisation"
            self._note(f"{kind} is ignored: it is not part of the theory")
            return True
        if (act := function.replace("_", "")) in ACTIVATIONS:
            if self.open is None:
                raise InvalidData(
                    f"layer {name} is {act}, and no layer with weights precedes it; add one."
                )
            self.hidden.append(replace(self.open, act=act))
            self.open = None
            return True
        flattened = operation.shape == (data.shape[0], math.prod(data.shape[1:]))
        plain = function in VIEWS and (flattened or operation.shape == data.shape)
        return plain or operation.number is not None

    def _open(self, layer: LayerSize) -> None:
        if self.open is not None:
            raise InvalidData(
                f"layer {layer.name} follows layer {self.open.name} without an activation between them; "
                "allowed: an activation after each layer."
            )
        self.open = layer

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _slide(self, window: Sequence[int], step: Sequence[int]) -> None:
        """Enlarge the receptive fields by a window, and their distances by its steps."""
        sizes = zip(self.field, window, self.apart, strict=True)
        self.field = [field + (side - 1) * apart for field, side, apart in sizes]
        self.apart = [apart * by for apart, by in zip(self.apart, step, strict=True)]

    def _convolution(self, operation: Operation, weight: Sequence[int], name: str) -> bool:
        sides = len(weight) - 2
        dilation = _spread(_option(operation, 5, "dilation", 1), sides)
        if _option(operation, 6, "groups", 1) != 1 or max(dilation) > 1:
            return False
        self._slide(weight[2:], _spread(_option(operation, 3, "stride", 1), sides))
        patch = self.inputs[0] * math.prod(map(min, self.field, self.inputs[1:]))
        positions, apart = math.prod(operation.shape[2:]), math.prod(self.inputs) / patch
        if positions > max(1, apart) and math.prod(operation.data[0].shape[2:]) > 1:
            self._note(
                f"patches of layer {name} overlap: its {positions} positions are counted as {apart:.3g} "
                "patches without overlap"
            )
        self._open(LayerSize(name, weight[0], "", patch))
        return True

    def _pool(self, operation: Operation, adaptive: bool, name: str) -> bool:
        before, after = operation.data[0].shape[2:], operation.shape[2:]
        if adaptive:
            window = [-(-n // m) for n, m in zip(before, after, strict=True)]
            step = [max(1, n // m) for n, m in zip(before, after, strict=True)]
        else:
            window = _spread(_option(operation, 1, "kernel_size", 1), len(before))
            step = _spread(_option(operation, 2, "stride", None) or window, len(before))
        self._slide(window, step)
        held = self.open or (self.hidden[-1] if self.hidden else None)
        if held is None or held.patch is None:
            raise InvalidData(
                f"layer {name} pools before any convolution; leave it out and reduce input_shape."
            )
        pooled = replace(held, pool=math.prod(after) == 1)
        if self.open is not None:
            self.open = pooled
        else:
            self.hidden[-1] = pooled
        return True

    def finish(self) -> ModelDescription:
        """Return the description; the model must end with a linear readout."""
        if not self.hidden:
            raise InvalidData(
                "the model has no hidden layer with an activation; allowed: at least one."
            )
        if self.open is None or self.open.patch is not None:
            last = self.open or self.hidden[-1]
            raise InvalidData(
                f"the model ends with layer {last.name}, which is no linear readout; add one."
            )
        if self.open.width > 1:
            self._note(
                f"{self.open.width} outputs: the theory holds for one output, each with its own readout"
            )
        return ModelDescription(math.prod(self.inputs), tuple(self.hidden), tuple(self.notes))


def _option(operation: Operation, place: int, name: str, default: Any) -> Any:
    """Return an argument that is given by position or by name."""
    return operation.options.get(name, operation.options.get(place, default))


def _spread(sizes: Any, sides: int) -> list[int]:
    """Return a size as one number per side."""
    listed = [sizes] if isinstance(sizes, int) else list(sizes)
    return listed * sides if len(listed) == 1 else listed
