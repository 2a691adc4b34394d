"""Exact linear forms: reading, writing, arithmetic, comparison."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.scale.exponents.linear_forms import (
    LinearForm,
    maximum,
    never_below,
    without_dominated,
)

FRACTIONS = st.fractions(min_value=-50, max_value=50, max_denominator=12)
FORMS = st.builds(
    LinearForm.of, FRACTIONS, st.dictionaries(st.sampled_from(["n1", "n2", "kappa"]), FRACTIONS)
)


@given(
    FORMS, FORMS, FRACTIONS, st.fixed_dictionaries(dict.fromkeys(["n1", "n2", "kappa"], FRACTIONS))
)
def test_arithmetic_is_that_of_values(left, right, factor, point):
    assert (left + right)(point) == left(point) + right(point)
    assert (left - right)(point) == left(point) - right(point)
    assert (left * factor)(point) == left(point) * factor
    assert left.at(point).number == left(point)
    assert (left - left) == LinearForm.of(0)


@given(FORMS)
def test_what_is_written_is_read_back(form):
    assert LinearForm.parse(str(form)) == form


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("7/3", "7/3"),
        ("0.1", "1/10"),
        ("n1/2 + 1", "(n1+2)/2"),
        ("(n1+n2+1)/3", "(n1+n2+1)/3"),
        ("1 - n", "1-n"),
        ("2*(n - 1)*3", "6*n-6"),
        ("-n", "-n"),
    ],
)
def test_texts(text, written):
    assert str(LinearForm.parse(text)) == written


BAD = ["", "n*m", "1/n", "n**2", "1/0", "inf", "nan", "f(n)", "n[0]", "1e99", "'a'", "a.b"]


@pytest.mark.parametrize("text", [*BAD, True, None, [1], float("nan"), "(" * 300 + "1" + ")" * 300])
def test_what_is_no_linear_form_is_refused(text):
    with pytest.raises(InvalidParameter, match="allowed: a rational number"):
        LinearForm.parse(text, "width")


@given(
    st.lists(FORMS, min_size=1, max_size=6), st.lists(st.fractions(0, 9), min_size=3, max_size=3)
)
def test_dominated_forms_never_matter(forms, values):
    point = dict(zip(["n1", "n2", "kappa"], values, strict=True))
    kept = without_dominated(forms)
    assert set(kept) <= set(forms)
    assert max(form(point) for form in kept) == max(form(point) for form in forms)


@given(FORMS, FORMS, st.lists(st.fractions(0, 9), min_size=3, max_size=3))
def test_never_below(upper, lower, values):
    point = dict(zip(["n1", "n2", "kappa"], values, strict=True))
    if never_below(upper, lower):
        assert upper(point) >= lower(point)


def test_maximum_is_written_plainly():
    assert maximum([LinearForm.parse("(n+1)/2")]) == "(n+1)/2"
    assert maximum([LinearForm.parse("n"), LinearForm.of(1)]) == "max(n, 1)"
