"""Sample exponent of a network, with its closed form, the winning patterns and their active bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter
from solvable.scale.exponents.energies import candidates, energy_forms, never_above
from solvable.scale.exponents.least_energy import Forward
from solvable.scale.exponents.linear_forms import (
    LinearForm,
    about,
    about_all,
    bracketed,
    maximum,
    power,
    without_dominated,
)
from solvable.scale.exponents.network import Description, Network
from solvable.scale.exponents.patterns import (
    Candidate,
    LayerPattern,
    candidate_of,
    check_reachable,
)
from solvable.scale.exponents.tropical import Program, closed_form, minimise

Interval = tuple[Fraction | None, Fraction | None]

KINDS = {
    "GP": "lazy",
    "GFL": "magnified",
    "Sp": "specialised",
    "Mag": "magnetised",
}


@dataclass(frozen=True)
class LearnedLayer:
    """Role of one layer in a winning pattern."""

    # lazy; magnified: one direction amplified in all neurons; specialised: a mean in some neurons;
    # magnetised: a mean in all neurons
    kind: str
    feature: int | None = None  # Hermite degree of the learned feature
    # least and largest exponent of each size among all optima; an open end is None
    neurons: Interval | None = None
    strength: Interval | None = None
    gain: Interval | None = None


@dataclass(frozen=True)
class Winner:
    """Pattern that attains the least energy."""

    name: str  # name of the pattern, such as "GP-Sp(1)"
    forms: tuple[LinearForm, ...]  # linear forms; the largest is the exponent of the energy
    layers: tuple[LearnedLayer, ...]
    free: dict[str, Interval]  # optimal exponents of the free sizes
    bounds: tuple[str, ...]  # constraints that the energy depends on


@dataclass(frozen=True)
class Scaling:
    r"""Number of samples that a network needs to learn its target, :math:`P\sim d^{\kappa + E}`.

    Parameters
    ----------
    network : Network or Attention
        Network or attention block that the result describes.
    exponent : Fraction or None
        Exponent of the number of samples, including kappa's exponent; None while symbols have no values.
    closed_form : str
        Exponent as a function of the sizes, as "P ~ d^max((n+1)/2, (n+3)/4)", for the winning
        pattern. While symbols have no values, it is the minimum over all patterns.
    winners : tuple of Winner
        Patterns with the least energy.
    point : dict of str to Fraction
        Value of each symbol.
    warnings : tuple of str
        Conditions under which the argument is not valid.
    """

    network: Description
    exponent: Fraction | None
    closed_form: str
    winners: tuple[Winner, ...]
    point: dict[str, Fraction]
    warnings: tuple[str, ...]

    @property
    def ties(self) -> tuple[str, ...]:
        """Names of the patterns that tie; empty if a single pattern wins."""
        names = tuple(winner.name for winner in self.winners)
        return names if len(names) > 1 else ()

    @property
    def example(self) -> str:
        """Example values of the symbols that give an answer, written as for ``--at``; may be empty."""
        names = self.network.symbols
        for value in map(Fraction, ("1", "1/2", "2", "0")):
            with suppress(InvalidParameter):
                scaling_of(self.network, dict.fromkeys(names, value))
                return ",".join(f"{name}={value}" for name in names)
        return ""

    @property
    def is_rounded(self) -> bool:
        """Return True if exponents are approximate, because sizes were rounded to powers of d."""
        return isinstance(self.network, Network) and self.network.rounded

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``solvable scale --json``; exponents are rational strings or decimals."""
        held = self._to_dict()
        return about_all(held) if self.is_rounded else held

    def _to_dict(self) -> dict[str, Any]:
        return {
            "exponent": None if self.exponent is None else str(self.exponent),
            "closed_form": self.closed_form,
            "patterns": [_winner_dict(winner, self.point) for winner in self.winners],
            "ties": list(self.ties),
            "warnings": list(self.warnings),
            "point": {name: str(value) for name, value in self.point.items()},
        }


def scaling_of(network: Description, at: Mapping[str, Fraction] | None = None) -> Scaling:
    r"""Compute how the number of samples must scale for a network to learn its target.

    The posterior keeps the alignment of the prior below :math:`P^* = 2\kappa E/k` samples, with E the
    energy of the cheapest pattern of feature learning. In exponents of d each pattern is a small
    linear program, which is solved exactly.

    Parameters
    ----------
    network : Network or Attention
        Result of :func:`read_network` or :func:`network_of_flags`.
    at : mapping of str to Fraction, optional
        Values of symbols.

    Returns
    -------
    Scaling
        Exponent, closed form, winning patterns with ties, warnings.

    Raises
    ------
    InvalidParameter
        If the network cannot represent the target, a program has no minimum, or a size is out of range.

    Notes
    -----
    docs/derivations/scale, from arXiv:2512.04165, Equations 9 to 12. One hidden layer has the energies
    d^m, (N d)^(m/(m+1)) and sqrt(N d) (scale 10). Number and strength of specialised neurons are both
    free, which below width d gives d^max((n+1)/2, (n+m)/(m+1)) (scale 11), less than the paper
    (``tests/models/two_layer_posterior/test_tail.py``).

    Examples
    --------
    >>> from solvable.scale import network_of_flags, scaling_of
    >>> found = scaling_of(network_of_flags("erf:1,erf:2", "he3"))
    >>> str(found.exponent), found.closed_form
    ('1', 'P ~ d^max((n1+1)/2, (n1+3)/4)')
    """
    given = network.at(dict(at or {}))
    _check_values(at or {}, network.symbols)
    if given.symbols:
        return _rounded(_symbolic(given))
    found = _deep(given) if isinstance(given, Network) and is_deep(given) else _shallow(given)
    if found.exponent is not None and found.exponent < 0:
        raise InvalidParameter(
            f"the exponent of the number of samples is {found.exponent}, which is less than one sample "
            f"(the exponent of kappa is {given.kappa}); allowed: exponents from 0. Raise kappa, or "
            "correct the sizes."
        )
    return _rounded(found)


def _rounded(found: Scaling) -> Scaling:
    """Round the exponents in a result's texts to the precision of its sizes."""
    if not found.is_rounded:
        return found
    warnings = tuple(map(about, found.warnings))
    return replace(found, closed_form=about(found.closed_form), warnings=warnings)


def _shallow(given: Description) -> Scaling:
    """Solve the programs of all patterns, and write their closed forms."""
    model, point = given.symbolic()
    rows = [candidate for candidate in _near_least(given, model) if candidate.programs]
    values = [
        [(minimise(program, point, faces=False).value, program) for program in candidate.programs]
        for candidate in rows
    ]
    least = min(value for held in values for value, _ in held)
    if isinstance(given, Network) and least + given.kappa.constant != exponent_of(given):
        raise AssertionError(
            f"programs give {least}, the pass through the layers does not: {given}"
        )
    optimal = [
        _winner(row, [program for value, program in held if value == least], point)
        for row, held in zip(rows, values, strict=True)
        if min(value for value, _ in held) == least
    ]
    winners = [winner for winner in optimal if winner is not None]
    winners.sort(
        key=lambda winner: (len(winner.forms), sum(layer.kind != "lazy" for layer in winner.layers))
    )
    forms = without_dominated(form + model.kappa for form in winners[0].forms)
    return Scaling(
        given,
        least + given.kappa.constant,
        f"P ~ d^{bracketed(maximum(forms))}",
        tuple(winners),
        point,
        _warnings(given, winners),
    )


MOST_WINNERS = 60
"""Largest number of patterns with equal energy that are listed for a deep network."""


def is_deep(network: Network) -> bool:
    """Return True if computing closed forms and ranges of optima would take minutes."""
    odd = not any(layer.activation.constant for layer in network.layers)
    return len(network.layers) > 3 or (
        len(network.layers) == 3 and not (odd and network.degree <= 3)
    )


def _deep(network: Network) -> Scaling:
    """Compute a deep network's exact energy, and one optimum per simplest winning pattern."""
    check_reachable(network)
    forward = Forward(network)
    energy = forward.least_energy()
    winners: list[Winner] = []
    for pattern in forward.attaining(energy, MOST_WINNERS):
        free: dict[str, Interval] = {
            name: (value, value) for name, value in forward.spent(pattern, energy).items()
        }
        layers = tuple(_learned(i, held, free) for i, held in enumerate(pattern, 1))
        learned = sum(held.kind != "GP" for held in pattern)
        if winners and learned > sum(layer.kind != "lazy" for layer in winners[0].layers):
            break
        if all(high != 0 for name, (_, high) in free.items() if name.startswith("D")):
            name = "-".join(map(str, pattern))
            winners.append(Winner(name, (LinearForm.of(energy),), layers, dict(free), ()))
    exponent = energy + network.kappa.constant
    said = (
        f"For {len(network.layers)} hidden layers no closed form of the exponent is given. One optimum "
        "per pattern is listed, and among ties only the patterns with the fewest learning layers."
    )
    text = f"P ~ d^{bracketed(exponent)}"
    found = tuple(winners)
    return Scaling(network, exponent, text, found, {}, (*_warnings(network, found), said))


def exponent_of(network: Network) -> Fraction:
    """Compute only the sample exponent, without closed forms or winning patterns."""
    check_reachable(network)
    return Forward(network).least_energy() + network.kappa.constant


def _near_least(given: Description, model: Description) -> tuple[Candidate, ...]:
    """Return the patterns with the least energy; for networks, not all other patterns are solved."""
    if not isinstance(given, Network) or not isinstance(model, Network):
        return candidates(model)
    check_reachable(given)
    forward = Forward(given)
    rows = forward.attaining(forward.least_energy(), MOST_WINNERS)
    return tuple(candidate_of(model, row) for row in rows)


def _check_values(at: Mapping[str, Fraction], symbols: Iterable[str]) -> None:
    known = tuple(symbols)
    for name in at:
        if name not in known:
            listed = ", ".join(known) or "none: every size has a number"
            raise InvalidParameter(
                f"{name} has a value, but is not a symbol of the network; symbols: {listed}."
            )


def _symbolic(network: Description) -> Scaling:
    """Build the result while symbols have no values; it lists all patterns that win somewhere."""
    kept: list[tuple[LinearForm, ...]] = []
    for _, forms in energy_forms(network):
        shifted = without_dominated(form + network.kappa for form in forms)
        if not any(never_above(held, shifted) for held in kept):
            kept = [held for held in kept if not never_above(shifted, held)] + [shifted]
    texts = [bracketed(maximum(forms)) for forms in sorted(kept)]
    text = texts[0] if len(texts) == 1 else f"min({', '.join(texts)})"
    return Scaling(network, None, f"P ~ d^{text}", (), {}, _warnings(network, ()))


def _winner(
    candidate: Candidate, programs: list[Program], point: Mapping[str, Fraction]
) -> Winner | None:
    """Compute a pattern's optimal sizes over all routes; None at gain 1, which is another pattern."""
    optima = [minimise(program, point) for program in programs]
    free: dict[str, Interval] = {}
    for optimum in optima:
        for name, (low, high) in optimum.intervals.items():
            old = free.get(name, (low, high))
            free[name] = (
                None if low is None or old[0] is None else min(low, old[0]),
                None if high is None or old[1] is None else max(high, old[1]),
            )
    if any(
        name.startswith("D") and high == 0 for name, (_, high) in free.items() if candidate.layers
    ):
        return None
    layers = tuple(_learned(i, pattern, free) for i, pattern in enumerate(candidate.layers, 1))
    forms = without_dominated(closed_form(programs[0]))
    return Winner(candidate.name, forms, layers, free, optima[0].bounds)


def _learned(number: int, pattern: LayerPattern, free: dict[str, Interval]) -> LearnedLayer:
    return LearnedLayer(
        KINDS[pattern.kind],
        pattern.feature,
        free.get(f"M{number}"),
        free.get(f"mu{number}"),
        free.get(f"D{number}"),
    )


def _warnings(network: Description, winners: Iterable[Winner]) -> tuple[str, ...]:
    """Write the conditions under which the argument is not valid."""
    found = []
    if isinstance(network, Network):
        found += _narrow_layers(network)
        if network.mean_field or (network.readout.number or 0) > 0:
            found.append(
                "With a mean-field readout the posterior may over-fit, and the bound on samples may "
                "be vacuous; use an effective ridge as kappa."
            )
    if network.kappa.number is not None and network.kappa.number < 0:
        found.append(
            "kappa falls with d, so that the posterior may over-fit and the bound on samples may be "
            "vacuous; use an effective ridge as kappa."
        )
    listed = list(winners)
    if len(listed) > 1:
        names = ", ".join(winner.name for winner in listed[:6])
        more = f" and {len(listed) - 6} more" if len(listed) > 6 else ""
        found.append(f"These patterns tie in exponents: {names}{more}. Their prefactors differ.")
    for winner in listed[:1]:
        last = winner.layers[-1] if winner.layers else None
        degree = network.degree if isinstance(network, Network) else None
        if (
            last
            and last.kind in ("specialised", "magnetised")
            and last.feature != degree
            and degree
        ):
            found.append(
                f"Neurons of the last layer learn He{last.feature}, from which the activation makes "
                f"He{degree}. They also carry other degrees, and cancelling these takes more samples "
                "after alignment has started."
            )
    return tuple(found)


def _narrow_layers(network: Network) -> list[str]:
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


def _winner_dict(winner: Winner, point: Mapping[str, Fraction]) -> dict[str, Any]:
    def ends(interval: Interval | None) -> list[str | None] | None:
        return None if interval is None else [None if end is None else str(end) for end in interval]

    return {
        "name": winner.name,
        "energy": str(max(form(point) for form in winner.forms)),
        "closed_form": maximum(winner.forms),
        "layers": [
            {
                "layer": number,
                "kind": layer.kind,
                "feature": None if layer.feature is None else f"He{layer.feature}",
                "neurons": ends(layer.neurons),
                "strength": ends(layer.strength),
                "gain": ends(layer.gain),
            }
            for number, layer in enumerate(winner.layers, 1)
        ],
        "free": {name: ends(interval) for name, interval in sorted(winner.free.items())},
        "bounds": list(winner.bounds),
    }
