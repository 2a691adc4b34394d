"""Patterns given as monomials: the patterns of an attention block, and patterns written by a user."""

from __future__ import annotations

import re
from fractions import Fraction

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.network import Attention, OwnMonomials
from solvable.scale.exponents.patterns import Candidate, LayerPattern
from solvable.scale.exponents.tropical import Monomial, Program


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


def own_candidates(model: OwnMonomials) -> tuple[Candidate, ...]:
    """Build the patterns of a user's own terms; a name that is not a size is a free variable."""
    sizes = dict(model.sizes)
    found = []
    for name, energy, bounds in model.patterns:
        program = Program(
            tuple(read_monomial(text, sizes) for text in energy),
            tuple(read_monomial(text, sizes, box=True) for text in bounds),
        )
        found.append(Candidate(name, (), (program,)))
    return tuple(found)


def read_monomial(text: str, sizes: dict[str, LinearForm], *, box: bool = False) -> Monomial:
    """Read a product of powers, such as ``N*d^2/M^(1/2)``."""
    plain = text.replace("**", "^").replace(" ", "")
    power = r"\(?-?[0-9]{1,6}(?:/[0-9]{1,6})?\)?"
    pattern = rf"([*/]?)(?:(1(?![0-9.]))|([A-Za-z][A-Za-z0-9_]*))(?:\^({power}))?"
    end = 0
    constant, powers = LinearForm.of(0), dict[str, Fraction]()
    for match in re.finditer(pattern, plain):
        sign, one, name, raised = match.groups()
        bracketed = raised is None or raised.startswith("(") == raised.endswith(")")
        # M^1/2 is ambiguous: (M^1)/2 or a square root.
        bare = raised is not None and "/" in raised and not raised.startswith("(")
        if match.start() != end or bool(sign) != bool(end) or not bracketed or bare:
            break
        end = match.end()
        try:
            exponent = Fraction((raised or "1").strip("()")) * (-1 if sign == "/" else 1)
        except ZeroDivisionError:
            break
        if one:
            continue
        if name in sizes:
            constant = constant + sizes[name] * exponent
        else:
            powers[name] = powers.get(name, Fraction(0)) + exponent
    else:
        if plain and end == len(plain):
            return Monomial.of(constant, powers, text, box=box)
    raise InvalidParameter(
        f"the term {text[:100]!r} is not a monomial; allowed: products of powers such as "
        "'N*d^2/M^(1/2)', without numbers or sums."
    )
