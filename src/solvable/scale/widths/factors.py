"""Factors by which initial scale, learning rate and weight decay of each parameter change with the width.

They keep the size of activations, and of their changes by a step, from one width to another: the
maximal-update parametrisation of Yang et al. 2022 (Table 3), with the numbers by which the module
multiplies its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from solvable.errors import InvalidParameter, unknown_choice
from solvable.scale.widths.roles import WidthParameter

Optimiser = Literal["sgd", "adam", "adamw"]

ADAPTIVE = ("adam", "adamw")

SUMMING = ("hidden", "output", "shared")  # roles of weights that sum over the width

IN_TORCH: Mapping[str, str] = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}


@dataclass(frozen=True)
class Factors:
    """Factors of one parameter from the base width to the module's."""

    parameter: WidthParameter
    start: float  # the initial entries are multiplied by this
    rate: float  # learning rate, over that of the base
    decay: float  # weight decay, over that of the base
    output: float = 1.0  # outputs of the layer are multiplied by this (tied weights alone)

    @property
    def name(self) -> str:
        """Name of the parameter."""
        return self.parameter.name

    def to_dict(self) -> dict[str, Any]:
        """Return the row of ``--json``."""
        held = self.parameter
        return {
            "name": held.name,
            "role": held.role,
            "shape": list(held.shape),
            "base_shape": list(held.base_shape),
            "initial_scale": self.start,
            "learning_rate": self.rate,
            "weight_decay": self.decay,
            "output_multiplier": self.output,
        }


def check_optimiser(optimiser: str) -> Optimiser:
    """Refuse optimisers without known factors."""
    if optimiser not in get_args(Optimiser):
        raise InvalidParameter(unknown_choice("optimiser", optimiser, get_args(Optimiser)))
    return optimiser  # type: ignore[return-value]


def factors_of(parameter: WidthParameter, optimiser: Optimiser) -> Factors:
    r"""Compute the factors of one parameter.

    A weight :math:`W` that the forward pass multiplies by :math:`\theta` acts as :math:`\theta W`; a step
    of rate :math:`\eta` changes it by :math:`\theta\eta` (Adam) or :math:`\theta^2\eta` (SGD) times a
    direction (widths 2). The factors are those wanted for :math:`\theta W` (widths 1), divided by
    :math:`\theta` for entries, and by :math:`\theta` or :math:`\theta^2` for rates.
    """
    held, theta = parameter, parameter.multiplier
    wanted = wanted_scale(held) / theta  # (widths 1), (widths 2)
    if optimiser in ADAPTIVE:
        # weights that sum over the width 1 / fan_in, all others 1 (widths 1)
        rate = (1 / held.fan_in if held.role in SUMMING else 1.0) / theta
    else:
        # hidden fan_out / fan_in, output 1 / fan_in, input and vectors fan_out (widths 1)
        rate = {
            "hidden": held.fan_out / held.fan_in,
            "shared": held.fan_in**-0.5,
            "output": 1 / held.fan_in,
            "fixed": 1.0,
        }.get(held.role, held.fan_out) / theta**2
    if optimiser in ADAPTIVE:
        rate /= held.depth**0.5  # branches are multiplied by depth^(-1/2) (widths 4)
    # rate times decay stays, so that weights shrink at the same speed
    output = 1 / held.fan_in if held.role == "tied" else 1.0
    return Factors(held, wanted / nearest_power(held), rate, 1 / rate, output)


def normalised_factors(
    direction: WidthParameter, length: WidthParameter, optimiser: Optimiser
) -> tuple[Factors, Factors]:
    r"""Compute the factors of a weight :math:`g v/|v|`, with lengths g and directions v of its rows.

    It acts as :math:`\theta v` with :math:`\theta=g/|v|`. The scale of v has no effect: g takes the
    factor of the initial scale.
    """
    scale = wanted_scale(direction) / nearest_power(direction)
    rate = factors_of(replace(direction, multiplier=scale), optimiser).rate
    multiplier, depth = direction.multiplier, length.depth
    if optimiser in ADAPTIVE:
        # a step keeps its size relative to g, which is |v| = fan_in^(1/2) times a wanted entry
        of_length = direction.fan_in**0.5 * wanted_scale(direction) / multiplier / depth**0.5
    else:
        grown = 1 / direction.fan_in if direction.role == "output" else direction.fan_out
        of_length = grown / multiplier**2
    return (
        Factors(direction, 1.0, rate, 1 / rate),
        Factors(length, scale / multiplier, of_length, 1 / of_length),
    )


def wanted_scale(parameter: WidthParameter) -> float:
    """Wanted standard deviation of the entries, times their multiplier, over that of the base."""
    # hidden fan_in^(-1/2), output 1 / fan_in, all others 1 (widths 1)
    if parameter.role in ("hidden", "shared"):
        return parameter.fan_in**-0.5
    return 1 / parameter.fan_in if parameter.role == "output" else 1.0


def nearest_power(parameter: WidthParameter) -> float:
    """Ratio of the module's initial standard deviations, as a power -1, -1/2, 0 or 1/2 of the width.

    The measured ratio has the error of few entries. The power of torch's own layers is taken if it lies
    within three standard errors, and else the nearest one.
    """
    width = parameter.width
    if math.isclose(width, 1) or parameter.start == 1.0:
        return 1.0
    if abs(math.log(parameter.start / parameter.start_usual)) <= 3 * parameter.start_error:
        return parameter.start_usual
    power = round(2 * math.log(parameter.start) / math.log(width)) / 2
    return float(width ** min(0.5, max(-1.0, power)))


def parametrisation(rows: Iterable[WidthParameter]) -> str:
    """Name the parametrisation that a module is built in, by its initial scales and its multipliers."""
    rows = [row for row in rows if row.role in ("hidden", "output") and row.width != 1]
    powers: Mapping[str, set[tuple[float, float]]] = {
        role: {(_power(row, nearest_power(row)), _power(row, row.multiplier))
               for row in rows if row.role == role and row.start != 1.0}
        for role in ("hidden", "output")
    }  # fmt: skip
    hidden, output = powers["hidden"], powers["output"]
    plain = hidden <= {(-0.5, 0.0)}
    if plain and output == {(-0.5, 0.0)}:
        return "standard"
    if hidden <= {(0.0, -0.5)} and output == {(0.0, -0.5)}:
        return "NTK"
    total = {scale + number for scale, number in output}
    if hidden <= {(0.0, -0.5)} and total == {-1.0} and hidden:
        return "mean-field"
    if plain and (total == {-1.0} or not output):
        return "maximal-update" if output else "standard"
    return "of its own"


def _power(row: WidthParameter, ratio: float) -> float:
    return round(2 * math.log(ratio) / math.log(row.width)) / 2 + 0.0
