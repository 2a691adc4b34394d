"""Sparse strings: all strings of a small grammar, and strings whose symbols lie at other places."""

import itertools

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.derivations import apply_rules
from solvable.models.hierarchy.sparse import SparseRandomHierarchy
from solvable.models.hierarchy.target import RandomHierarchy

SMALL = SparseRandomHierarchy(RandomHierarchy(2, 2, 2, 2, classes=2, seed=1), blanks=1)


def all_strings(target):
    """Every string and its label, from the definition: each symbol at each of its places."""
    grammar, width = target.grammar, target.blanks + 1
    rows = [([label], label) for label in range(grammar.n_classes)]
    for table in grammar.tables:
        longer = []
        for symbols, label in rows:
            blank = [[target.blank] * target.patch]
            choices = [
                blank
                if symbol == target.blank
                else list(patches(table[symbol], width, target.blank))
                for symbol in symbols
            ]
            longer += [([*itertools.chain(*parts)], label) for parts in itertools.product(*choices)]
        rows = longer
    return np.array([symbols for symbols, _ in rows]), np.array([label for _, label in rows])


def patches(rules, width, blank):
    """Every tuple with its symbols at every place."""
    for rule in rules:
        for places in itertools.product(range(width), repeat=len(rule)):
            patch = [blank] * (width * len(rule))
            for child, (symbol, place) in enumerate(zip(rule, places, strict=True)):
                patch[child * width + place] = int(symbol)
            yield patch


def test_the_sampler_draws_each_string_equally_often():
    """2 labels, 8 choices of rules, 64 of places; chi-squared within four standard deviations."""
    strings, labels = all_strings(SMALL)
    assert len(np.unique(strings, axis=0)) == len(strings) == SMALL.n_strings == 2 * 2**3 * 2**6
    np.testing.assert_array_equal(SMALL.classify(strings), labels)
    X, y = SMALL.sample(40 * len(strings), rng=0)
    np.testing.assert_array_equal(SMALL.classify(X), y)
    found, counts = np.unique(X, axis=0, return_counts=True)
    assert len(found) == len(strings)
    chi = ((counts - 40) ** 2 / 40).sum()
    assert abs(chi - len(strings) + 1) < 4 * np.sqrt(2 * len(strings))


def test_laws_of_first_patches_in_a_list_of_all_strings():
    """Synonyms include other places: equal label laws, and the probabilities of (34), exactly."""
    target = SparseRandomHierarchy(RandomHierarchy(3, 2, 2, 2, classes=3, seed=0), blanks=1)
    strings, labels = all_strings(target)
    rows = target.patch_rows(2, strings[:, : target.patch])
    # The first patch of the leaves is blank in half of the strings.
    assert np.mean(rows < 0) == pytest.approx(1 / 2)
    laws, known = (np.repeat(x, 4, axis=0) for x in (
        target.grammar.label_posterior(2), target.grammar.patch_probabilities(2)
    ))  # fmt: skip
    counts = np.zeros((24, 3))
    np.add.at(counts, (rows[rows >= 0], labels[rows >= 0]), 1)
    np.testing.assert_allclose(counts.sum(axis=1) / len(strings), known / 8, atol=1e-12)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), laws, atol=1e-12)
    # One place of level l holds a symbol with probability (s_0 + 1)^-l.
    assert np.mean(strings != target.blank, axis=0) == pytest.approx(1 / 4)


def test_levels_of_a_tree_follow_from_each_other():
    target = SparseRandomHierarchy(RandomHierarchy(6, 3, 3, 2, seed=2), blanks=2)
    levels = target.sample_tree(200, rng=3)
    assert [level.shape for level in levels] == [(200, 1), (200, 9), (200, 81)]
    rows = target.patch_rows(2, levels[2].reshape(-1, 9)).reshape(200, 9)
    parents = np.where(rows < 0, target.blank, rows // (3 * 27))
    np.testing.assert_array_equal(parents, levels[1])
    dense = target.without_blanks(levels[2])
    np.testing.assert_array_equal(dense, target.without_blanks(target.sample(200, rng=3)[0]))
    symbols, rules = target.grammar.parse(dense)[1], rows[rows >= 0] // 27 % 3
    again = apply_rules(symbols, target.grammar.tables[1], rules.reshape(200, 3))
    np.testing.assert_array_equal(again, dense)


def test_without_blanks_the_strings_are_those_of_the_grammar():
    grammar = RandomHierarchy(seed=4)
    X, y = SparseRandomHierarchy(grammar, blanks=0).sample(50, rng=5)
    same, labels = grammar.sample(50, rng=5)
    np.testing.assert_array_equal(X, same)
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("change", ["moved", "removed", "added"])
def test_symbols_at_other_places_are_refused(change):
    X, _ = SMALL.sample(3, rng=6)
    filled = np.flatnonzero(X[1] != SMALL.blank)
    empty = np.flatnonzero(X[1] == SMALL.blank)
    far = empty[np.abs(empty // 4 - filled[0] // 4) > 0][0]
    if change in ("moved", "added"):
        X[1, far] = X[1, filled[0]]
    if change in ("moved", "removed"):
        X[1, filled[0]] = SMALL.blank
    with pytest.raises(InvalidData, match=r"1 of 3 strings .* first row 1"):
        SMALL.classify(X)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"grammar": 3}, "a RandomHierarchy"),
        ({"blanks": -1}, "blanks"),
        ({"blanks": 100}, "2\\^20"),
    ],
)
def test_impossible_targets_are_refused(setting, message):
    with pytest.raises(InvalidParameter, match=message):
        SparseRandomHierarchy(**setting)
