"""Networks for ``solvable scale``, built from real models and real data."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from solvable.data import load, open_stream
from solvable.data.dataset import Dataset
from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network import Description, Network
from solvable.scale.exponents.network_reader import network_of_flags, read_network, target_of
from solvable.scale.exponents.numerical_sizes import without_coefficients
from solvable.scale.exponents.patterns import check_reachable
from solvable.scale.networks_of_data.input_spectrum import measure_inputs
from solvable.scale.networks_of_data.input_summary import InputSpectrum
from solvable.scale.networks_of_data.layer_description import ModelDescription
from solvable.scale.networks_of_data.modules import find_model
from solvable.scale.prefactors.enough_rows import DEGREES

LARGE = 300_000_000
"""File size in bytes above which a data file is read in chunks."""


@dataclass(frozen=True)
class RealSizes:
    """Measured inputs of a network: the sizes of a real model, the spectrum of data, or both."""

    model: ModelDescription | None
    inputs: InputSpectrum | None
    degree: int
    assumed: bool = False  # True: no target was given, so that a degree of the target is assumed

    @property
    def dimension(self) -> int | None:
        """Input dimension d."""
        if self.model is not None:
            return self.model.dimension
        return None if self.inputs is None else self.inputs.n_columns

    def words(self, *, numbers: bool) -> list[str]:
        """Write sizes and spectrum as sentences; ``numbers`` adds the inputs assumed for prefactors."""
        said = [] if self.model is None else self.model.words()
        if self.assumed:
            said.append(
                f"No target is given: where one is needed, it is He{self.degree}, a polynomial of "
                f"degree {self.degree} of one direction."
            )
        if self.inputs is None:
            return said
        said += self.inputs.words(self.dimension, self.degree)
        if numbers and self.model is not None:
            said.append(
                "Prefactors are computed for white inputs of dimension 1/lambda_0 = "
                f"{1 / self.inputs.strength(self.degree):.3g}, in which a direction has the same cost."
            )
        return said

    def white(self, network: Network) -> Network:
        """Return the network on equivalent white inputs, for which prefactors are derived."""
        return replace(network, inputs=LinearForm.of(-1))

    def underived(self, network: Network) -> str:
        """Name the property for which no prefactors are derived; empty if there is none."""
        assert self.model is not None
        if self.inputs is not None and self.model.hidden[0].patch is not None:
            return "filters on data"
        return without_coefficients(self.white(network))

    def sizes(self) -> dict[str, float]:
        """Numerical sizes of the model, with the dimension of equivalent white inputs."""
        assert self.model is not None
        sizes: dict[str, float] = dict(self.model.numbers)
        first = self.model.hidden[0]
        if first.patch is not None:
            sizes["S"] = first.patch
        if self.inputs is not None:
            # A direction costs 1 / (2 lambda_0); white inputs have 1 / lambda_0 = d.
            sizes["d"] = max(2, round(1 / self.inputs.strength(self.degree)))
        return sizes

    def to_dict(self) -> dict[str, Any]:
        """Return the entries "model" and "data" of ``solvable scale --json``."""
        found: dict[str, Any] = {}
        if self.model is not None:
            found["model"] = {"numbers": self.model.numbers} | self.model.mapping()
            found["model"]["notes"] = list(self.model.notes)
        if self.inputs is not None:
            found["data"] = self.inputs.to_dict(self.dimension, self.degree)
        return found


def describe_real(
    source: str | Path | Mapping[str, Any] | ModelDescription | None,
    *,
    data: str | Path | Dataset | InputSpectrum | None = None,
    column: str | None = None,
    layers: str | None = None,
    target: str | None = None,
    readout: str | None = None,
    kappa: str | None = None,
) -> tuple[Description, RealSizes | None]:
    """Build a network from a file, from flags or from a real model; data set the input spectrum."""
    inputs = _spectrum(data, column)
    model = source if isinstance(source, ModelDescription) else find_model(source)
    if inputs is not None and target is None and (model is not None or layers is not None):
        target = f"he{inputs.degree}"
    flags = {"layers": layers, "target": target, "readout": readout, "kappa": kappa}
    given = [name for name, value in flags.items() if value is not None]
    network: Description
    if source is not None and (layers is not None or (model is None and given)):
        raise InvalidParameter(
            f"{source} and {', '.join(given)} are both given; allowed: a description or flags. Write "
            "the values into the description; for a real model all flags but layers are allowed."
        )
    if model is not None:
        content: dict[str, Any] = model.mapping()
        if isinstance(source, str | Path):
            content["title"] = Path(source).stem[:80]
        content |= {"readout": readout or "standard", "kappa": kappa or "0"}
        content["target"] = target_of(target) if target is not None else {"hermite": 1}
        read = read_network(content)
        assert isinstance(read, Network)  # it has layers
        read = replace(read, rounded=True)
        network = _highest(read) if target is None else read
    elif source is not None:
        assert not isinstance(source, ModelDescription)
        network = read_network(source)
    elif layers is None or target is None:
        raise InvalidParameter(
            "scale needs a file, or layers and target, as in solvable scale --layers erf:1 --target he3."
        )
    else:
        network = network_of_flags(layers, target, readout or "standard", kappa or "0")
    if inputs is not None:
        if not isinstance(network, Network):
            raise InvalidParameter("data need a network with layers; this network has none.")
        sizes = RealSizes(model, inputs, network.degree)
        if model is not None:
            inputs.check_inputs(model.dimension)
        form = LinearForm.of(inputs.linear_exponent(sizes.dimension, network.degree))
        return replace(network, inputs=form, rounded=True), sizes
    if model is None or not isinstance(network, Network):
        return network, None
    return network, RealSizes(model, None, network.degree, assumed=target is None)


def _highest(network: Network) -> Network:
    """Set the target to the highest degree in the overview that the network can represent."""
    for degree in reversed(DEGREES):
        variant = replace(network, degree=degree)
        with suppress(InvalidParameter):
            check_reachable(variant)
            return variant
    return network


def _spectrum(
    data: str | Path | Dataset | InputSpectrum | None, column: str | None
) -> InputSpectrum | None:
    if data is None or isinstance(data, InputSpectrum):
        if column is not None:
            raise InvalidParameter(f"column is {column[:60]!r} without data; give the data too.")
        return data
    if isinstance(data, Dataset):
        return measure_inputs(data)
    path = Path(data)
    size = sum(part.stat().st_size for part in ([path] if path.is_file() else path.rglob("*")))
    if path.exists() and size > LARGE:
        # Larger tables are read in chunks.
        return measure_inputs(open_stream(path, target=column), name=path.name)
    return measure_inputs(load(data, target=column))
