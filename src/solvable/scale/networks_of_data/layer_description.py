"""Sizes of a real model in numbers, and the sizes' exponents."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from solvable.arrays import is_integer
from solvable.errors import InvalidData, InvalidParameter, unknown_choice
from solvable.paths import check_path, printable
from solvable.scale.exponents.linear_forms import about

FORMAT = "solvable-model"  # value of the key "format" in the file of a description

# Torch's names of activations, and the names that scaling arguments use for them.
ACTIVATIONS = {
    "erf": "erf", "tanh": "tanh", "sigmoid": "sigmoid", "relu": "relu", "leakyrelu": "leaky-relu",
    "gelu": "gelu", "silu": "silu", "softplus": "softplus",
    # Only boundedness, parity and growth matter, so that similar activations have the same name.
    "hardtanh": "tanh", "softsign": "tanh", "hardsigmoid": "sigmoid", "prelu": "leaky-relu",
    "relu6": "relu", "elu": "relu", "selu": "relu", "celu": "relu", "mish": "silu",
    "hardswish": "silu",
}  # fmt: skip


@dataclass(frozen=True)
class LayerSize:
    """One hidden layer of a model, with sizes in numbers."""

    name: str  # name of the layer in the module, or its position in the list
    width: int  # number of neurons or filters
    act: str  # name of the activation, as in ACTIVATIONS
    patch: int | None = None  # number of the model's inputs that one output sees; None: all of them
    pool: bool = False  # True: the outputs of all patches are averaged


@dataclass(frozen=True)
class ModelDescription:
    """Real model with an input, hidden layers, and a linear readout."""

    dimension: int  # number d of inputs
    hidden: tuple[LayerSize, ...]  # hidden layers from first to last
    notes: tuple[str, ...] = ()  # sentences about what was simplified

    @property
    def numbers(self) -> dict[str, int]:
        """Sizes with the names that ``--numbers`` uses: d and N, or d, N1, N2 and so on."""
        names = ["N"] if len(self.hidden) == 1 else [f"N{i + 1}" for i in range(len(self.hidden))]
        return {"d": self.dimension} | {
            name: layer.width for name, layer in zip(names, self.hidden, strict=True)
        }

    def exponent(self, size: int) -> Fraction:
        """Return the exponent of a size as a power of d, rounded to a simple fraction."""
        # n = log N / log d
        return near_fraction(math.log(size) / math.log(self.dimension))

    def mapping(self) -> dict[str, Any]:
        """Return the layers as in a network file, with sizes as exponents of d."""
        found = []
        for layer in self.hidden:
            act = ACTIVATIONS[layer.act]
            entry: dict[str, Any] = {"width": str(self.exponent(layer.width)), "act": act}
            if layer.patch is not None:
                entry |= {"patch": str(self.exponent(layer.patch)), "pool": layer.pool}
            found.append(entry)
        return {"layers": found}

    def words(self) -> list[str]:
        """Write the sizes, their rounded exponents, and the simplifications as sentences."""
        said = [f"inputs: d = {self.dimension}"]
        for layer in self.hidden:
            kind = "neuron" if layer.patch is None else "filter"
            kind += "s" * (layer.width > 1)
            text = f"layer {layer.name}: {layer.width} {kind}, {self._near(layer.width)}"
            if layer.patch is not None:
                text += f"; each sees {layer.patch} inputs, {self._near(layer.patch)}"
            said.append(text)
            if layer.act != (act := ACTIVATIONS[layer.act]).replace("-", ""):
                said.append(f"{layer.act} is treated as {act}")
        sizes = [n for layer in self.hidden for n in (layer.width, layer.patch) if n is not None]
        if any(abs(self._value(size) - size) > 1e-9 * size for size in sizes):
            said.append(
                "sizes are rounded to simple powers of d, within 0.01 of the exponent; exponents "
                "computed from them have about this accuracy, and are rounded to two digits"
            )
        return [f"{sentence}." for sentence in dict.fromkeys((*said, *self.notes))]

    def _value(self, size: int) -> float:
        return float(self.dimension ** float(self.exponent(size)))

    def _near(self, size: int) -> str:
        """Write a size as a power of d, and the value of this power if the exponent is rounded."""
        power, value = self.exponent(size), self._value(size)
        text = about(f"d^({power})" if power.denominator > 1 else f"d^{power}")
        exact = abs(value - size) <= 1e-9 * size
        return text if exact else f"about {text} ({value:.4g})"

    def save(self, path: str | Path) -> Path:
        """Write the description as JSON, which ``solvable scale`` reads."""
        path = check_path(path)
        if path.suffix.lower() != ".json":
            raise InvalidParameter(f"path is {str(path)!r}; allowed: a name ending in .json.")
        layers = [asdict(layer) for layer in self.hidden]
        content = {"format": FORMAT, "inputs": self.dimension, "layers": layers}
        content |= {"notes": list(self.notes)} if self.notes else {}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return path


def near_fraction(value: float) -> Fraction:
    """Return the fraction with the least denominator within 0.01 of a number."""
    if not math.isfinite(value):
        raise InvalidParameter(f"an exponent is {value}; allowed: finite numbers.")
    for denominator in range(1, 101):
        near = Fraction(round(value * denominator), denominator)
        if abs(near - Fraction(value)) <= 0.01:
            return near
    return Fraction(value).limit_denominator(100)


def describe_layers(
    layers: str | Sequence[str | Mapping[str, Any]], inputs: int, notes: Sequence[str] = ()
) -> ModelDescription:
    """Describe a model by the list of its hidden layers.

    Parameters
    ----------
    layers : str, or sequence of str or mapping
        ACTIVATION:WIDTH or ACTIVATION:WIDTH:PATCH of each hidden layer, separated by commas, with the
        patch as the number of the model's inputs that one filter sees; or a mapping such as
        ``{"act": "relu", "width": 8, "patch": 16, "pool": True}``. The readout is linear.
    inputs : int
        Number of inputs, at least 2.
    notes : sequence of str
        Sentences that the output repeats.

    Returns
    -------
    ModelDescription
        Sizes of the model, and their exponents.

    Raises
    ------
    InvalidData
        If a layer or a size is not allowed.

    Notes
    -----
    Backed by ``tests/scale/networks_of_data/test_modules.py``.

    Examples
    --------
    >>> describe_layers("tanh:8:16", 64).mapping()["layers"]
    [{'width': '1/2', 'act': 'tanh', 'patch': '2/3', 'pool': False}]
    """
    if not is_integer(inputs, 2, 10**9):
        raise InvalidData(
            f"inputs is {inputs!r:.60}; allowed: integers from 2, because sizes are powers of it."
        )
    rows = layers.split(",") if isinstance(layers, str) else layers
    if not isinstance(rows, Sequence) or not 1 <= len(rows) <= 1000:
        raise InvalidData(
            f"layers is {rows!r:.60}; allowed: 1 to 1,000 layers, such as 'relu:128,relu:64'."
        )
    hidden = tuple(_layer(row, place, int(inputs)) for place, row in enumerate(rows))
    return ModelDescription(int(inputs), hidden, tuple(notes))


def _layer(row: Any, place: int, inputs: int) -> LayerSize:
    """Check one layer."""
    entry = row
    if isinstance(row, str):
        words = [
            int(word) if word.isdecimal() and len(word) < 13 else word for word in row.split(":")
        ]
        entry = dict(zip(("act", "width", "patch"), words, strict=False))
    if not isinstance(entry, Mapping) or not {"act", "width"} <= set(entry):
        raise InvalidData(
            f"layer {place} is {printable(str(row))[:60]!r}; allowed: ACTIVATION:WIDTH, as in relu:128."
        )
    name = printable(str(entry.get("name", place)))[:80]
    if unknown := sorted(set(map(str, entry)) - {"name", "act", "width", "patch", "pool"}):
        said = unknown_choice("key", printable(unknown[0])[:40], ("act", "width", "patch", "pool"))
        raise InvalidData(f"layer {name}: {said}")
    act = str(entry["act"]).lower().replace("_", "").replace("-", "")
    if act not in ACTIVATIONS:
        said = unknown_choice("activation", printable(act)[:40], tuple(ACTIVATIONS))
        raise InvalidData(f"layer {name}: {said}")
    width, patch, pool = entry["width"], entry.get("patch"), entry.get("pool", False)
    patches = patch is None or is_integer(patch, 1, inputs)
    if not is_integer(width, 1, 10**9) or not patches or not isinstance(pool, bool):
        raise InvalidData(
            f"layer {name} has width {width!r:.40}, patch {patch!r:.40} and pool {pool!r:.40}; allowed: "
            f"integers from 1, a patch of at most {inputs}, and true or false."
        )
    return LayerSize(name, int(width), act, None if patch is None else int(patch), pool)


def is_model(content: Any) -> bool:
    """Return True if a file contains a real model with sizes in numbers, False for exponents."""
    return isinstance(content, Mapping) and (
        content.get("format") == FORMAT or isinstance(content.get("inputs"), int)
    )


def model_of(content: Mapping[str, Any], path: str | Path = "the description") -> ModelDescription:
    """Build a model description from the content of a file."""
    known = {"format", "inputs", "layers", "notes"}
    unknown = sorted(set(map(str, content)) - known)
    notes = content.get("notes", [])
    sentences = isinstance(notes, list) and all(isinstance(note, str) for note in notes)
    if unknown or not {"inputs", "layers"} <= set(content) or not sentences:
        raise InvalidData(
            f"{path} holds {', '.join(printable(str(key))[:40] for key in content)}; allowed: inputs, "
            "layers and a list of notes, in the format of describe_module(...).save."
        )
    said = [printable(note)[:300] for note in notes[:20]]
    return describe_layers(content["layers"], content["inputs"], said)
