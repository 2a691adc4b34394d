"""Changes of a network that save samples; every listed saving is computed on the changed network."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from solvable.errors import InvalidParameter
from solvable.scale.exponents.activations import find_activation
from solvable.scale.exponents.linear_forms import LinearForm, about, power
from solvable.scale.exponents.network import (
    MOST_EXPONENT,
    MOST_LAYERS,
    Attention,
    Description,
    Layer,
    Network,
)
from solvable.scale.exponents.sample_exponent import (
    Scaling,
    exponent_of,
    forms_along,
    is_deep,
    scaling_of,
)
from solvable.scale.phases.diagram import Candidates, PhaseLine, phase_line
from solvable.scale.phases.exponent_ranges import sample_forms

ONE = LinearForm.of(1)
FARTHEST = Fraction(4)
"""Largest tried increase of a size's exponent."""
LARGEST = Fraction(MOST_EXPONENT)


@dataclass(frozen=True)
class Suggestion:
    """A change of the network, and the factor by which it reduces the samples."""

    saves: Fraction  # exponent of the factor that the change saves
    text: str


@dataclass(frozen=True)
class _Size:
    """A size of the network that may become smaller or larger."""

    symbol: str
    least: Fraction  # smallest exponent for which the theory holds
    most: Fraction  # largest exponent that is tried
    smaller: str  # texts of the change, such as "Narrow layer 2: d^{0} fewer neurons"
    larger: str
    unit: str  # name of the size, such as "a width of"


def suggestions(network: Description, *, found: Scaling | None = None) -> tuple[str, ...]:
    """List changes of a network that save samples, the largest saving first.

    Parameters
    ----------
    network : Network, Attention or OwnMonomials
        A network whose sizes all have values.
    found : Scaling, optional
        Result of :func:`scaling_of` for the network; computed if left out.

    Returns
    -------
    tuple of str
        One sentence per change; empty if no change saves samples, or while some size has no value.

    Examples
    --------
    >>> from solvable.scale.exponents.network_reader import network_of_flags
    >>> for sentence in suggestions(network_of_flags("erf:2", "he3")):
    ...     print(sentence)
    Add a layer of d erf neurons after layer 1: exponent 1 instead of 3/2.
    Narrow layer 1: d^x fewer neurons save d^(x/2) samples, down to d neurons: exponent 1 instead of 3/2.
    Use poly3 in all layers: exponent 5/4 instead of 3/2.
    """
    if network.symbols:
        return ()
    found = found or scaling_of(network)
    changes = [*_sizes(found), *_ridge(network)]
    if isinstance(network, Network) and found.exponent is not None:
        changes += [*_architectures(network, found.exponent), *_patches(network)]
    rounded = isinstance(network, Network) and network.rounded
    # Sizes are rounded within 0.01, so that smaller savings are not significant.
    least = Fraction(1, 50) if rounded else Fraction(0)
    rows = sorted(
        {row.text: row for row in changes if row.saves > least}.values(),
        key=lambda row: (-row.saves, row.text),
    )
    return tuple(about(row.text) if rounded else row.text for row in rows)


def _sizes(found: Scaling) -> Iterator[Suggestion]:
    """Find the savings from a change of each width."""
    network, kappa = found.network, found.network.kappa
    if isinstance(network, Network) and is_deep(network):
        return
    for size in _sizes_of(network, found.point):
        ends = [size.least, found.point[size.symbol], size.most]
        rows = [
            (name, tuple(form + kappa for form in forms))
            for name, forms in forms_along(network, size.symbol, ends)
        ]
        yield from _along(rows, size, found.point)


def _sizes_of(network: Description, point: dict[str, Fraction]) -> Iterator[_Size]:
    for symbol, here in point.items():
        least, most = Fraction(0), min(here + FARTHEST, max(here, LARGEST))
        if isinstance(network, Network):
            number = int(symbol[1:] or 1)
            least, unit = network.layers[number - 1].reach.constant, "neurons"
            less, more = f"Narrow layer {number}", f"Widen layer {number}"
        elif isinstance(network, Attention):
            words = {"h": ("heads", "Take fewer heads", "Take more heads")}
            other = ("tokens", "Shorten the context", "Lengthen the context")
            unit, less, more = words.get(symbol, other)
        else:
            name = next(name for name, _ in network.sizes if name.lower() == symbol)
            less, more = f"Make {name} smaller: d^x less", f"Make {name} larger: d^x more"
            yield _Size(symbol, least, most, less, more, "")
            continue
        less, more = f"{less}: d^x fewer {unit}", f"{more}: d^x more {unit}"
        yield _Size(symbol, least, most, less, more, unit)


def _along(rows: Candidates, size: _Size, point: dict[str, Fraction]) -> Iterator[Suggestion]:
    """Find the savings from a smaller and from a larger value of a size."""
    if not any(size.symbol in form.symbols for _, forms in rows for form in forms):
        return
    here = point[size.symbol]
    for low, high, words, until in (
        (here, size.most, size.larger, "up to"),
        (size.least, here, size.smaller, "down to"),
    ):
        if low < high:
            line = phase_line(rows, size.symbol, box={size.symbol: (low, high)}, point=point)
            yield from _least(line, here, size, words, until)


def _least(
    line: PhaseLine, here: Fraction, size: _Size, words: str, until: str
) -> Iterator[Suggestion]:
    """Find a size's best value, and the saving per power of the size on the way to this value."""
    places = sorted(
        {line.box[0][0], *line.breakpoints, line.box[0][1]}, key=lambda place: abs(place - here)
    )
    # If several values save equally, the nearest value is taken.
    best = min(places, key=line.at)
    now, then = line.at(here), line.at(best)
    if then >= now:
        return
    slopes = []
    for first, second in itertools.pairwise(places):
        if abs(second - here) <= abs(best - here):
            slopes.append((line.at(first) - line.at(second)) / abs(second - first))
    end = f"{until} {_size(best)}{' ' if size.unit else ''}{size.unit}"
    total = f"exponent {then} instead of {now}"
    if len(set(slopes)) == 1:
        text = f"{words} save {power('d', LinearForm.of(0, {'x': slopes[0]}))} samples, {end}: {total}."
    else:
        start = next(place for place, slope in zip(places, slopes, strict=False) if slope > 0)
        begins = f", which begins to save at {_size(start)}" if start != here else ""
        text = f"{words.partition(':')[0]} {end}{begins}: {total}."
    yield Suggestion(now - then, text)


def _size(exponent: Fraction) -> str:
    return "O(1)" if exponent == 0 else power("d", exponent)


def _ridge(network: Description) -> Iterator[Suggestion]:
    kappa = network.kappa.constant
    if kappa > 0:
        yield Suggestion(
            kappa,
            "Lower the ridge: a ridge smaller by d^x saves d^x samples, down to order one: "
            f"{_size(kappa)} fewer.",
        )


def _architectures(network: Network, now: Fraction) -> Iterator[Suggestion]:
    """Try another readout, other activations, one layer fewer or more, and shared weights."""
    tried: list[tuple[str, Network]] = []
    if network.mean_field or network.readout.constant > 0:
        standard = replace(network, mean_field=False, readout=LinearForm.of(0))
        tried.append(("Use the standard readout", standard))
    tried += [*_other_activations(network), *_other_depths(network), *_shared(network)]
    for words, variant in tried:
        try:
            exponent = exponent_of(variant)
        except InvalidParameter:  # the variant cannot represent the target
            continue
        yield Suggestion(now - exponent, f"{words}: exponent {exponent} instead of {now}.")


def _other_activations(network: Network) -> Iterator[tuple[str, Network]]:
    for name in ("erf", "relu", f"poly{max(network.degree, 2)}"):
        other = find_activation(name)
        kinds = {(layer.activation.growth, layer.activation.parity) for layer in network.layers}
        if kinds != {(other.growth, other.parity)}:
            layers = tuple(replace(layer, activation=other) for layer in network.layers)
            yield f"Use {name} in all layers", replace(network, layers=layers)


def _other_depths(network: Network) -> Iterator[tuple[str, Network]]:
    layers = network.layers
    if len(layers) > 1:
        for i in range(len(layers)):
            rest = layers[:i] + layers[i + 1 :]
            yield f"Drop layer {i + 1}", replace(network, layers=rest)
    if len(layers) < MOST_LAYERS:
        more = (*layers, Layer(ONE, layers[-1].activation))
        words = f"Add a layer of d {layers[-1].activation.name} neurons after layer {len(layers)}"
        yield words, replace(network, layers=more)


def _shared(network: Network) -> Iterator[tuple[str, Network]]:
    first = network.layers[0]
    if first.patch is None:
        half = LinearForm.of(Fraction(1, 2))
        layers = (replace(first, patch=half), *network.layers[1:])
        target = f"a sum of He{network.degree} over patches of d^(1/2) inputs"
        words = f"If the target is {target}, share weights"
        yield words, replace(network, layers=layers)


def _patches(network: Network) -> Iterator[Suggestion]:
    """Find the savings from smaller and larger patches."""
    first = network.layers[0]
    if first.patch is None or len(network.layers) > 2:
        return
    here = first.patch.constant
    rows = sample_forms(
        replace(network, layers=(replace(first, patch=LinearForm.symbol("s")), *network.layers[1:]))
    )
    size = _Size(
        "s",
        Fraction(0),
        network.layers[1].reach.constant if len(network.layers) > 1 else Fraction(1),
        "If the target is a sum over smaller patches, use these: d^x fewer inputs",
        "If the target is a sum over larger patches, use these: d^x more inputs",
        "inputs",
    )
    yield from _along(rows, size, {"s": here})
