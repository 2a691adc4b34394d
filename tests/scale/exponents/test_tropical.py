"""Tropical programs against SciPy's linear programming, at points and as closed forms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import LinearForm
from solvable.scale.exponents.tropical import Monomial, Program, closed_form, minimise

POWERS = st.integers(-3, 3)
CONSTANTS = st.fractions(-4, 4, max_denominator=12)


@st.composite
def programs(draw):
    """Draw bounded programs: a box for each free exponent, and bounds that the origin satisfies."""
    names = [f"v{i}" for i in range(draw(st.integers(1, 3)))]

    def monomial(constant):
        return Monomial.of(
            LinearForm.of(constant, {"n": draw(POWERS)}), {name: draw(POWERS) for name in names}
        )

    terms = [monomial(draw(CONSTANTS)) for _ in range(draw(st.integers(1, 4)))]
    bounds = [Monomial.of(-5, {name: sign}) for name in names for sign in (1, -1)]
    for _ in range(draw(st.integers(0, 2))):
        bounds.append(Monomial.of(-abs(draw(CONSTANTS)), {name: draw(POWERS) for name in names}))
    return Program(tuple(terms), tuple(bounds))


def by_scipy(program, point, goal=None):
    """Compute the minimum of a program, or of a free exponent on its optimal face."""
    from scipy.optimize import linprog

    names = program.variables
    rows, rights = [], []
    for held, slack in ((program.terms, -1.0), (program.constraints, 0.0)):
        for term in held:
            powers = dict(term.powers)
            rows.append([float(powers.get(name, 0)) for name in names] + [slack])
            rights.append(-float(term.constant(point)))
    cost = [0.0] * len(names) + [1.0]
    bounds = [(None, None)] * len(cost)
    if goal is not None:
        name, sign, value = goal
        cost = [sign * float(other == name) for other in names] + [0.0]
        bounds[-1] = (None, float(value) + 1e-9)
    answer = linprog(cost, A_ub=rows, b_ub=rights, bounds=bounds)
    assert answer.status == 0
    return answer.fun


@settings(max_examples=25)
@given(programs(), st.fractions(0, 4, max_denominator=8))
def test_minimum_and_optimal_face_are_those_of_linear_programming(program, size):
    point = {"n": size}
    found = minimise(program, point)
    assert float(found.value) == pytest.approx(by_scipy(program, point), abs=1e-7)
    assert max(form(point) for form in closed_form(program)) == found.value
    for name in program.variables:
        low, high = found.intervals[name]
        assert float(low) == pytest.approx(
            by_scipy(program, point, (name, 1, found.value)), abs=1e-5
        )
        assert float(high) == pytest.approx(
            -by_scipy(program, point, (name, -1, found.value)), abs=1e-5
        )


def test_two_terms_meet_halfway():
    # (scale 8): the terms M d and N/M give E = (n+1)/2 at exponent (n-1)/2 of M; with M >= 1, E >= 1.
    terms = (
        Monomial.of(1, {"M": 1}, "neurons"),
        Monomial.of(LinearForm.symbol("n"), {"M": -1}, "alignment"),
    )
    assert closed_form(Program(terms)) == (LinearForm.parse("(n+1)/2"),)
    bounded = Program(terms, (Monomial.of(0, {"M": -1}, box=True),))
    assert set(closed_form(bounded)) == {LinearForm.parse("(n+1)/2"), LinearForm.of(1)}
    found = minimise(bounded, {"n": Fraction(3)})
    assert (found.value, found.intervals) == (2, {"M": (1, 1)})
    assert found.bounds == ()
    narrow = Monomial.of(0, {"M": -1}, "at least one neuron", box=True)
    assert minimise(Program(terms, (narrow,)), {"n": Fraction(0)}).bounds == (
        "at least one neuron",
    )
    assert bounded.unboxed() == Program(terms)


def test_faces_without_end_have_open_ends():
    program = Program((Monomial.of(1, {}), Monomial.of(0, {"M": 1})))
    assert minimise(program).intervals == {"M": (None, 1)}


def test_programs_without_minimum_are_refused():
    with pytest.raises(InvalidParameter, match="has no minimum"):
        closed_form(Program((Monomial.of(1, {"M": 1}),)))
    with pytest.raises(InvalidParameter, match="has no minimum"):
        minimise(Program((Monomial.of(1, {"M": 1}), Monomial.of(1, {"M": 2}))))


def test_too_large_programs_are_refused():
    names = [f"v{i}" for i in range(12)]
    rng = np.random.default_rng(0)
    rows = [Monomial.of(0, {name: int(rng.integers(-3, 4)) for name in names}) for _ in range(40)]
    with pytest.raises(InvalidParameter, match="fewer layers"):
        closed_form(Program(tuple(rows)))
