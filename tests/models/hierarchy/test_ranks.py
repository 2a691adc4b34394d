"""Numbers of derivations, against plain Python arithmetic."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData
from solvable.models.hierarchy.ranks import choices_of, count_choices, rank_type, ranks_of
from solvable.models.hierarchy.target import RandomHierarchy


def horner(label, digits, rules):
    number = int(label)
    for digit in digits:
        number = number * rules + int(digit)
    return number


@settings(max_examples=60, deadline=None)
@given(
    rules=st.integers(1, 7),
    branching=st.integers(2, 4),
    depth=st.integers(1, 4),
    classes=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_numbers_agree_with_python_integers(rules, branching, depth, classes, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, 5)
    choices = [rng.integers(0, rules, (5, branching**level)) for level in range(depth)]
    flat = np.concatenate(choices, axis=1)
    numbers = ranks_of(labels, choices, rules, classes)
    total = classes * rules ** count_choices(branching, depth)
    assert numbers.dtype == rank_type(total)
    assert numbers.tolist() == [horner(a, b, rules) for a, b in zip(labels, flat, strict=True)]
    again, levels = choices_of(numbers, rules, branching, depth)
    np.testing.assert_array_equal(again, labels)
    for level, chosen in zip(levels, choices, strict=True):
        np.testing.assert_array_equal(level, chosen)


def test_counts_beyond_64_bits_are_exact():
    target = RandomHierarchy(32, 8, 2, 6)
    assert target.n_strings == 32 * 8**63
    X, y = target.unrank([0, target.n_strings - 1])
    np.testing.assert_array_equal(y, [0, 31])
    assert target.rank(X).tolist() == [0, target.n_strings - 1]
    small = target.unrank(np.array([5]))
    np.testing.assert_array_equal(target.rank(small[0]), [5])


def test_long_derivations_are_numbered_in_a_second():
    target = RandomHierarchy(32, 8, 2, 6)
    X, _ = target.sample(1000, rng=0)
    deep = RandomHierarchy(4, 2, 2, 15)
    string, _ = deep.sample(2, rng=0)
    start = time.process_time()
    np.testing.assert_array_equal(target.unrank(target.rank(X))[0], X)
    np.testing.assert_array_equal(deep.unrank(deep.rank(string))[0], string)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([108], "the ranks reach from 108 to 108; allowed: 0 to 107"),
        ([-1, 5], "the ranks reach from -1 to 5"),
        ([0.5], "type float64; allowed: a vector of whole numbers"),
        ([[1]], r"shape \(1, 1\)"),
        ([None], "type object; allowed"),
        ([10**20, 1.5], "allowed: a vector"),
        ([10**5000], r"reach from about 10\^4999 to about 10\^4999"),
    ],
)
def test_other_numbers_are_refused(ranks, message):
    with pytest.raises(InvalidData, match=message):
        RandomHierarchy(4, 3, 2, 2).unrank(ranks)


def test_no_numbers_give_no_strings():
    X, y = RandomHierarchy(4, 3, 2, 2).unrank([])
    assert X.shape == (0, 4)
    assert y.shape == (0,)
    assert RandomHierarchy(4, 3, 2, 2).rank(X).shape == (0,)
