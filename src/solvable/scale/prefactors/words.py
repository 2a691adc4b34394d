"""Sentences and tables about the energies of patterns at given sizes."""

from __future__ import annotations

from math import log

from solvable.plots.tables import Column, Table
from solvable.scale.prefactors.pattern_sums import LayerNumbers
from solvable.scale.prefactors.samples_at_sizes import Numbers


def number_table(found: Numbers) -> Table:
    """Build the table of patterns with energy, samples and each layer's values, cheapest first."""
    table = Table(
        "pattern",
        Column("energy", right=True),
        Column("samples", right=True),
        Column("times", right=True),
        "layer 1",
        title="Patterns at these sizes",
    )
    for row in found.patterns:
        numbers = size(row.energy), size(row.samples), f"{row.factor:.3g}"
        table.add(row.name, *numbers, layer_words(row.layer))
    if found.exact is not None:
        exact = found.exact
        samples = found.winner.samples * exact.energy / found.winner.energy
        layer = layer_words(LayerNumbers("Sp", 1, exact.neurons, exact.strength, exact.rest))
        factor = exact.energy / found.winner.energy
        table.add("exact", size(exact.energy), size(samples), f"{factor:.3g}", layer)
    return table


def layer_words(layer: LayerNumbers) -> str:
    """Write the number of neurons, the strength and the gain of a layer."""
    if layer.kind == "GP":
        return "lazy"
    if layer.kind == "GFL":
        return f"D = {layer.gain:.3g}"
    rest = "" if layer.rest is None else f", r = {layer.rest:.2g}"
    return f"M = {layer.neurons:.3g}, mu = {layer.strength:.3g}{rest}"


def number_sentence(found: Numbers) -> str:
    """Write the winning pattern, and how its energy gives the number of samples."""
    sizes = ", ".join(f"{name} = {value:g}" for name, value in found.sizes.items())
    winner = found.winner
    rule = (
        f"2 kappa E / k with k = {found.k:.4g}"
        if found.classes is None
        else f"cross-entropy over {found.classes} classes: kappa E / (log {found.classes} + the loss of "
        f"prior logits of variance {found.k - 1:.4g})"
    )
    return (
        f"At {sizes}, {winner.name} has the least energy, {size(winner.energy)}. Below "
        f"{size(winner.samples)} samples no alignment is expected ({rule})."
    )


def class_sentence(classes: int) -> str:
    """State the number of samples of a classifier next to that of regression."""
    return (
        f"With cross-entropy over {classes} classes the exponent is the same, and the number of samples "
        f"is kappa E / log {classes} = {1 / log(classes):.3g} kappa E to leading order. In regression it "
        "is 2 kappa E / k with k = 1 + K(x, x)."
    )


def samples_sentence(found: Numbers) -> str:
    """State the least number of samples at the given sizes."""
    return f"At the sizes given it takes at least {size(found.winner.samples)} samples."


def size(value: float) -> str:
    """Write a number with four significant digits; a number from 1,000 on is rounded to an integer."""
    return f"{value:.0f}" if 1_000 <= value < 1e7 else f"{value:.4g}"
