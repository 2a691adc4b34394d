"""Count-and-cluster: counts by hand, clusters against true symbols, tuples that were never counted."""

import time

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.grammar.learner.count_cluster import (
    CountClusterClassifier,
    cluster_rows,
)
from solvable.models.hierarchy.target import RandomHierarchy


def purity(found, true):
    """Share of the symbols that the best symbol of each cluster explains."""
    table = np.zeros((found.max() + 1, true.max() + 1))
    np.add.at(table, (found.ravel(), true.ravel()), 1)
    return table.max(axis=1).sum() / found.size


def test_counts_of_a_few_strings_by_hand():
    X = np.array([[0, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1]])
    y = np.array([0, 0, 1, 1])
    # Tuples (0, 1) and (1, 1); first position, second position; label 0, label 1.
    expected = np.array([[[2, 0], [1, 1]], [[0, 2], [1, 1]]])
    for positions, counts in (
        ("concat", expected),
        ("first", expected[:, :1]),
        ("pooled", expected.sum(axis=1, keepdims=True)),
    ):
        model = CountClusterClassifier(positions=positions)
        model.classes_ = np.arange(2)
        numbers, counted = model._counts(X[:, ::2] * 3 + X[:, 1::2], y)
        np.testing.assert_array_equal(numbers, [1, 4])
        np.testing.assert_array_equal(counted, counts)


def test_rows_are_centred_laws_weighted_by_their_counts():
    labels = np.repeat([0, 1], [30, 10])
    counts = np.array([[[6, 2], [0, 0]], [[1, 3], [4, 0]]])
    rows, weights = CountClusterClassifier()._rows(counts, labels)
    np.testing.assert_array_equal(weights, [8, 8])
    np.testing.assert_allclose(rows[0], 0, atol=1e-15)
    np.testing.assert_allclose(rows[1], np.sqrt(0.5) * np.array([-0.5, 0.5, 0.25, -0.25]))


@pytest.mark.parametrize("positions", ["concat", "first", "pooled"])
def test_all_levels_are_found_with_many_samples(positions):
    target = RandomHierarchy(16, 4, 2, 3, seed=2)
    model = CountClusterClassifier(positions=positions, random_state=3)
    model.fit(*target.sample(16 * 1024, rng=0))
    X, y = target.sample(2000, rng=1)
    found, true = model.level_symbols(X), target.parse(X)
    assert [symbols.shape for symbols in found] == [(2000, 4), (2000, 2), (2000, 1)]
    assert all(
        purity(symbols, level) > 0.98 for symbols, level in zip(found, true[2::-1], strict=True)
    )
    np.testing.assert_array_equal(found[-1][:, 0], model.predict(X))
    assert model.score(X, y) > 0.97


def test_below_the_threshold_nothing_is_learned():
    target = RandomHierarchy(32, 8, 2, 2, seed=0)
    model = CountClusterClassifier().fit(*target.sample(2048 // 16, rng=0))
    assert model.score(*target.sample(2000, rng=1)) < 0.15


def test_tuples_that_were_never_counted_have_a_seeded_random_cluster():
    target = RandomHierarchy(16, 16, 2, 2, seed=0)
    X, y = target.sample(60, rng=0)
    fitted = [CountClusterClassifier(random_state=seed).fit(X, y).levels_[0] for seed in (0, 0, 1)]
    unseen = np.setdiff1d(np.arange(17**2), fitted[0].numbers)
    clusters = [level.of(unseen) for level in fitted]
    np.testing.assert_array_equal(clusters[0], clusters[1])
    assert np.mean(clusters[0] == clusters[2]) < 0.25
    # Every cluster gets a share of them: 16 clusters and more than 200 tuples.
    assert np.bincount(clusters[0], minlength=16).min() >= 3


def test_top_tuple_that_was_never_seen_has_the_law_of_all_labels():
    model = CountClusterClassifier(n_clusters=2)
    model.fit(np.array([[0, 0], [0, 0], [1, 1], [1, 1]]), ["a", "a", "a", "b"])
    np.testing.assert_allclose(model.predict_proba([[0, 0], [1, 1], [0, 1]])[:, 0], [1, 0.5, 0.75])


def test_more_symbols_than_clusters_and_fewer_tuples_than_clusters():
    X = np.array([[0, 0, 1, 1], [1, 1, 0, 0]] * 10)
    y = np.array([0, 1] * 10)
    assert CountClusterClassifier(n_clusters=9).fit(X, y).score(X, y) >= 1
    assert CountClusterClassifier(n_clusters=2).fit(X, y).n_clusters_ == 2


def test_k_means_runs_again_while_a_cluster_is_too_small(monkeypatch):
    unequal, better, equal = ([0] * 7 + [1], [0] * 6 + [1] * 2, [0] * 5 + [1] * 3)
    for results, expected in (
        ([equal, unequal], equal),
        ([unequal, better, equal], better),  # two of a mean size of four are enough
        ([unequal, unequal[::-1], [0] * 8], unequal),
    ):
        runs = iter(results)

        class Means:
            def __init__(self, n_clusters, *, n_init, random_state):
                assert (n_clusters, n_init) == (2, 8)

            def fit_predict(self, rows, sample_weight, runs=runs):
                return np.array(next(runs))

        monkeypatch.setattr("sklearn.cluster.KMeans", Means)
        found = cluster_rows(np.zeros((8, 1)), np.ones(8), 2, 8, 0)
        np.testing.assert_array_equal(found, expected)


def test_bad_parameters_are_refused():
    X, y = RandomHierarchy(4, 2, 2, 2).sample(20, rng=0)
    for parameters, message in (
        ({"positions": "last"}, "positions is 'last'; allowed: concat, first, pooled"),
        ({"n_clusters": 1}, "n_clusters is 1"),
        ({"n_init": 0}, "n_init is 0"),
        ({"random_state": "x"}, "random_state is 'x'"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            CountClusterClassifier(**parameters).fit(X, y)
    many = np.arange(2 * 2**16).reshape(2, -1)[:, : 4**3]
    with pytest.raises(InvalidData, match="allowed: at most 2"):
        CountClusterClassifier(branching=64).fit(many, [0, 1])


def test_large_grammar_fits_in_seconds():
    target = RandomHierarchy(32, 8, 2, 3, seed=0)
    X, y = target.sample(4 * 32 * 8**3, rng=0)
    start = time.process_time()
    model = CountClusterClassifier().fit(X, y)
    assert time.process_time() - start < 10
    assert model.score(*target.sample(2000, rng=1)) > 0.97
