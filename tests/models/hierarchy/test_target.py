"""The sampler, the parser and the interventions of the random hierarchy model."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.models.hierarchy.target import RandomHierarchy

SMALL = {
    "first": RandomHierarchy(4, 3, 2, 2, seed=1),
    "uniform": RandomHierarchy(3, 2, 3, 2, classes=2, ensemble="uniform", seed=2),
    "latin": RandomHierarchy(3, 3, 2, 2, ensemble="latin", seed=3),
    "few classes": RandomHierarchy(4, 2, 2, 3, classes=2, seed=4),
    "one rule": RandomHierarchy(4, 1, 2, 3, seed=5),
}


def one_by_one(target, n, rng):
    """Draw strings by a Python loop over strings and symbols."""
    strings = []
    for _ in range(n):
        symbols = [int(rng.integers(target.n_classes))]
        for table in target.tables:
            symbols = [
                int(child)
                for symbol in symbols
                for child in table[symbol, rng.integers(target.rules)]
            ]
        strings.append(symbols)
    return np.array(strings)


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_no_tuple_has_two_parents(ensemble):
    target = RandomHierarchy(16, 8, 2, 3, classes=4, ensemble=ensemble)
    assert [table.shape for table in target.tables] == [(4, 8, 2), (16, 8, 2), (16, 8, 2)]
    for table in target.tables:
        tuples = table.reshape(-1, 2)
        assert len(np.unique(tuples, axis=0)) == len(tuples)
        assert not table.flags.writeable


def test_first_symbols_are_equally_frequent_in_the_ensemble_first():
    for table in RandomHierarchy(8, 4, 3, 3, classes=2).tables:
        first = table[..., 0].ravel()
        np.testing.assert_array_equal(np.bincount(first, minlength=8), len(first) // 8)


def test_parent_of_a_latin_pair_depends_on_its_sum():
    table = RandomHierarchy(5, 5, 2, 2, ensemble="latin").tables[1]
    sums = table.sum(axis=2) % 5
    assert (sums == sums[:, :1]).all()
    assert len(np.unique(sums[:, 0])) == 5


@pytest.mark.parametrize("name", SMALL)
def test_sampled_strings_parse_to_their_tree(name):
    target = SMALL[name]
    tree = target.sample_tree(300, rng=0)
    for drawn, parsed in zip(tree, target.parse(tree[-1]), strict=True):
        np.testing.assert_array_equal(drawn, parsed)
    np.testing.assert_array_equal(target.classify(tree[-1]), tree[0][:, 0])
    assert target.contains(tree[-1]).all()


def test_sampler_draws_each_string_equally_often():
    target = SMALL["first"]
    X, y = target.sample(108_000, rng=0)
    counts = np.bincount(target.rank(X), minlength=108)
    # chi-squared of 107 degrees of freedom: mean 107, standard deviation 14.6
    assert ((counts - 1000) ** 2 / 1000).sum() < 107 + 4 * 14.6
    np.testing.assert_array_equal(target.classify(X), y)


def test_sampler_draws_rules_by_their_law():
    target = RandomHierarchy(8, 4, 2, 2, zipf=0.5, zipf_levels=(1, 2))
    law = target.laws[0]
    np.testing.assert_allclose(law, np.arange(1, 5.0) ** -1.5 / (np.arange(1, 5.0) ** -1.5).sum())
    _, choices = target._parsed(target.sample(50_000, rng=0)[0])
    for level in choices:
        share = np.bincount(level.ravel(), minlength=4) / level.size
        np.testing.assert_allclose(share, law, atol=4 * np.sqrt(0.25 / 50_000))
    assert RandomHierarchy(8, 4, 2, 2, zipf=0.5).laws[0] is None


def test_samples_depend_on_the_seed_only():
    target = RandomHierarchy(8, 4, 2, 3)
    X, y = target.sample(40, rng=3)
    again, _ = RandomHierarchy(8, 4, 2, 3).sample(40, rng=np.int64(3))
    np.testing.assert_array_equal(X, again)
    assert X.dtype == np.int8
    assert not np.array_equal(X, target.sample(40, rng=4)[0])
    assert not np.array_equal(X, RandomHierarchy(8, 4, 2, 3, seed=1).sample(40, rng=3)[0])
    assert y.dtype == np.int64


def test_targets_are_values():
    target = RandomHierarchy(8, 4, 2, 3, zipf=1.0, zipf_levels=[3])
    X, _ = target.sample(10, rng=0)
    copy = pickle.loads(pickle.dumps(target))
    assert copy == target
    assert hash(copy) == hash(target)
    np.testing.assert_array_equal(copy.sample(10, rng=0)[0], X)
    assert replace(target, seed=1) == RandomHierarchy(
        8, 4, 2, 3, zipf=1.0, zipf_levels=(3,), seed=1
    )
    assert repr(target).startswith("RandomHierarchy(vocabulary=8, rules=4")


def test_sampler_is_twenty_times_faster_than_a_loop():
    target = RandomHierarchy(32, 8, 2, 4)
    target.sample(10, rng=0)
    rng = np.random.default_rng(0)
    start = time.process_time()
    assert target.contains(one_by_one(target, 300, rng)).all()
    loop = (time.process_time() - start) / 300
    start = time.process_time()
    target.sample(100_000, rng=0)
    assert (time.process_time() - start) / 100_000 < loop / 20


@pytest.mark.parametrize(
    ("sizes", "n"),
    [((4, 3, 2, 2), 108), ((4, 3, 2, 2), 50), ((8, 4, 2, 3), 5000), ((32, 8, 2, 5), 2000)],
)
def test_strings_without_replacement_are_different(sizes, n):
    target = RandomHierarchy(*sizes)
    X, y = target.sample(n, rng=0, replace=False)
    assert len(np.unique(X, axis=0)) == n
    np.testing.assert_array_equal(target.classify(X), y)
    # random order: no trend of the label along the rows
    assert abs(np.corrcoef(y, np.arange(n))[0, 1]) < 4 / np.sqrt(n)


def test_duplicates_are_drawn_again_where_strings_cannot_be_numbered_in_64_bits():
    class Repeating(RandomHierarchy):
        def sample(self, n, rng, *, replace=True):
            if not replace:
                return super().sample(n, rng, replace=False)
            calls.append(n)
            return super().sample(n, 0 if len(calls) < 3 else rng)

    calls = []
    target = Repeating(32, 8, 2, 5)
    rng = np.random.default_rng(0)
    X = np.repeat(target.sample(3, rng)[0], 2, axis=0)
    assert len(np.unique(X, axis=0)) == 3
    calls.clear()
    X, y = target.sample(30, rng, replace=False)
    assert len(np.unique(X, axis=0)) == 30
    assert (target.classify(X) == y).all()


def test_more_labels_than_symbols():
    target = RandomHierarchy(32, 2, 2, 2, classes=512)
    X, y = target.sample(2000, rng=0)
    assert X.dtype == np.int8
    assert y.max() > 127
    np.testing.assert_array_equal(target.classify(X), y)


def test_search_of_tuples_agrees_with_their_list():
    target = RandomHierarchy(8, 4, 3, 2)
    searched = RandomHierarchy(8, 4, 3, 2)
    for table in searched.parents:
        table.row_of = None
    X = np.random.default_rng(0).integers(0, 8, (5000, 9))
    X[:2500] = target.sample(2500, rng=0)[0]
    for parents, other in zip(target.parents, searched.parents, strict=True):
        np.testing.assert_array_equal(parents.rows(X), other.rows(X))
    np.testing.assert_array_equal(target.contains(X), searched.contains(X))


@pytest.mark.parametrize("level", [1, 2, 3])
def test_synonym_swaps_keep_all_levels_above(level):
    target = RandomHierarchy(8, 4, 2, 3)
    X, _ = target.sample(400, rng=0)
    before, after = target.parse(X), target.parse(target.swap_synonyms(X, level, rng=1))
    for place in range(level):
        np.testing.assert_array_equal(before[place], after[place])
    # Each tuple becomes one of m with equal probability, so that 1/m of them stay the same.
    same = (before[level] == after[level]).reshape(400, -1, 2).all(axis=2).mean()
    assert abs(same - 1 / 4) < 4 * np.sqrt(0.19 / (400 * 2 ** (level - 1)))


def test_a_swap_at_one_position_changes_only_the_leaves_below():
    target = RandomHierarchy(8, 4, 2, 3)
    X, _ = target.sample(50, rng=0)
    changed = target.swap_synonyms(X, 2, rng=1, position=1)
    np.testing.assert_array_equal(changed[:, :4], X[:, :4])
    assert (changed[:, 4:] != X[:, 4:]).any()
    np.testing.assert_array_equal(target.classify(changed), target.classify(X))


@settings(max_examples=30, deadline=None)
@given(
    vocabulary=st.integers(2, 5),
    rules=st.integers(1, 4),
    branching=st.integers(2, 3),
    depth=st.integers(1, 3),
    seed=st.integers(0, 100),
)
def test_parser_inverts_every_grammar(vocabulary, rules, branching, depth, seed):
    rules = min(rules, vocabulary ** (branching - 1))
    target = RandomHierarchy(vocabulary, rules, branching, depth, ensemble="uniform", seed=seed)
    X, y = target.sample(20, rng=seed)
    np.testing.assert_array_equal(target.classify(X), y)
    again, labels = target.unrank(target.rank(X))
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(labels, y)


def test_strings_of_other_types_are_parsed():
    target = RandomHierarchy(8, 4, 2, 3)
    X, y = target.sample(5, rng=0)
    for strings in (X.tolist(), X.astype(float), X.astype(np.uint64)):
        np.testing.assert_array_equal(target.classify(strings), y)
    assert target.classify(X[:0]).shape == (0,)
    assert target.swap_synonyms(X[:0], 2, rng=0).shape == (0, 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary": 1}, "vocabulary is 1; allowed: an integer of at least 2"),
        ({"vocabulary": 2.5}, "vocabulary is 2.5; allowed: an integer"),
        ({"rules": 0}, "rules is 0; allowed"),
        ({"classes": 1}, "classes is 1; allowed: 0, which"),
        ({"classes": -1}, "classes is -1; allowed: 0, which"),
        ({"seed": -1}, "seed is -1; allowed"),
        (
            {"rules": 9},
            "rules is 9 for classes = 8, but there are only 8.2 = 64 tuples.*allowed: rules of at most 8",
        ),
        (
            {"rules": 20, "classes": 2},
            "rules is 20 for vocabulary = 8.*allowed: rules of at most 8",
        ),
        ({"classes": 20}, "rules is 4 for classes = 20.*allowed: rules of at most 3"),
        ({"classes": 3}, "ensemble=first the 12 tuples.*divisible by vocabulary"),
        ({"depth": 40}, "depth is 40 with branching 2.*at most 2.20 = 1048576 symbols"),
        ({"depth": 10**30}, "depth is 10+ with"),
        ({"branching": 10**30, "depth": 1}, "branching 10+, and strings"),
        ({"vocabulary": 10**30}, r"which gives vocabulary\^branching tuples.*at most 2.62"),
        ({"vocabulary": 10**6, "rules": 10**6}, "the rules of all levels have .*at most 2.27"),
        ({"ensemble": "latin"}, "ensemble=latin was given.*allowed: branching 2"),
        ({"ensemble": "last"}, "ensemble is 'last'; allowed: first, uniform, latin"),
        ({"zipf": -1.0}, "zipf is -1.0; allowed"),
        ({"zipf": float("nan")}, "zipf is nan; allowed"),
        ({"zipf_levels": (0,)}, r"zipf_levels is \(0,\); allowed: levels from 1 to 3"),
        ({"zipf_levels": 2}, "zipf_levels is 2; allowed"),
        ({"zipf_levels": (1.5,)}, r"zipf_levels is \(1.5,\); allowed"),
        ({"zipf_levels": "12"}, "zipf_levels is '12'; allowed"),
    ],
)
def test_impossible_grammars_are_refused(changes, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        RandomHierarchy(**{"vocabulary": 8, "rules": 4, "branching": 2, "depth": 3, **changes})
    assert "\n" not in str(caught.value)


def test_one_level_needs_no_rules_for_symbols():
    target = RandomHierarchy(4, 8, 2, 1, classes=2)
    X, y = target.sample(16, rng=0, replace=False)
    assert len(np.unique(X, axis=0)) == 16
    np.testing.assert_array_equal(target.classify(X), y)


def test_sizes_of_numpy_do_not_overflow():
    target = RandomHierarchy(*(np.int8(size) for size in (100, 20, 2, 6)))
    assert target.n_strings == 100 * 20**63


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 4), int), r"shape \(3, 4\); allowed: \(n, 8\)"),
        (np.zeros(8, int), r"shape \(8,\)"),
        (np.full((1, 8), 8), "symbols from 8 to 8; allowed: whole numbers from 0 to 7"),
        (np.full((1, 8), -1), "symbols from -1 to -1"),
        (np.full((1, 8), np.nan), "type float64 and are not whole numbers"),
        (np.full((1, 8), 0.5), "not whole numbers"),
        (np.full((1, 8), 1e300), "not whole numbers"),
        (np.full((1, 8), "a"), "not whole numbers"),
        (np.zeros((2, 8), bool), "type bool"),
        ([[0] * 8, [0] * 7], "rows of different lengths"),
    ],
)
@pytest.mark.parametrize("method", ["parse", "rank", "contains"])
def test_invalid_strings_are_refused(X, message, method):
    with pytest.raises(InvalidData, match=message) as caught:
        getattr(RandomHierarchy(8, 4, 2, 3), method)(X)
    assert "\n" not in str(caught.value)


def test_strings_of_another_grammar_are_refused():
    X, _ = RandomHierarchy(8, 4, 2, 3, seed=1).sample(50, rng=0)
    target = RandomHierarchy(8, 4, 2, 3)
    assert not target.contains(X).all()
    with pytest.raises(InvalidData, match=r"of 50 strings are not of this grammar, first row \d+"):
        target.parse(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n is 0; allowed"),
        ({"n": 2.0}, "n is 2.0; allowed"),
        ({"n": 5, "rng": None}, "rng is None; allowed: a seed of at least 0 or a NumPy"),
        ({"n": 5, "rng": -1}, "rng is -1; allowed: a seed"),
        ({"n": 5, "rng": 1.5}, "rng is 1.5; allowed: a seed"),
        ({"n": 109, "replace": False}, "n is 109.*allowed: at most the 108 different strings"),
    ],
)
def test_impossible_samples_are_refused(arguments, message):
    with pytest.raises(InvalidParameter, match=message):
        SMALL["first"].sample(**{"rng": 0, **arguments})


@pytest.mark.parametrize("draw", ["sample", "sample_tree"])
@pytest.mark.parametrize("n", [10**14, 10**400])
def test_samples_beyond_memory_are_refused(draw, n):
    with pytest.raises(MemoryLimitExceeded, match=r"samples need .* GB; allowed"):
        getattr(SMALL["first"], draw)(n, 0)


@pytest.mark.parametrize(("level", "path"), [(2, 9), (1, 0), (2, [0.5]), (2, [[0]]), (2, "0")])
def test_paths_that_do_not_exist(level, path):
    with pytest.raises(
        InvalidParameter, match=f"for level {level}; allowed: {level - 1} positions"
    ):
        SMALL["first"].label_posterior(level, path)


def test_unequal_rules_are_drawn_with_replacement_only():
    with pytest.raises(InvalidParameter, match="zipf is above 0"):
        RandomHierarchy(8, 4, 2, 3, zipf=1.0).sample(5, 0, replace=False)


def test_levels_and_positions_of_changes_exist():
    target = SMALL["first"]
    X, _ = target.sample(3, rng=0)
    with pytest.raises(InvalidParameter, match="level is 0"):
        target.swap_synonyms(X, 0, rng=0)
    with pytest.raises(InvalidParameter, match="position is 2; allowed: an integer from 0 to 1"):
        target.swap_synonyms(X, 2, rng=0, position=2)


def test_sizes_at_the_end_of_the_range():
    tall = RandomHierarchy(2, 2, 2, 20)
    X, y = tall.sample(1, rng=0)
    assert X.shape == (1, 2**20)
    np.testing.assert_array_equal(tall.classify(X), y)
    wide = RandomHierarchy(100_000, 2, 2, 2, ensemble="uniform")
    X, y = wide.sample(100, rng=0)
    assert X.dtype == np.int32
    np.testing.assert_array_equal(wide.classify(X), y)
    assert not wide.contains((X + 1) % 100_000).any()
