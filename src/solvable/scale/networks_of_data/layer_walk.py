"""Walk through a model's layers that computes the shape after each layer and checks the order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solvable.arrays import is_integer
from solvable.errors import InvalidData, unknown_choice
from solvable.paths import printable

# Torch's names of activations, and the names that scaling arguments use for them.
ACTIVATIONS = {
    "erf": "erf", "tanh": "tanh", "sigmoid": "sigmoid", "relu": "relu", "leakyrelu": "leaky-relu",
    "gelu": "gelu", "silu": "silu", "softplus": "softplus",
    # Only boundedness, parity and growth matter, so that similar activations have the same name.
    "hardtanh": "tanh", "softsign": "tanh", "hardsigmoid": "sigmoid", "prelu": "leaky-relu",
    "relu6": "relu", "elu": "relu", "selu": "relu", "celu": "relu", "mish": "silu",
    "hardswish": "silu",
}  # fmt: skip

# Kinds of layers that make no features, and are ignored.
_SKIPPED = {"identity": "", "dropout": "dropout", "normalisation": "normalisation"}

_KINDS = ("linear", "conv", "pool", "flatten", *_SKIPPED, *ACTIVATIONS)


@dataclass(frozen=True)
class LayerSize:
    """One hidden layer of a model, with sizes in numbers."""

    name: str  # name of the layer in the module, or its position in the list
    width: int  # number of neurons or filters
    fan_in: int  # number of weights of one neuron or filter
    act: str  # the name that scaling arguments use for the activation
    positions: int | None = None  # number of positions of a filter; None without weight sharing
    reach: int | None = None  # number of the model's inputs that one output sees
    pooled: int | None = None  # number of positions after pooling


def checked_shape(input_shape: Any) -> tuple[int, ...]:
    """Check the shape of one input."""
    entries = [input_shape] if is_integer(input_shape, -(10**12)) else input_shape
    usable = (
        isinstance(entries, Sequence) and not isinstance(entries, str) and 1 <= len(entries) <= 3
    )
    if not usable or not all(is_integer(size, 1, 10**9) for size in entries):
        raise InvalidData(
            f"input_shape is {input_shape!r}; allowed: the number of inputs, or (channels, height, "
            "width), each at least 1."
        )
    if math.prod(entries) < 2:
        raise InvalidData(
            "the model has 1 input; allowed: at least 2, because sizes are powers of it."
        )
    return tuple(int(size) for size in entries)


def checked_entry(layer: Any, place: int) -> dict[str, Any]:
    """Check one layer, and return it as a mapping with a kind and a name."""
    entry = _of_text(layer, place) if isinstance(layer, str) else layer
    if not isinstance(entry, Mapping) or not isinstance(entry.get("kind"), str):
        raise InvalidData(
            f"layer {place} is {layer!r:.80}; allowed: text, or a mapping with a kind."
        )
    kind = entry["kind"].lower()
    name = printable(str(entry.get("name", place)))[:80]
    if kind not in _KINDS:
        raise InvalidData(f"layer {name}: " + unknown_choice("kind", printable(kind)[:40], _KINDS))
    allowed = {"linear": {"size", "inputs"}, "conv": {"size", "kernel", "stride", "padding"},
               "pool": {"kernel", "stride", "padding", "output"}}.get(kind, set())  # fmt: skip
    unknown = sorted(set(map(str, entry)) - allowed - {"kind", "name"})
    if unknown:
        options = ", ".join(sorted(allowed)) or "nothing but a name"
        raise InvalidData(f"layer {name}: {kind} has {unknown[0][:40]!r}; allowed: {options}.")
    checked: dict[str, Any] = {"kind": kind} | ({"name": name} if "name" in entry else {})
    for key in sorted(allowed & set(entry)):
        least = 0 if key == "padding" else 1
        sizes = entry[key]
        single = is_integer(sizes, least, 10**9)
        usable = single or (
            key not in ("size", "inputs")
            and isinstance(sizes, Sequence)
            and not isinstance(sizes, str)
            and 1 <= len(sizes) <= 2
            and all(is_integer(size, least, 10**9) for size in sizes)
        )
        if not usable:
            raise InvalidData(
                f"layer {name}: {key} is {sizes!r:.60}; allowed: whole numbers of at least {least}."
            )
        checked[key] = int(sizes) if single else [int(size) for size in sizes]
    for key in {"linear": ("size",), "conv": ("size", "kernel")}.get(kind, ()):
        if key not in checked:
            raise InvalidData(f"layer {name}: {kind} has no {key}; add it.")
    if kind == "pool" and ("kernel" in checked) == ("output" in checked):
        raise InvalidData(f"layer {name}: pool has no kernel and no output size; add one of them.")
    return checked


def _of_text(text: str, place: int) -> dict[str, Any]:
    """Read the text of a layer such as "conv 8 kernel=4x4 stride=4" as a mapping."""
    words = text.split()
    entry: dict[str, Any] = {"kind": words[0] if words else ""}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals:
            key, value = ("kernel" if entry["kind"] == "pool" else "size"), word
        sizes = value.split("x")
        if key in entry or not all(re.fullmatch(r"-?[0-9]{1,12}", size) for size in sizes):
            raise InvalidData(
                f"layer {place} is {printable(text)[:80]!r}, and {printable(word)[:40]!r} is unknown; "
                "allowed: for example 'conv 8 kernel=4x4 stride=4', 'linear 128', 'relu'."
            )
        entry[key] = int(value) if len(sizes) == 1 else [int(size) for size in sizes]
    return entry


class Walk:
    """State of a walk through the layers: the current shape, and the hidden layers found so far."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = self.inputs = shape
        # Side of one output's receptive field, and distance between neighbouring fields.
        self.field, self.apart = [1] * (len(shape) - 1), [1] * (len(shape) - 1)
        self.hidden: list[LayerSize] = []
        self.open: LayerSize | None = None  # layer with weights that waits for its activation
        self.notes: list[str] = []
        self.place = 0

    def step(self, entry: Mapping[str, Any]) -> None:
        """Update the state by one layer."""
        kind, name = entry["kind"], str(entry.get("name", self.place))
        self.place += 1
        if kind in ("linear", "conv"):
            if self.open is not None:
                raise InvalidData(
                    f"layer {name} follows layer {self.open.name} without an activation between them; "
                    "if the model applies one as a function, pass it, as in act='relu'."
                )
            (self._linear if kind == "linear" else self._conv)(entry, name)
        elif kind == "pool":
            self._pool(entry, name)
        elif kind == "flatten":
            self.shape = (math.prod(self.shape),)
        elif kind in ACTIVATIONS:
            self._activate(kind, name)
        elif _SKIPPED[kind]:
            self._note(f"{_SKIPPED[kind]} is ignored: it is not part of the theory")

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _linear(self, entry: Mapping[str, Any], name: str) -> None:
        inputs = math.prod(self.shape)
        if len(self.shape) > 1:
            self._note(f"layer {name} takes the {inputs} numbers before it as one vector")
        if entry.get("inputs", inputs) != inputs:
            raise InvalidData(
                f"layer {name} takes {entry['inputs']} inputs and the layer before it gives {inputs}; "
                "correct the sizes or input_shape."
            )
        self.open = LayerSize(name, entry["size"], inputs, "")
        self.shape = (entry["size"],)

    def _conv(self, entry: Mapping[str, Any], name: str) -> None:
        if len(self.shape) == 1:
            raise InvalidData(
                f"layer {name} is a convolution after a vector of {self.shape[0]} numbers; pass "
                "input_shape as (channels, length) or (channels, height, width)."
            )
        before = math.prod(self.shape[1:])
        inner = self._slid(entry, name, 1)
        fan_in = self.shape[0] * math.prod(_spread(entry["kernel"], len(inner)))
        reach = self.inputs[0] * math.prod(map(min, self.field, self.inputs[1:]))
        apart = math.prod(self.inputs) / reach
        if math.prod(inner) > max(1, apart) and before > 1:
            self._note(
                f"patches of layer {name} overlap: its {math.prod(inner)} positions are counted as "
                f"{apart:.3g} patches without overlap"
            )
        self.open = LayerSize(name, entry["size"], fan_in, "", math.prod(inner), reach)
        self.shape = (entry["size"], *inner)

    def _slid(self, entry: Mapping[str, Any], name: str, stride: Any) -> tuple[int, ...]:
        """Return the number of window positions per side, and enlarge the receptive fields."""
        sides = self.shape[1:]
        kernel, step, padding = (
            _spread(entry.get(key, other), len(sides))
            for key, other in (("kernel", 1), ("stride", stride), ("padding", 0))
        )
        # number of positions: floor((side + 2 padding - kernel) / stride) + 1
        inner = tuple(
            (n + 2 * p - k) // s + 1
            for n, k, s, p in zip(sides, kernel, step, padding, strict=True)
        )
        if min(inner, default=1) < 1:
            raise InvalidData(
                f"layer {name} has a window of {kernel} on inputs of {list(sides)}; allowed: a window "
                "that fits into the inputs."
            )
        self.field = [
            f + (k - 1) * a for f, k, a in zip(self.field, kernel, self.apart, strict=True)
        ]
        self.apart = [a * s for a, s in zip(self.apart, step, strict=True)]
        return inner

    def _pool(self, entry: Mapping[str, Any], name: str) -> None:
        if len(self.shape) == 1:
            raise InvalidData(f"layer {name} pools a vector; move it before flatten.")
        if "output" in entry:
            inner = tuple(_spread(entry["output"], len(self.shape) - 1))
            sides = self.shape[1:]
            self.field = [
                f + (-(-n // m) - 1) * a
                for f, n, m, a in zip(self.field, sides, inner, self.apart, strict=True)
            ]
            self.apart = [
                a * max(1, n // m) for n, m, a in zip(sides, inner, self.apart, strict=True)
            ]
        else:
            inner = self._slid(entry, name, entry["kernel"])
        self.shape = (self.shape[0], *inner)
        held = self.open or (self.hidden[-1] if self.hidden else None)
        if held is None or held.positions is None:
            raise InvalidData(
                f"layer {name} pools before any convolution; leave it out and reduce input_shape."
            )
        pooled = replace(held, pooled=math.prod(inner))
        if self.open is not None:
            self.open = pooled
        else:
            self.hidden[-1] = pooled

    def _activate(self, kind: str, name: str) -> None:
        if self.open is None:
            raise InvalidData(
                f"layer {name} is {kind}, and no layer with weights precedes it; add one."
            )
        act = ACTIVATIONS[kind]
        if kind != act.replace("-", ""):
            self._note(f"{kind} is treated as {act}")
        self.hidden.append(replace(self.open, act=act))
        self.open = None

    def finish(self) -> int:
        """Return the number of outputs; the model must end with a linear readout."""
        if not self.hidden:
            raise InvalidData(
                "the model has no hidden layer with an activation; allowed: at least one, for example "
                '["linear 128", "relu", "linear 10"].'
            )
        if self.open is None:
            last = self.hidden[-1]
            raise InvalidData(
                f"the model ends with the activation of layer {last.name}; add its linear readout, "
                'for example "linear 1".'
            )
        if self.open.positions is not None:
            raise InvalidData(
                f"the model ends with the convolution {self.open.name}; add its linear readout."
            )
        if self.open.width > 1:
            self._note(
                f"{self.open.width} outputs: the theory holds for one output, each with its own readout"
            )
        return self.open.width


def _spread(sizes: int | Sequence[int], sides: int) -> list[int]:
    """Return a size as one number per side."""
    if isinstance(sizes, int):
        return [sizes] * sides
    if len(sizes) not in (1, sides):
        raise InvalidData(
            f"a window has {list(sizes)} and the inputs have {sides} sides; allowed: {sides} sizes."
        )
    return list(sizes) * (sides if len(sizes) == 1 else 1)
