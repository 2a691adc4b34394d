"""Warnings about a network: layers narrower than their inputs, and patterns that tie."""

from __future__ import annotations

from solvable.scale.exponents.linear_forms import LinearForm, power
from solvable.scale.exponents.network import Description, Network
from solvable.scale.exponents.numerical_sizes import numbers_hint, without_coefficients


def narrow_layers(network: Network) -> list[str]:
    """Write one warning per width, for layers narrower than their inputs."""
    narrow: dict[tuple[LinearForm, LinearForm], list[int]] = {}
    for number, layer in enumerate(network.layers, 1):
        gap = layer.width - layer.reach
        if gap.number is not None and gap.number < 0:
            narrow.setdefault((layer.width, layer.reach), []).append(number)
    found = []
    for (width, reach), numbers in narrow.items():
        one = len(numbers) == 1
        names = " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))
        found.append(
            f"{'Layer' if one else 'Layers'} {names} {'has' if one else 'have'} {power('d', width)} "
            f"neurons for {power('d', reach)} inputs: {'its' if one else 'their'} kernel"
            f"{' fluctuates' if one else 's fluctuate'}, so that exponents rest on the patterns and "
            "are not proved."
        )
    return found


def tie_of_patterns(network: Description, names: list[str], most: int = 6) -> str:
    """Name the patterns that tie, and the command that compares their prefactors if there is one."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    text = f"These patterns tie in exponents: {', '.join(names[:most])}{more}."
    if hint := numbers_hint(network):
        return f"{text} Their prefactors differ: {hint} compares them."
    if isinstance(network, Network) and (wrong := without_coefficients(network)):
        return f"{text} The cheapest is unknown, because no prefactors are derived for {wrong}."
    return text
