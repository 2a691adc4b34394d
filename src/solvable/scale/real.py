"""Networks from real models and real data, for the calculator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from solvable.data import Dataset, load, open_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.scale.description import ModelDescription
from solvable.scale.forms import LinearForm
from solvable.scale.given_sizes import without_coefficients
from solvable.scale.inputs import InputSpectrum
from solvable.scale.measuring import measure_inputs
from solvable.scale.modules import find_model
from solvable.scale.network import Description, Network
from solvable.scale.reading import describe, read_network, target_of

LARGE = 300_000_000
"""Bytes of data that are read part by part instead of whole."""


@dataclass(frozen=True)
class RealSizes:
    """What of a network is measured: the sizes of a model, the spectrum of data, or both."""

    model: ModelDescription | None
    inputs: InputSpectrum | None
    degree: int

    @property
    def dimension(self) -> int | None:
        """Input dimension d."""
        if self.model is not None:
            return self.model.dimension
        return None if self.inputs is None else self.inputs.n_columns

    def words(self, *, numbers: bool) -> list[str]:
        """Both, as sentences; with prefactors, whose they are."""
        said = [] if self.model is None else self.model.words()
        if self.inputs is None:
            return said
        said += self.inputs.words(self.dimension, self.degree)
        if numbers and self.model is not None:
            said.append(
                "Prefactors are those of white inputs of dimension 1/lambda_0 = "
                f"{1 / self.inputs.strength(self.degree):.3g}, in which a direction costs as much."
            )
        return said

    def white(self, network: Description) -> tuple[Description, dict[str, float]]:
        """The network on white inputs, and its sizes in numbers where coefficients are derived."""
        if self.model is None or not isinstance(network, Network):
            return network, {}
        white = replace(network, inputs=((1, LinearForm.of(-1)),))
        first = self.model.hidden[0]
        if without_coefficients(white) or (first.reach is not None and self.inputs is not None):
            return network, {}
        sizes: dict[str, float] = dict(self.model.numbers)
        if first.reach is not None:
            sizes["S"] = first.reach
        if self.inputs is not None:
            # A direction costs 1 / lambda_0, which is d for white inputs.
            sizes["d"] = max(2, round(1 / self.inputs.strength(self.degree)))
        return white, sizes

    def to_dict(self) -> dict[str, Any]:
        """Both, as ``solvable scale --json`` adds them under "model" and "data"."""
        found: dict[str, Any] = {}
        if self.model is not None:
            found["model"] = {"numbers": self.model.numbers} | self.model.mapping()
            found["model"]["notes"] = [*self.model.notes, *self.model.said]
        if self.inputs is not None:
            found["data"] = self.inputs.to_dict(self.dimension, self.degree)
        return found


def describe_real(
    source: str | Path | Mapping[str, Any] | ModelDescription | None,
    *,
    data: str | Path | Dataset | InputSpectrum | None = None,
    column: str | None = None,
    act: str | None = None,
    layers: str | None = None,
    target: str | None = None,
    readout: str | None = None,
    kappa: str | None = None,
) -> tuple[Description, RealSizes | None]:
    """Network of a file, of flags or of a model in numbers, its inputs those of data if given."""
    inputs = _spectrum(data, column)
    model = source if isinstance(source, ModelDescription) else find_model(source, act)
    if inputs is not None and target is None and (model is not None or layers is not None):
        target = f"he{inputs.degree}"
    if model is None:
        if isinstance(source, ModelDescription):
            raise AssertionError
        network = describe(source, layers=layers, target=target, readout=readout, kappa=kappa)
    else:
        if layers is not None:
            raise InvalidParameter(f"{source} and layers are given; allowed: one of them.")
        if target is None:
            raise InvalidParameter(
                "a model in numbers has no target; name it, as in --target he3, or give --data."
            )
        content: dict[str, Any] = model.mapping() | {"target": target_of(target)}
        content |= {"readout": readout or "standard", "kappa": kappa or "0"}
        network = read_network(content)
    if inputs is not None:
        if not isinstance(network, Network):
            raise InvalidParameter("data give the inputs of layers; this network has none.")
        sizes = RealSizes(model, inputs, network.degree)
        if model is not None and inputs.n_columns > model.dimension:
            raise InvalidData(
                f"{inputs.name} has {inputs.n_columns} columns that vary and the model takes "
                f"{model.dimension} inputs; allowed: data that the model takes. Correct input_shape."
            )
        form = LinearForm.of(inputs.linear_exponent(sizes.dimension, network.degree))
        return replace(network, inputs=((1, form),)), sizes
    if model is None or not isinstance(network, Network):
        return network, None
    return network, RealSizes(model, None, network.degree)


def describe_all(
    source: str | Path | None,
    others: Sequence[str | Path],
    *,
    data: str | None,
    column: str | None,
    act: str | None,
    **flags: str | None,
) -> tuple[list[Description], RealSizes | None]:
    """A network of a file or of flags, and those of other files; their inputs are those of the data."""
    files = list(others)
    if source is None and flags.get("layers") is None and files:
        source = files.pop(0)
    first, real = describe_real(source, data=data, column=column, act=act, **flags)
    inputs = None if real is None else real.inputs
    found = [first]
    for path in files:
        # Models in numbers have no target of their own.
        model = find_model(path, act) is not None
        more = {name: word for name, word in flags.items() if name != "layers"} if model else {}
        found.append(describe_real(path, data=inputs, act=act, **more)[0])
    return found, real


def _spectrum(
    data: str | Path | Dataset | InputSpectrum | None, column: str | None
) -> InputSpectrum | None:
    if data is None or isinstance(data, InputSpectrum):
        if column is not None:
            raise InvalidParameter(f"column is {column!r} and there are no data to find it in.")
        return data
    if isinstance(data, Dataset):
        return measure_inputs(data)
    path = Path(data)
    size = sum(part.stat().st_size for part in ([path] if path.is_file() else path.rglob("*")))
    if path.exists() and size > LARGE:
        # Larger tables are read part by part.
        return measure_inputs(open_stream(path, target=column), name=path.name)
    return measure_inputs(load(data, target=column))
