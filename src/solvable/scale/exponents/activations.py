"""What a scaling argument has to know of an activation: which powers of a feature it makes."""

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

    name: str  # as the user wrote it
    # bounded: strengths up to order one; homogeneous: the response is linear in the strength
    growth: Growth
    # powers at small strength; ReLU is z/2 plus an even function
    parity: Literal["odd", "one-or-even", "any"]
    degree: int | None = None  # highest power of a polynomial
    constant: bool = True  # whether its mean is not zero: biases of the next layer are then random
    biased: bool = False  # with random biases neurons make every power

    def makes(self, power: int) -> bool:
        """Whether the power has a coefficient, the noise of the other directions averaged."""
        if power < 1 or (self.degree is not None and power > self.degree):
            return False
        if self.parity == "any" or self.biased:
            return True
        return power % 2 == 1 if self.parity == "odd" else power == 1 or power % 2 == 0

    def least_power(self, source: int, degree: int) -> int | None:
        """Least power of He_source that contains He_degree; None where none does."""
        if source == degree and self.makes(1):
            return 1
        # He_j² has the even degrees up to 2j; He_j^p every degree of the parity of jp up to jp
        # from p = 3 on.
        for power in range(2, HIGHEST_POWER + 1):
            if (
                self.makes(power)
                and power * source >= degree
                and (power * source - degree) % 2 == 0
            ):
                return power
        return None

    def largest_power(self, source: int, degree: int) -> int | None:
        """Power of the strength in the response to a strong feature; None where strengths are bounded."""
        if self.growth == "bounded" or self.least_power(source, degree) is None:
            return None
        if self.degree is None:
            # relu(mu z + b) = mu relu(z + b/mu): what a bias alone makes of a feature does not
            # grow with it.
            plain = replace(self, biased=False)
            return int(plain.least_power(source, degree) is not None)
        fitting = (
            power for power in range(1, self.degree + 1) if _contains((source,) * power, degree)
        )
        return max(fitting, default=None)

    @cache  # noqa: B019  # activations are few and frozen
    def products(self, degree: int, sources: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Least products of features (degrees, ascending) that the kernel turns into He_degree."""
        found: list[tuple[int, ...]] = []
        for size in range(1, degree + 2):
            if self.makes(size):
                for held in _multisets(sources, size):
                    if _contains(held, degree) and not any(_part(less, held) for less in found):
                        found.append(held)
        return tuple(found)


def find_activation(name: str) -> Activation:
    """The activation of a name such as ``erf``, ``relu``, ``poly2`` (any polynomial of degree 2)."""
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
        unknown_choice("activation", plain[:40], allowed) + " poly2 to poly9 are degrees."
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
    """Whether a product of Hermite polynomials has a component along He_degree."""
    if len(factors) == 1:
        return factors[0] == degree
    if (sum(factors) - degree) % 2 or sum(factors) < degree:
        return False
    # Hermite polynomials couple like angular momenta: no factor beyond the sum of the others and
    # the result.
    return 2 * max(factors) <= sum(factors) + degree


def _part(less: tuple[int, ...], more: tuple[int, ...]) -> bool:
    """Whether a product uses each feature at most as often as another."""
    return all(less.count(source) <= more.count(source) for source in less)
