"""Sentences and tables that state the result of a scaling argument."""

from __future__ import annotations

from fractions import Fraction

from solvable.plots.tables import Table
from solvable.scale.exponents.energies import energy_forms
from solvable.scale.exponents.linear_forms import about, bracketed, maximum, power
from solvable.scale.exponents.network import Attention, Description, Network
from solvable.scale.exponents.sample_exponent import Interval, LearnedLayer, Scaling, Winner
from solvable.scale.exponents.tropical import Monomial


def subject(network: Description) -> str:
    """Describe a network in one line."""
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
    """State the number of samples that the network needs."""
    learning = f"Learning {_target(found.network)} takes"
    if found.exponent is None:
        hint = f"; to see the winning patterns, give values, as in --at {found.example}"
        return f"{learning} {found.closed_form} samples{hint if found.example else ''}."
    exponent = f"d^{bracketed(found.exponent)}"
    sizes = ", ".join(f"{name} = {value}" for name, value in sorted(found.point.items()))
    near = f"; for sizes close to {sizes}, {found.closed_form}" if sizes else ""
    if found.is_rounded:
        return f"{learning} about P ~ {about(exponent)} samples{about(near)}."
    return f"{learning} P ~ {exponent} samples{near}."


def _target(network: Description) -> str:
    if isinstance(network, Network):
        return f"a parity of {network.degree} bits" if network.parity else f"He{network.degree}"
    return "the cubic target" if isinstance(network, Attention) else "the target"


def winner_sentences(found: Scaling, winner: Winner, *, details: bool = True) -> list[str]:
    """Describe a winning pattern's layers, active bounds and, as a detail, the balanced terms."""
    balance, bounds = binding_sentences(winner)
    sentences = layer_sentences(winner) + (balance if details else []) + bounds
    return [about(text) for text in sentences] if found.is_rounded else sentences


def layer_sentences(winner: Winner) -> list[str]:
    """Describe each layer of a winning pattern."""
    return [f"Layer {number}: {_layer(layer)}." for number, layer in enumerate(winner.layers, 1)]


def _layer(layer: LearnedLayer) -> str:
    feature = f"He{layer.feature}" if layer.feature is not None else "the feature"
    if layer.kind == "lazy":
        return "lazy, with neurons as in the prior"
    if layer.kind == "magnified":
        gain = _size(layer.gain, "D")
        return f"all neurons magnify {feature} (its variance grows by a factor {gain})"
    strength = _size(layer.strength, "mu")
    if layer.kind == "magnetised":
        return f"all neurons get a mean along {feature}, of strength {strength}"
    neurons = _size(layer.neurons, "M")
    return f"{neurons} neurons specialise on {feature}, with strength {strength}"


def _size(interval: Interval | None, name: str) -> str:
    """Write a size such as ``O(1)`` or ``d^(1/2)``, or a range of optima such as ``M = 1 to d``."""
    low, high = interval or (None, None)
    if low is not None and low == high:
        return "O(1)" if low == 0 else power("d", low)
    first = "0" if low is None else power("d", low)
    last = "any size" if high is None else power("d", high)
    return f"{name} = {first} to {last}"


def binding_sentences(winner: Winner) -> tuple[list[str], list[str]]:
    """Name the terms that the energy balances, each with its dual weight, and name the active bounds."""
    held, bounds, mass = [], [], Fraction(0)
    for term, weight in winner.binding:
        # The weights of the terms come first and add to one; all further weights belong to bounds.
        if mass == 1:
            bounds.append(f"Active bound: {term.meaning}.")
            continue
        mass += weight
        size = f"{monomial(term)}; " if term.meaning != monomial(term) else ""
        held.append(f"{term.meaning} ({size}weight {weight})")
    return [f"The energy balances {' and '.join(held)}."] if held else [], bounds


def monomial(term: Monomial) -> str:
    """Write a term as a product of powers: ``M1*d``, ``N1/M1``."""
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
    """List each pattern's energy exponent, with and without bounds on neuron numbers and gains."""
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
    """Build the table that lists each pattern with its energy exponent."""
    heads = ("pattern", "energy exponent", "without bounds on numbers and gains")
    text = about if found.is_rounded else str
    return Table.of(*heads, rows=[map(text, row.values()) for row in symbolic_rows(found)])


def pattern_table(found: Scaling, most: int = 6, *, details: bool = True) -> Table:
    """Build the table of winning patterns and of what they learn; the energies are a detail."""
    table = Table("pattern", *(["energy"] if details else []), "what is learned")
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
        summary = "; ".join(text.rstrip(".") for text in learned)
        summary = summary or "nothing: the kernel of the prior is enough"
        energy = [text(maximum(winner.forms))] if details else []
        table.add(winner.name, *energy, text(summary))
    if len(found.winners) > most:
        blank = [""] if details else []
        table.add(f"and {len(found.winners) - most} more", *blank, "tie too; --json lists them")
    return table
