"""Lists, counts and percentages in sentences."""

from __future__ import annotations

import math

import pytest

from solvable.plots.words import counted, listed, percents, quoted_names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c", "d"], "a, b, c and d"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    ],
)
def test_names_are_listed_up_to_four(names, text):
    assert listed(names) == text


def test_quoted_names_are_cut_and_counted():
    assert quoted_names("ab") == "'a', 'b'"
    assert quoted_names("abc", 2) == "'a', 'b' and 1 more"
    assert len(quoted_names(["x" * 1000])) < 100


def test_counts_have_their_noun_in_its_number():
    assert [counted(n, "matrix", "matrices") for n in (0, 1, 2000)] == [
        "0 matrices", "1 matrix", "2,000 matrices",
    ]  # fmt: skip
    assert counted(2, "head") == "2 heads"


def test_a_share_and_its_interval_have_the_same_digits():
    assert percents(0.5, 0.2, 0.8) == ("50 %", "20 to 80 %")
    assert percents(None, 0.2, 0.8) == ("–", "–")
    assert percents(0.05, 0.032, math.inf) == ("5.0 %", "no interval")
