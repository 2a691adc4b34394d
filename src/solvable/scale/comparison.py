"""Comparison of networks by the number of samples that each needs, at given sizes or over a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from solvable.errors import InvalidParameter
from solvable.plots.words import listed
from solvable.scale.exponents.linear_forms import LinearForm, about, power
from solvable.scale.exponents.network import Attention, Description, Network
from solvable.scale.exponents.sample_exponent import Scaling, scaling_of
from solvable.scale.phases.diagram import PhaseDiagram, PhaseLine, phase_diagram, phase_line
from solvable.scale.phases.exponent_ranges import Ends, checked_box, sample_forms, validity


@dataclass(frozen=True)
class Comparison:
    """Sample exponents of several networks, and the network with the least exponent at each point."""

    titles: tuple[str, ...]  # names of the networks, all different
    found: tuple[Scaling, ...]
    # cells named after their winning networks; None if all sizes have values
    phases: PhaseDiagram | PhaseLine | None
    warnings: tuple[str, ...] = ()  # reasons why the comparison may be unfair

    @property
    def winners(self) -> tuple[str, ...]:
        """Names of the networks with the least exponent; empty while some size has no value."""
        if self.phases is not None:
            return ()
        least = min(self._exponents)
        rows = zip(self.titles, self._exponents, strict=True)
        return tuple(title for title, exponent in rows if exponent == least)

    @property
    def _exponents(self) -> tuple[Fraction, ...]:
        return tuple(row.exponent for row in self.found if row.exponent is not None)

    @property
    def is_rounded(self) -> bool:
        """Return True if the sizes of a network were rounded to powers of d."""
        return any(row.is_rounded for row in self.found)

    def sentences(self) -> list[str]:
        """Write which network wins, and where."""
        if self.phases is None:
            said = [self._at_a_point()]
        elif isinstance(self.phases, PhaseLine):
            said = _along(self.phases)
        else:
            said = _over(self.phases)
        return [about(text) for text in said] if self.is_rounded else said

    def _at_a_point(self) -> str:
        winners = self.winners
        if len(winners) == len(self.titles):
            return f"All networks need {_samples(self._exponents[0])}: they tie in exponents."
        others = [exponent for exponent in self._exponents if exponent > min(self._exponents)]
        lead = min(others) - min(self._exponents)
        text = (
            f"{listed(winners)} {'wins' if len(winners) == 1 else 'tie'} with "
            f"{_samples(min(self._exponents))}, fewer than the next network by a factor "
            f"{power('d', lead)}"
        )
        if self.is_rounded and lead <= Fraction(1, 50):
            text += ", which is within the rounding error of the sizes"
        return f"{text}."

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with fractions as text."""
        return {
            "networks": [
                {"name": title, **row.to_dict()}
                for title, row in zip(self.titles, self.found, strict=True)
            ],
            "winners": list(self.winners),
            "phases": None if self.phases is None else self.phases.to_dict(),
            "sentences": self.sentences(),
            "warnings": list(self.warnings),
        }


def compare(
    networks: Sequence[Description],
    *,
    at: Mapping[str, Fraction] | None = None,
    box: Ends | None = None,
) -> Comparison:
    """Compare networks by the number of samples they need, over one or two symbols of their sizes.

    Parameters
    ----------
    networks : sequence of Network, Attention or OwnMonomials
        At least two networks. A symbol that several networks contain is the same size in all of them.
    at : mapping of str to Fraction, optional
        Values of symbols; at most two symbols may stay free.
    box : mapping of str to (Fraction, Fraction), optional
        Ends of the ranges of free symbols; default 0 to 4.

    Returns
    -------
    Comparison
        Exponents, winners, and exact cells if symbols are free.

    Raises
    ------
    InvalidParameter
        If fewer than two networks are given, or more than two symbols are free.

    Examples
    --------
    >>> from solvable.scale.exponents.network_reader import network_of_flags
    >>> wide, deep = network_of_flags("erf:n", "he3"), network_of_flags("erf:2,erf:2", "he3")
    >>> compare([wide, deep], box={"n": (1, 7)}).sentences()[-1]
    'For n from 2 to 7, network (2) wins: d^(3/2) samples.'
    """
    if len(networks) < 2:
        raise InvalidParameter(
            f"{len(networks)} network is given; allowed: at least two. Name another network."
        )
    known = sorted({symbol for network in networks for symbol in network.symbols})
    fixed = dict(at or {})
    for name in (*fixed, *(box or {})):
        if name not in known:
            raise InvalidParameter(
                f"{name} is not a symbol of the networks; allowed: "
                f"{', '.join(known) or 'none, because all sizes have values'}."
            )
    free = [name for name in known if name not in fixed]
    if len(free) > 2:
        raise InvalidParameter(
            f"the sizes {', '.join(free)} have no values; allowed: at most two such sizes, which are the "
            "axes of the comparison. Set the other sizes with --at."
        )
    titles = _titles(networks)
    held = [
        network.at({k: v for k, v in fixed.items() if k in network.symbols}) for network in networks
    ]
    found = tuple(scaling_of(network) for network in held)
    rows = [
        (title, forms)
        for title, network in zip(titles, held, strict=True)
        for _, forms in sample_forms(network)
    ]
    box = checked_box(held, free, box, {})
    phases: PhaseDiagram | PhaseLine | None = None
    if len(free) == 1:
        phases = phase_line(rows, free[0], box=box, limits=_limits(titles, held))
    elif free:
        phases = phase_diagram(rows, *free, box=box, limits=_limits(titles, held))
    return Comparison(titles, found, phases, _warnings(networks))


def _limits(titles: Sequence[str], networks: Sequence[Description]) -> list[tuple[str, LinearForm]]:
    """Collect the limits of validity of all networks; equal limits are listed once."""
    found: dict[LinearForm, list[str]] = {}
    for title, network in zip(titles, networks, strict=True):
        for name, form in validity(network):
            if form.symbols:
                found.setdefault(form, []).append(f"{title}: {name}")
    return [(", ".join(names), form) for form, names in found.items()]


def _titles(networks: Sequence[Description]) -> tuple[str, ...]:
    """Return the names of the networks; repeated names get a number."""
    names = [network.title for network in networks]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    )


def _warnings(networks: Sequence[Description]) -> tuple[str, ...]:
    targets = set(map(_target, networks))
    if len(targets) == 1:
        return ()
    return (f"The networks learn different targets: {', '.join(sorted(targets))}.",)


def _target(network: Description) -> str:
    if isinstance(network, Network):
        patches = " over patches" if network.layers[0].patch is not None else ""
        return f"He{network.degree}{patches}"
    return "a cubic form of tokens" if isinstance(network, Attention) else "the target of own terms"


def _samples(exponent: LinearForm | Fraction) -> str:
    return f"{power('d', exponent)} samples"


def _along(line: PhaseLine) -> list[str]:
    """Write which network wins in each interval of the symbol."""
    found = []
    for cell in line.cells:
        (low,), (high,) = min(cell.pieces[0]), max(cell.pieces[0])
        wins = "wins" if len(cell.names) == 1 else "tie"
        found.append(
            f"For {line.x} from {low} to {high}, {listed(cell.names)} {wins}: {_samples(cell.form)}."
        )
    return found


def _over(diagram: PhaseDiagram) -> list[str]:
    """Write on which share of the range each network wins, and the borders between winners."""
    found = []
    for names in dict.fromkeys(cell.names for cell in diagram.cells):
        cells = [cell for cell in diagram.cells if cell.names == names]
        share = 100 * sum((cell.area for cell in cells), Fraction(0)) / diagram.area
        exponents = listed(list(dict.fromkeys(power("d", cell.form) for cell in cells)))
        wins = "wins" if len(names) == 1 else "tie"
        found.append(
            f"{listed(names)} {wins} in {float(share):.3g} % of the area of the range, with {exponents} "
            "samples."
        )
    borders = []
    for edge in diagram.edges:
        first, second = (diagram.cells[i].names for i in edge.cells)
        if first != second:
            borders.append(
                f"{edge.equation} ({edge.powers}) between {listed(first)} and {listed(second)}"
            )
    return found + [f"Border: {text}." for text in dict.fromkeys(borders)]
