"""Numerical sizes of a network, such as d=100, and checks that prefactors are derived for the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import log10

from solvable.errors import InvalidParameter, unknown_choice
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network import Description, Network

ACTIVATIONS = ("erf", "tanh", "relu")
"""Activations with derived prefactors."""

LARGEST_SIZE = 1e12

_FACTORS = ("kappa", "alpha", "sigma_a")
"""Sizes that may be below one; their least value is the inverse of the largest size."""


def check_network(network: Description) -> Network:
    """Raise an error if no prefactors are derived for a network."""
    if isinstance(network, Network) and not (wrong := without_coefficients(network)):
        return network
    kind = wrong if isinstance(network, Network) else "attention"
    raise InvalidParameter(
        f"no prefactors are derived for {kind}; allowed: one hidden layer of erf, tanh or relu, on "
        "isotropic inputs or patches. Leave --numbers out for the exponents."
    )


def without_coefficients(network: Network) -> str:
    """Name the property of a network for which no prefactors are derived; empty if there is none."""
    layer, act = network.layers[0], network.layers[0].activation.name
    if len(network.layers) > 1:
        return f"{len(network.layers)} hidden layers"
    if act not in ACTIVATIONS:
        return f"the activation {act}"
    if network.inputs != LinearForm.of(-1):
        return "inputs that are not isotropic"
    if layer.pool:
        return "pooled layers"
    if network.readout.number is None:
        return "a readout exponent without a value"
    if network.parity and (act != "relu" or network.degree != 2 or layer.patch):
        return "parities other than of two bits by one layer of relu"
    return ""


def read_sizes(network: Network, given: Mapping[str, float]) -> dict[str, float]:
    """Return all sizes as numbers; a size that is not given is the network's power of d."""
    powers, patch = {"N": network.layers[0].width}, network.layers[0].patch
    if patch is not None:
        powers |= {"S": patch, "W": LinearForm.of(1) - patch}
    allowed = ("d", *powers, "kappa", "alpha", "sigma_a")
    held: dict[str, float] = {}
    for name, value in given.items():
        if name not in allowed:
            raise InvalidParameter(unknown_choice("size", name, allowed))
        least = 1 / LARGEST_SIZE if name in _FACTORS else 2.0 if name in ("d", "S") else 1.0
        number = _number(name, value)
        if not least <= number <= LARGEST_SIZE:
            raise InvalidParameter(
                f"{name} is {number:g}; allowed: from {least:g} to {LARGEST_SIZE:g}."
            )
        held[name] = number
    _join_patches(held, powers)
    if "d" not in held:
        raise InvalidParameter("sizes have no d, the dimension of the input; write d=100.")
    for name, form in (powers | {"kappa": network.kappa}).items():
        if name not in held:
            if form.number is None:
                raise InvalidParameter(
                    f"{name} is d^({form}), which has no value; write for example {name}=500."
                )
            held[name] = power_of(name, held["d"], form.number)
    if held.get("S", 3.0) < 2:
        raise InvalidParameter(
            f"the patch has {held['S']:.3g} inputs; allowed: at least 2. Give S, or a larger d."
        )
    return {"alpha": 1.0, "sigma_a": 1.0} | held


def read_sizes_words(words: Iterable[str]) -> dict[str, float]:
    """Read sizes such as ``d=100 N=500``, separated by blanks or commas."""
    given = read_words(",".join(words), "size", "each size once, as in d=100 N=500 kappa=0.5")
    return {name: _number(name, value) for name, value in given.items()}


def read_words(text: str, what: str, allowed: str) -> dict[str, str]:
    """Read ``name=value,name=value`` as a mapping."""
    found: dict[str, str] = {}
    for word in text.split(","):
        name, _, value = (part.strip() for part in word.partition("="))
        if not (name and value) or name in found:
            raise InvalidParameter(f"{word[:60]!r} is not a {what}; allowed: {allowed}.")
        found[name] = value
    return found


def _join_patches(held: dict[str, float], powers: dict[str, LinearForm]) -> None:
    """Compute the missing one of the sizes d, S and W from d = S W."""
    if "S" not in powers:
        return
    if "S" in held and "W" in held:
        whole = held["S"] * held["W"]
        if abs(held.setdefault("d", whole) - whole) > 1e-9 * whole:
            raise InvalidParameter(
                f"d is {held['d']:g}, and S W is {whole:g}; allowed: d = S W. Leave one of them out."
            )
    elif "d" in held and "S" in held:
        held["W"] = held["d"] / held["S"]
    elif "d" in held and "W" in held:
        held["S"] = held["d"] / held["W"]


def power_of(name: str, dimension: float, exponent: Fraction) -> float:
    """Compute a size that is a power of d, and check its range."""
    if abs(log10(dimension) * float(exponent)) > log10(LARGEST_SIZE):
        raise InvalidParameter(
            f"{name} is d^({exponent}) at d = {dimension:g}, beyond {LARGEST_SIZE:g}; allowed: less. "
            f"Write {name} as a number, or take a smaller d."
        )
    return float(dimension ** float(exponent))


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} is {value!r:.60}; allowed: a number.") from None
