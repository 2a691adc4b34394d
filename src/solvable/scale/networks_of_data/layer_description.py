"""Sizes of a real model, and the sizes' exponents, from the list of its layers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from solvable.errors import InvalidData, InvalidParameter
from solvable.paths import check_path, printable
from solvable.scale.exponents.linear_forms import about
from solvable.scale.networks_of_data.layer_walk import LayerSize, Walk, checked_entry, checked_shape

FORMAT = "solvable-model"  # value of the key "format" in the file of a description


@dataclass(frozen=True)
class ModelDescription:
    """Real model with an input, hidden layers, and a linear readout."""

    input_shape: tuple[
        int, ...
    ]  # shape of the input, channels first; d is the product of all entries
    hidden: tuple[LayerSize, ...]  # hidden layers from first to last
    outputs: int  # number of outputs of the readout
    layers: tuple[Mapping[str, Any], ...]  # layers in the form that describe_layers and files use
    notes: tuple[str, ...] = ()  # sentences about layers that were simplified
    said: tuple[str, ...] = ()  # sentences about simplifications that the layers do not show

    @property
    def dimension(self) -> int:
        """Input dimension d."""
        return math.prod(self.input_shape)

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
            entry: dict[str, Any] = {"width": str(self.exponent(layer.width)), "act": layer.act}
            if layer.reach is not None:
                entry["patch"] = str(self.exponent(layer.reach))
                entry["pool"] = layer.pooled == 1
            found.append(entry)
        return {"layers": found}

    def words(self) -> list[str]:
        """Write the sizes, their rounded exponents, and the simplifications as sentences."""
        d = self.dimension
        said = [f"inputs: d = {d}"]
        for layer in self.hidden:
            kind = "neurons" if layer.positions is None else "filters"
            one = kind[:-1] if layer.width == 1 else kind
            text = f"layer {layer.name}: {layer.width} {one}, {self._near(layer.width)}"
            if layer.reach is not None:
                text += f"; each sees {layer.reach} inputs, {self._near(layer.reach)}"
            said.append(text)
        sizes = [n for layer in self.hidden for n in (layer.width, layer.reach) if n is not None]
        if any(abs(self._value(size) - size) > 1e-9 * size for size in sizes):
            said.append(
                "sizes are rounded to simple powers of d, within 0.01 of the exponent; exponents "
                "computed from them have about this accuracy, and are rounded to two digits"
            )
        return [f"{sentence}." for sentence in (*said, *self.notes, *self.said)]

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
        content = {
            "format": FORMAT,
            "input_shape": list(self.input_shape),
            "layers": [dict(layer) for layer in self.layers],
        } | ({"notes": list(self.said)} if self.said else {})
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
    layers: Sequence[str | Mapping[str, Any]], input_shape: int | Sequence[int]
) -> ModelDescription:
    """Describe a model by the list of its layers.

    Parameters
    ----------
    layers : sequence of str or mapping
        Each layer is ``"linear 128"``, ``"conv 8 kernel=4x4 stride=4"``, ``"pool 2x2"``, ``"flatten"``
        or an activation such as ``"relu"``, or a mapping such as ``{"kind": "conv", "size": 8,
        "kernel": [4, 4], "stride": [4, 4]}``. The last linear layer is the readout.
    input_shape : int or sequence of int
        Shape of one input, channels first: 784, or (1, 28, 28).

    Returns
    -------
    ModelDescription
        Sizes of the model, and their exponents.

    Raises
    ------
    InvalidData
        If a layer is unknown or does not fit the layer before it.

    Notes
    -----
    Backed by ``tests/scale/networks_of_data/test_modules.py``.

    Examples
    --------
    >>> model = describe_layers(
    ...     ["conv 8 kernel=4x4 stride=4", "tanh", "flatten", "linear 1"], (1, 8, 8)
    ... )
    >>> model.hidden[0].fan_in, model.hidden[0].positions, model.mapping()["layers"]
    (16, 4, [{'width': '1/2', 'act': 'tanh', 'patch': '2/3', 'pool': False}])
    """
    shape = checked_shape(input_shape)
    if isinstance(layers, str | Mapping) or not isinstance(layers, Sequence):
        raise InvalidData(f"layers are a {type(layers).__name__}; allowed: a list of layers.")
    if not 1 <= len(layers) <= 1000:
        raise InvalidData(
            f"the list has {len(layers)} layers; allowed: 1 to 1,000, for example "
            '["linear 128", "relu", "linear 10"].'
        )
    entries = [checked_entry(layer, place) for place, layer in enumerate(layers)]
    walk = Walk(shape)
    for entry in entries:
        walk.step(entry)
    outputs = walk.finish()
    return ModelDescription(shape, tuple(walk.hidden), outputs, tuple(entries), tuple(walk.notes))


def is_model(content: Any) -> bool:
    """Return True if a file contains a real model with sizes in numbers, False for exponents."""
    return isinstance(content, Mapping) and (
        content.get("format") == FORMAT or "input_shape" in content
    )


def model_of(content: Any, path: str | Path = "the description") -> ModelDescription:
    """Build a model description from the content of a file."""
    if not is_model(content) or "layers" not in content or "input_shape" not in content:
        raise InvalidData(
            f"{path} does not describe a model; allowed: input_shape and a list of layers, in the "
            "format of describe_module(...).save."
        )
    unknown = sorted(set(content) - {"format", "input_shape", "layers", "notes"})
    if unknown:
        raise InvalidData(
            f"{path} has the key {printable(str(unknown[0]))!r}; allowed: format, input_shape, "
            "layers, notes."
        )
    said = content.get("notes", [])
    if not isinstance(said, list) or not all(isinstance(note, str) for note in said):
        raise InvalidData(f"{path}: notes are {said!r:.60}; allowed: a list of sentences.")
    model = describe_layers(content["layers"], content["input_shape"])
    return replace(model, said=tuple(printable(note)[:300] for note in said[:20]))
