"""Closed-form energies of all patterns of a network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import LinearForm, never_below, without_dominated
from solvable.scale.exponents.monomial_patterns import attention_candidates, own_candidates
from solvable.scale.exponents.network import Attention, Description, Network
from solvable.scale.exponents.patterns import Candidate, network_candidates
from solvable.scale.exponents.tropical import closed_form


def candidates(network: Description) -> tuple[Candidate, ...]:
    """Return all patterns of a network, an attention block or own terms, each with its programs."""
    if isinstance(network, Network):
        return network_candidates(network)
    if isinstance(network, Attention):
        return attention_candidates(network)
    return own_candidates(network)


def energy_forms(
    network: Description, *, boxes: bool = True, least_gain: LinearForm | None = None
) -> tuple[tuple[str, tuple[LinearForm, ...]], ...]:
    """Compute the energies of all patterns. E is the minimum over rows of the largest form in a row."""
    # With widths of at least d, two erf layers and He3: E = max(d, min(sqrt(N1 d), sqrt(N2 d), d³))
    # (scale 12; arXiv:2512.04165, Table 1). The paper sets no bounds on the number M and gain D.
    rows = candidates(network)
    if least_gain is not None:
        rows = tuple(_amplifying(candidate, least_gain) for candidate in rows)
    return table_of(rows, boxes=boxes)


def _amplifying(candidate: Candidate, least_gain: LinearForm) -> Candidate:
    """Set a lower bound for the gains of a pattern."""
    programs = tuple(
        replace(
            program,
            constraints=tuple(
                replace(bound, constant=least_gain)
                if bound.meaning.endswith("amplifies")
                else bound
                for bound in program.constraints
            ),
        )
        for program in candidate.programs
    )
    return replace(candidate, programs=programs)


def table_of(
    rows: Iterable[Candidate], *, boxes: bool = True
) -> tuple[tuple[str, tuple[LinearForm, ...]], ...]:
    """Compute each pattern's closed forms; it has several rows if its routes win at different sizes."""
    found: list[tuple[str, tuple[LinearForm, ...]]] = []
    for candidate in rows:
        kept: list[tuple[LinearForm, ...]] = []
        for program in candidate.programs:
            try:
                forms = without_dominated(closed_form(program if boxes else program.unboxed()))
            except InvalidParameter:
                if boxes:
                    raise
                continue  # without bounds this program has no minimum
            if not any(never_above(held, forms) for held in kept):
                kept = [held for held in kept if not never_above(forms, held)] + [forms]
        found += [(candidate.name, forms) for forms in kept]
    return tuple(found)


def never_above(lower: tuple[LinearForm, ...], upper: tuple[LinearForm, ...]) -> bool:
    """Return True if each form of one maximum is below some form of the other maximum."""
    return all(any(never_below(high, low) for high in upper) for low in lower)
