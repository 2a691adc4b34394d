"""Activations in scaling arguments: the powers of a feature that each makes, and its growth."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from solvable.errors import InvalidParameter, unknown_choice

Growth = Literal["bounded", "homogeneous", "polynomial"]

ODD = ("erf", "tanh", "sigmoid")
HOMOGENEOUS = ("relu", "leaky-relu", "gelu", "silu", "softplus")
HIGHEST_POWER = 9


@dataclass(frozen=True)
class Activation:
    """Powers of a feature that an activation makes, and its growth at large strength."""

    name: str  # name of the activation, in lower case
    # bounded: strengths stay at order one; homogeneous: the response is linear in a large strength
    growth: Growth
    # powers of z that the activation contains at small strength; ReLU is z/2 plus an even function
    parity: Literal["odd", "one-or-even", "any"]
    degree: int | None = None  # highest power, for a polynomial
    constant: bool = (
        True  # True: the outputs have a non-zero mean, which gives the next layer random biases
    )
    biased: bool = (
        False  # True: the layer has random biases, so that its neurons make every power of z
    )

    def makes(self, power: int) -> bool:
        """Return True if a feature's power keeps a coefficient after averaging over other directions."""
        if power < 1 or (self.degree is not None and power > self.degree):
            return False
        if self.parity == "any" or self.biased:
            return True
        return power % 2 == 1 if self.parity == "odd" else power == 1 or power % 2 == 0

    def least_power(self, source: int, degree: int) -> int | None:
        """Return the least power of He_source that contains He_degree, or None."""
        if source == degree and self.makes(1):
            return 1
        # He_j² contains the even degrees up to 2j; for p >= 3, He_j^p contains all degrees up to jp
        # with the parity of jp.
        for power in range(2, HIGHEST_POWER + 1):
            if (
                self.makes(power)
                and power * source >= degree
                and (power * source - degree) % 2 == 0
            ):
                return power
        return None

    def largest_power(self, source: int, degree: int) -> int | None:
        """Return the power of the response's growth at large strength; None if strengths are bounded."""
        if self.growth == "bounded" or self.least_power(source, degree) is None:
            return None
        if self.degree is None:
            # relu(mu z + b) = mu relu(z + b/mu): powers of z that exist only because of the bias
            # do not grow with mu.
            plain = replace(self, biased=False)
            return int(plain.least_power(source, degree) is not None)
        fitting = (
            power for power in range(1, self.degree + 1) if _contains((source,) * power, degree)
        )
        return max(fitting, default=None)

    @cache  # noqa: B019  # there are few activations, and they are frozen
    def products(self, degree: int, sources: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the minimal products of features that contain He_degree, as ascending degrees."""
        found: list[tuple[int, ...]] = []
        for size in range(1, degree + 2):
            if self.makes(size):
                for held in _multisets(sources, size):
                    if _contains(held, degree) and not any(_part(less, held) for less in found):
                        found.append(held)
        return tuple(found)


def find_activation(name: str) -> Activation:
    """Return the activation named ``erf``, ``relu``, ``poly2`` (polynomial of degree 2) and so on."""
    plain = str(name).strip().lower().replace("_", "-")
    if plain in ODD:
        return Activation(plain, "bounded", "odd", constant=plain == "sigmoid")
    if plain in HOMOGENEOUS:
        return Activation(plain, "homogeneous", "one-or-even")
    if plain in ("linear", "identity"):
        return Activation(plain, "polynomial", "any", 1, constant=False)
    if match := re.fullmatch(r"poly([1-9])", plain):
        return Activation(plain, "polynomial", "any", int(match[1]))
    allowed = [*ODD, *HOMOGENEOUS, "linear", "poly2", "poly3"]
    raise InvalidParameter(
        unknown_choice("activation", plain[:40], allowed)
        + " poly2 to poly9 are polynomials of degree 2 to 9."
    )


def _multisets(sources: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    if size == 0:
        return [()]
    return [
        (source, *rest)
        for i, source in enumerate(sources)
        for rest in _multisets(sources[i:], size - 1)
    ]


def _contains(factors: tuple[int, ...], degree: int) -> bool:
    """Return True if a product of Hermite polynomials has a component along He_degree."""
    if len(factors) == 1:
        return factors[0] == degree
    if (sum(factors) - degree) % 2 or sum(factors) < degree:
        return False
    # Hermite polynomials couple like angular momenta: no factor may exceed the sum of the other
    # factors and the result.
    return 2 * max(factors) <= sum(factors) + degree


def _part(less: tuple[int, ...], more: tuple[int, ...]) -> bool:
    """Return True if one product contains each feature at most as often as another product."""
    return all(less.count(source) <= more.count(source) for source in less)
