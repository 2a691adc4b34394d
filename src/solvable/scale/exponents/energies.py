"""Closed-form energies of all patterns of a network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import LinearForm, never_below, without_dominated
from solvable.scale.exponents.network import Attention, Description, Network
from solvable.scale.exponents.patterns import Candidate, LayerPattern, network_candidates
from solvable.scale.exponents.tropical import Monomial, Program, closed_form


def candidates(network: Description) -> tuple[Candidate, ...]:
    """Return all patterns of a network or an attention block, each with its programs."""
    return (
        network_candidates(network)
        if isinstance(network, Network)
        else attention_candidates(network)
    )


def attention_candidates(block: Attention) -> tuple[Candidate, ...]:
    """Build the patterns of softmax attention with a cubic target."""
    # f = L^-1/2 sum_h sum_ab softmax(X A_h X^T)_ab w_h . x_b, with A_h entries from N(0, 1/d²) and
    # w_h from N(0, I/(H d)). To first order in A, <y, K, y> = 2/(L d³). M heads with A_12 of order mu
    # cost M mu² d² and leave the alignment term H L d/(M mu²), so that the energies are L d³ and
    # sqrt(H L d³)   (scale 13; arXiv:2512.04165, Equations 14 and 81).
    heads, context = block.heads, block.context
    one = LinearForm.of(1)
    prior = Program((Monomial(context + 3, meaning="alignment with the target"),))
    gain = Program(
        (
            Monomial.of(heads, {"D1": 1}, "amplifying A_12 in all heads"),
            Monomial.of(context + 3, {"D1": -1}, "alignment with the target"),
        ),
        (
            Monomial.of(0, {"D1": -1}, "layer 1 amplifies", box=True),
            Monomial.of(-2, {"D1": 1}, "layer 1 amplifies up to order one", box=True),
        ),
    )
    heads_learn = Program(
        (
            Monomial.of(2, {"M1": 1, "mu1": 2}, "specialised heads"),
            Monomial.of(heads + context + one, {"M1": -1, "mu1": -2}, "alignment with the target"),
        ),
        (
            Monomial.of(0, {"mu1": 1}, "strength of layer 1 at most one"),
            Monomial.of(0, {"M1": -1}, "at least one head", box=True),
            Monomial.of(-heads, {"M1": 1}, "at most all heads", box=True),
        ),
    )
    return (
        Candidate("GP", (LayerPattern("GP"),), (prior,)),
        Candidate("GFL", (LayerPattern("GFL"),), (gain,)),
        Candidate("Sp", (LayerPattern("Sp"),), (heads_learn,)),
    )


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
