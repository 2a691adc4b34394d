"""What a scaling argument says, in words and tables."""

from __future__ import annotations

from fractions import Fraction

from solvable.plots.tables import Table
from solvable.scale.exponents.energies import energy_forms
from solvable.scale.exponents.linear_forms import about, bracketed, maximum, power
from solvable.scale.exponents.network import Attention, Description, Network
from solvable.scale.exponents.sample_exponent import Interval, LearnedLayer, Scaling, Winner
from solvable.scale.exponents.tropical import Monomial


def subject(network: Description) -> str:
    """The network in one line."""
    text = _subject(network)
    return about(text) if isinstance(network, Network) and network.rounded else text


def _subject(network: Description) -> str:
    if isinstance(network, Network):
        layers = ", ".join(
            f"{layer.activation.name} of width {power('d', layer.width)}"
            + (f" on patches of {power('d', layer.patch)}" if layer.patch is not None else "")
            + (", pooled" if layer.pool else "")
            for layer in network.layers
        )
        readout = (
            "mean-field"
            if network.mean_field
            else "standard"
            if network.readout.number == 0
            else ""
        )
        readout = readout or f"chi = {power('d', network.readout)}"
        ridge = "of order 1" if network.kappa.number == 0 else power("d", network.kappa)
        target = f"parity of {network.degree} bits" if network.parity else f"He{network.degree}"
        return f"{layers}; readout {readout}; target {target}; kappa {ridge}"
    if isinstance(network, Attention):
        heads, context = power("d", network.heads), power("d", network.context)
        return f"attention of {heads} heads over {context} tokens; cubic target"
    return f"own terms, {len(network.patterns)} patterns"


def headline(found: Scaling) -> str:
    """The sample exponent in one sentence."""
    if found.exponent is None:
        hint = f", as in --at {found.example}" if found.example else ""
        return f"Samples needed: {found.closed_form}. For the winning patterns give values{hint}."
    exponent = f"d^{bracketed(found.exponent)}"
    if found.is_rounded:
        near = ", ".join(f"{name} = {value}" for name, value in sorted(found.point.items()))
        form = f"; near here {found.closed_form} ({about(near)})" if near else ""
        return f"Samples needed: about P ~ {about(exponent)}{form}."
    if found.point:
        where = ", ".join(f"{name} = {value}" for name, value in sorted(found.point.items()))
        return f"Samples needed: P ~ {exponent}; near here {found.closed_form} ({where})."
    return f"Samples needed: P ~ {exponent}."


def winner_sentences(found: Scaling, winner: Winner) -> list[str]:
    """What each layer does in a winning pattern, and what holds its energy."""
    said = layer_sentences(winner) + binding_sentences(winner)
    return [about(text) for text in said] if found.is_rounded else said


def layer_sentences(winner: Winner) -> list[str]:
    """What each layer does in a winning pattern."""
    return [f"Layer {number}: {_layer(layer)}." for number, layer in enumerate(winner.layers, 1)]


def _layer(layer: LearnedLayer) -> str:
    feature = f"He{layer.feature}" if layer.feature is not None else "the feature"
    if layer.kind == "lazy":
        return "lazy, its neurons stay as in the prior"
    if layer.kind == "magnified":
        gain = _size(layer.gain, "D")
        return f"all neurons magnified, the variance along {feature} grows by {gain}"
    strength = _size(layer.strength, "mu")
    if layer.kind == "magnetised":
        return f"all neurons magnetised along {feature}, each by {strength}"
    neurons = _size(layer.neurons, "M")
    return f"{neurons} neurons specialise on {feature}, strength {strength}"


def _size(interval: Interval | None, name: str) -> str:
    """``O(1)``, ``d^(1/2)``, or the range of optima: ``M = d^0 to d^1``."""
    low, high = interval or (None, None)
    if low is not None and low == high:
        return "O(1)" if low == 0 else power("d", low)
    first = "any less" if low is None else power("d", low)
    last = "any more" if high is None else power("d", high)
    return f"{name} = {first} to {last}"


def binding_sentences(winner: Winner) -> list[str]:
    """Which terms and which bounds hold the energy where it is."""
    held, bounds, mass = [], [], Fraction(0)
    for term, weight in winner.binding:
        # Weights of the terms come first and add to one; the others are those of bounds.
        if mass == 1:
            bounds.append(f"Bound that binds: {term.meaning}.")
            continue
        mass += weight
        size = monomial(term)
        held.append(f"{weight} of {term.meaning}" + (f" ({size})" if term.meaning != size else ""))
    return ([f"The energy is held by {' and '.join(held)}."] if held else []) + bounds


def monomial(term: Monomial) -> str:
    """A term as a product of powers: ``M1*d``, ``N1/M1``."""
    sizes = [(name.upper(), value) for name, value in term.constant.coefficients]
    factors = [*term.powers, *sizes] + (
        [("d", term.constant.constant)] if term.constant.constant else []
    )
    above = [_factor(name, value) for name, value in factors if value > 0]
    below = [_factor(name, -value) for name, value in factors if value < 0]
    return "*".join(above or ["1"]) + "".join(f"/{factor}" for factor in below)


def _factor(name: str, value: Fraction) -> str:
    return name if value == 1 else f"{name}^{bracketed(value)}"


def symbolic_rows(found: Scaling) -> list[dict[str, str]]:
    """Every pattern with its energy exponent, with and without bounds on how many and how much."""
    model, _ = found.network.symbolic()
    texts = [
        {
            name: " or ".join(maximum(forms) for other, forms in rows if other == name)
            for name, _ in rows
        }
        for rows in (energy_forms(model), energy_forms(model, boxes=False))
    ]
    return [
        {"name": name, "energy": energy, "energy_without_bounds": texts[1].get(name, "none")}
        for name, energy in texts[0].items()
    ]


def symbolic_table(found: Scaling) -> Table:
    """Those rows as a table."""
    heads = ("pattern", "energy exponent", "without bounds on numbers and gains")
    text = about if found.is_rounded else str
    return Table.of(*heads, rows=[map(text, row.values()) for row in symbolic_rows(found)])


def pattern_table(found: Scaling, most: int = 6) -> Table:
    """The winning patterns and what is learned in each; of many that tie, the first."""
    table = Table("pattern", "energy", "what is learned")
    text = about if found.is_rounded else str
    for winner in found.winners[:most]:
        learned = [
            text
            for text, layer in zip(layer_sentences(winner), winner.layers, strict=True)
            if layer.kind != "lazy"
        ]
        if not winner.layers:
            learned = [
                f"{name} {_size(interval, name)}" for name, interval in sorted(winner.free.items())
            ]
        said = "; ".join(text.rstrip(".") for text in learned)
        said = said or "nothing: the kernel of the prior is enough"
        table.add(winner.name, text(maximum(winner.forms)), text(said))
    if len(found.winners) > most:
        table.add(f"and {len(found.winners) - most} more", "", "they tie; --json lists them")
    return table
