"""Laws of symbols, against frequencies in all strings of small grammars."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.ranks import choices_of
from solvable.models.hierarchy.rules import tuple_numbers
from solvable.models.hierarchy.target import RandomHierarchy

GRAMMARS = {
    "first": RandomHierarchy(4, 2, 2, 3, seed=1),
    "uniform": RandomHierarchy(3, 2, 3, 2, classes=2, ensemble="uniform", seed=2),
    "few classes": RandomHierarchy(4, 2, 2, 3, classes=2, seed=4),
    "zipf": RandomHierarchy(4, 2, 2, 3, zipf=0.7, zipf_levels=(1, 3), seed=5),
    "zipf at the leaves": RandomHierarchy(4, 3, 2, 2, zipf=1.0, seed=6),
}


def all_strings(target):
    """Return all symbols of all derivations, level by level, and the probability of each."""
    ranks = np.arange(target.n_strings)
    X, _ = target.unrank(ranks)
    _, choices = choices_of(ranks, target.rules, target.branching, target.depth)
    weights = np.ones(len(ranks)) / target.n_classes
    for law, chosen in zip(target.laws, choices, strict=True):
        each = np.full(target.rules, 1 / target.rules) if law is None else law
        weights *= each[chosen].prod(axis=1)
    np.testing.assert_allclose(weights.sum(), 1)
    return target.parse(X), weights


@pytest.fixture(params=GRAMMARS)
def grammar(request):
    target = GRAMMARS[request.param]
    return target, *all_strings(target)


def place_of(path, branching):
    return int(np.polyval([0, *path], branching))


def test_transitions_are_frequencies(grammar):
    target, levels, weights = grammar
    s = target.branching
    for level in range(1, target.depth + 1):
        for position in range(s):
            counts = np.zeros(
                (target.n_classes if level == 1 else target.vocabulary, target.vocabulary)
            )
            for place in range(s ** (level - 1)):
                child = levels[level][:, place * s + position]
                np.add.at(counts, (levels[level - 1][:, place], child), weights)
            seen = counts.sum(axis=1) > 0
            law = counts[seen] / counts[seen].sum(axis=1, keepdims=True)
            np.testing.assert_allclose(target.transition(level, position)[seen], law, atol=1e-12)


def paths(target, level):
    """First and last path to the parent of a tuple."""
    return [[0] * (level - 1), [target.branching - 1] * (level - 1)]


def test_label_posteriors_are_frequencies(grammar):
    target, levels, weights = grammar
    s, V = target.branching, target.vocabulary
    for level in range(1, target.depth + 1):
        for path in paths(target, level):
            place = place_of(path, s)
            numbers = tuple_numbers(levels[level], V, s)[:, place]
            counts = np.zeros((V**s, target.n_classes))
            np.add.at(counts, (numbers, levels[0][:, 0]), weights)
            order = tuple_numbers(target.tables[level - 1].reshape(-1, s), V, s)[:, 0]
            counts = counts[order]
            np.testing.assert_allclose(
                target.patch_probabilities(level, path), counts.sum(axis=1), atol=1e-12
            )
            seen = counts.sum(axis=1) > 0
            expected = np.full(counts.shape, np.nan)
            expected[seen] = counts[seen] / counts[seen].sum(axis=1, keepdims=True)
            np.testing.assert_allclose(target.label_posterior(level, path), expected, atol=1e-12)
    np.testing.assert_array_equal(
        target.label_posterior(target.depth),
        target.label_posterior(target.depth, paths(target, target.depth)[0]),
    )


def test_token_covariances_are_frequencies(grammar):
    target, levels, weights = grammar
    V, s, d = target.vocabulary, target.branching, target.n_leaves
    X = levels[-1]
    heights = [
        next(h for h in range(1, target.depth + 1) if place // s**h == (d - 1) // s**h)
        for place in range(d - 1)
    ]
    for place, height in enumerate(heights):
        joint = np.zeros((V, V))
        np.add.at(joint, (X[:, -1], X[:, place]), weights)
        expected = joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))
        np.testing.assert_allclose(target.token_covariance(height, place), expected, atol=1e-12)
        if place == d - 1 - s ** (height - 1):
            np.testing.assert_allclose(target.token_covariance(height), expected, atol=1e-12)


def test_covariances_with_tuples_are_frequencies(grammar):
    target, levels, weights = grammar
    V, s = target.vocabulary, target.branching
    numbers = tuple_numbers(levels[-1], V, s)
    joint = np.zeros((V, V**s))
    np.add.at(joint, (levels[-1][:, -1], numbers[:, 0]), weights)
    expected = joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))
    order = tuple_numbers(target.tables[-1].reshape(-1, s), V, s)[:, 0]
    measured = target.token_covariance(target.depth, 0, whole_tuple=True)
    np.testing.assert_allclose(measured, expected[:, order], atol=1e-12)


def test_synonyms_have_the_same_label_law():
    target = RandomHierarchy(16, 4, 2, 3)
    q = target.label_posterior(3).reshape(16, 4, 16)
    np.testing.assert_array_equal(q, q[:, :1].repeat(4, axis=1))
    np.testing.assert_allclose(q.sum(axis=-1), 1)


def test_symbols_that_never_come_first_have_no_label_law():
    target = RandomHierarchy(16, 1, 2, 2, ensemble="uniform")
    missing = np.setdiff1d(np.arange(16), target.tables[0][:, :, 0])
    assert missing.size > 0
    q = target.label_posterior(2)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(q).all(axis=1)), missing)
    np.testing.assert_array_equal(target.patch_probabilities(2)[missing], 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.transition(0), "level is 0; allowed: an integer from 1 to 3"),
        (lambda t: t.transition(1, 2), "position is 2; allowed: an integer from 0 to 1"),
        (lambda t: t.label_posterior(4), "level is 4"),
        (lambda t: t.label_posterior(3, [0]), r"path is \[0\] for level 3; allowed: 2 positions"),
        (lambda t: t.label_posterior(2, [2]), "path is .* allowed: 1 positions from 0 to 1"),
        (lambda t: t.token_covariance(0), "levels is 0"),
        (lambda t: t.token_covariance(1, whole_tuple=True), "levels is 1; allowed: .* 2 to 3"),
        (lambda t: t.token_covariance(2, 0), "position is 0, .* levels = 2; allowed: 4 to 5"),
        (lambda t: t.token_covariance(2, 6), "position is 6, .* levels = 2; allowed: 4 to 5"),
        (lambda t: t.token_covariance(2, 7), "position is 7; allowed: an integer from 0 to 6"),
    ],
)
def test_places_that_do_not_exist_are_refused(call, message):
    with pytest.raises(InvalidParameter, match=message):
        call(RandomHierarchy(8, 4, 2, 3))
