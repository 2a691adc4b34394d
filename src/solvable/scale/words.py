"""Sentences and tables that state the result of a scaling argument."""

from __future__ import annotations

from solvable.plots.tables import Table
from solvable.scale.exponents.energies import energy_forms
from solvable.scale.exponents.linear_forms import about, bracketed, maximum, power
from solvable.scale.exponents.network import Description, Network
from solvable.scale.exponents.sample_exponent import Interval, LearnedLayer, Scaling, Winner


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
        standard = network.readout.number == 0
        readout = "standard" if standard else f"chi = {power('d', network.readout)}"
        readout = "mean-field" if network.mean_field else readout
        ridge = "of order 1" if network.kappa.number == 0 else power("d", network.kappa)
        target = f"parity of {network.degree} bits" if network.parity else f"He{network.degree}"
        return f"{layers}; readout {readout}; target {target}; kappa {ridge}"
    heads, context = power("d", network.heads), power("d", network.context)
    return f"attention of {heads} heads over {context} tokens; cubic target"


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
    return "the cubic target"


def winner_sentences(found: Scaling, winner: Winner) -> list[str]:
    """Describe a winning pattern's layers and active bounds."""
    bounds = [f"Active bound: {meaning}." for meaning in winner.bounds]
    sentences = layer_sentences(winner) + bounds
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


def pattern_table(found: Scaling, most: int = 6) -> Table:
    """Build the table of winning patterns and of what they learn."""
    table = Table("pattern", "what is learned")
    text = about if found.is_rounded else str
    for winner in found.winners[:most]:
        sentences = zip(layer_sentences(winner), winner.layers, strict=True)
        learned = [said.rstrip(".") for said, layer in sentences if layer.kind != "lazy"]
        table.add(
            winner.name, text("; ".join(learned) or "nothing: the kernel of the prior is enough")
        )
    if len(found.winners) > most:
        table.add(f"and {len(found.winners) - most} more", "tie too; --json lists them")
    return table
