"""Strings with blanks in `random-hierarchy`: statistics against simulations, learners, claims."""

import numpy as np
import pytest
from grammar_laws import grammars, joint_laws, label_laws, transition
from scipy.stats import binom

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Point
from solvable.models.hierarchy.grammar.claims import sparsity_power
from solvable.models.hierarchy.grammar.learner.convolutional import HierarchicalCNN
from solvable.models.hierarchy.grammar.learner.count_cluster import (
    CountClusterClassifier,
    gradient_distances,
)
from solvable.models.hierarchy.grammar.measure import label_counts, measure
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters
from solvable.models.hierarchy.grammar.predict import predict
from solvable.models.hierarchy.grammar.theory import (
    leaf_counts,
    level_thresholds,
    squared_noise,
    synonymic_sensitivity,
    threshold_samples,
)
from solvable.models.hierarchy.sparse import SparseRandomHierarchy
from solvable.models.hierarchy.target import RandomHierarchy

SIZES = {"vocabulary": 16, "rules": 4, "branching": 2, "depth": 2}


@pytest.mark.parametrize("blanks", [1, 3])
@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_noise_is_that_of_exact_frequencies(blanks, ensemble):
    """Sums over binomial counts of every arrangement of every tuple of 60 grammars, as without blanks."""
    N, width = 40_000, blanks + 1
    total, seen = np.zeros(3), np.zeros(3)
    for grammar in grammars(60, 16, 4, 2, 3, 16, ensemble):
        for level, joint in enumerate(joint_laws(grammar)):
            laws, frequency = label_laws(joint)
            # The first patch of level l + 1 is not blank with probability (s_0 + 1)^-l.
            chance = frequency / 4 / width ** (level + 2)
            top = N * chance.max()
            n = np.arange(1, int(top + 12 * np.sqrt(top) + 30))[:, None]
            weights = binom.pmf(n, N, chance)
            total[level] += ((weights / n).sum(axis=0) * (1 - (laws**2).sum(axis=0))).sum()
            seen[level] += weights.sum()
    predicted = squared_noise(N, **SIZES | {"depth": 3}, ensemble=ensemble, blanks=blanks)
    assert np.allclose(predicted, total / seen, rtol=0.045, atol=1e-12)


@pytest.mark.parametrize("ensemble", ["first", "uniform"])
def test_sensitivity_and_leaf_counts_of_simulated_strings(ensemble):
    """Drawn strings of 60 grammars, each with a blank per symbol, at half and twice the threshold."""
    for factor in (0.5, 2.0):
        N = int(factor * threshold_samples(rules=4, depth=2, classes=16) * 2**3)
        rows = []
        for seed in range(60):
            target = SparseRandomHierarchy(
                RandomHierarchy(**SIZES, ensemble=ensemble, seed=seed), blanks=1
            )
            X, y = target.sample(N, rng=seed)
            patches = target.patch_rows(2, X[:, :4])
            counts = label_counts(patches, y, 16 * 4 * 4, 16).reshape(16, 16, 16)
            leaf = label_counts(np.where(X[:, 0] == 16, -1, X[:, 0]), y, 16, 16)
            squares = ((leaf - leaf.mean(axis=1, keepdims=True)) ** 2).sum()
            # Distances of gradients are in units of the square of the number of counted strings.
            seen = counts.sum() ** 2
            rows.append(
                [*(d * seen for d in gradient_distances(counts)), squares, leaf.sum() * 15 / 16]
            )
        top, bottom, squares, noise = np.array(rows).T
        sizes = SIZES | {"ensemble": ensemble, "blanks": 1}
        expected = (synonymic_sensitivity(N, **sizes)[1], leaf_counts(N, **sizes))
        for above, below, value in zip((top, squares), (bottom, noise), expected, strict=True):
            ratio = above.mean() / below.mean()
            error = (above - ratio * below).std(ddof=1) / below.mean() / np.sqrt(60)
            assert ratio == pytest.approx(float(value), abs=4 * error)
            assert error < 0.03 * ratio


def test_counts_of_a_leaf_are_those_of_its_exact_law():
    """E |g|² from P(label, symbol) of the first leaf of one drawn law, averaged over 150 grammars."""
    N, places = 3_000, 3**2
    ratios = []
    for grammar in grammars(150, *SIZES.values()):
        joint = joint_laws(grammar)[-1] @ transition(grammar.tables[-1], 0, 16) / places
        centred = joint - joint.mean(axis=0)
        # A sum of N independent one-hot vectors of cells: variance plus squared mean.
        noise = N * joint.sum() * 15 / 16
        ratios.append((noise + N * (N - 1) * (centred**2).sum()) / noise)
    error = np.std(ratios, ddof=1) / np.sqrt(150)
    assert np.mean(ratios) == pytest.approx(float(leaf_counts(N, **SIZES, blanks=2)), abs=4 * error)


def test_blanks_multiply_the_thresholds():
    sizes = {"vocabulary": 64, "rules": 16, "branching": 2, "depth": 3}
    dense, sparse = level_thresholds(**sizes), level_thresholds(**sizes, blanks=1)
    for level, N in enumerate(sparse):
        assert synonymic_sensitivity(N, **sizes, blanks=1)[level] == pytest.approx(0.5)
    # (s_0 + 1)^(s + l - 1) for tuples at the first place, (s_0 + 1)^L for single leaves
    np.testing.assert_allclose(sparse / dense, [4, 8, 16], rtol=2e-3)
    excess = [float(leaf_counts(10**6, **sizes, blanks=b)) - 1 for b in (0, 1)]
    assert excess[0] / excess[1] == pytest.approx(2**3)


@pytest.mark.parametrize("positions", ["first", "pooled", "concat"])
def test_counted_tuples_are_clustered_and_blanks_are_blanks(positions):
    target = SparseRandomHierarchy(RandomHierarchy(8, 4, 2, 2, seed=1), blanks=1)
    model = CountClusterClassifier(4, n_clusters=8, positions=positions, blank=8)
    model.fit(*target.sample(20_000, rng=0))
    levels = target.sample_tree(2_000, rng=1)
    found = model.level_symbols(levels[-1])[0]
    np.testing.assert_array_equal(found == 8, levels[1] == 8)
    table = np.zeros((9, 9))
    np.add.at(table, (found, levels[1]), 1)
    assert table.max(axis=1).sum() > 0.99 * found.size
    assert model.score(levels[-1], levels[0][:, 0]) > 0.98


def test_a_network_reads_a_blank_as_zero():
    target = SparseRandomHierarchy(RandomHierarchy(4, 2, 2, 2, seed=0), blanks=1)
    X, y = target.sample(512, rng=0)
    model = HierarchicalCNN(branching=4, width=32, blank=4, random_state=0).fit(X, y)
    assert [weights.shape[1] for weights in model.weights_] == [4 * 4, 4 * 32]
    hidden = model.hidden(X, level=2)
    blank = (X.reshape(-1, 4, 4) == 4).all(axis=2)
    assert np.abs(hidden[blank]).max() < 1e-12 < np.abs(hidden[~blank]).max()
    assert model.score(*target.sample(500, rng=1)) > 0.9
    with pytest.raises(InvalidParameter, match="blank"):
        HierarchicalCNN(branching=4, blank=1).fit(X, y)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"estimator": "layerwise"}, "allowed: count-cluster, cnn, locally-connected"),
        ({"task": "next-token", "estimator": "cnn"}, "allowed: blanks=0"),
        ({"task": "denoising"}, "allowed: blanks=0"),
        ({"estimator": "count-cluster", "zipf": 1.0}, "allowed: zipf=0"),
    ],
)
def test_what_is_not_predicted_with_blanks_is_refused(setting, message):
    with pytest.raises(InvalidParameter, match=message):
        RandomHierarchyParameters(blanks=1, **setting)


@pytest.mark.parametrize(
    ("estimator", "positions", "power"),
    [
        ("cnn", "default", 2),
        ("locally-connected", "default", 4),
        ("count-cluster", "pooled", 3),
        ("count-cluster", "first", 6),
        ("count-cluster", "concat", None),
    ],
)
def test_the_power_of_each_learner(estimator, positions, power):
    setting = RandomHierarchyParameters(
        estimator=estimator, positions=positions, branching=3, depth=4, blanks=1
    )
    found = predict(setting)
    assert found["threshold_ratio"] == (None if power is None else pytest.approx(2.0**power))
    assert found["p_star"] == (None if power is None else pytest.approx(2.0**power * 8 * 4**4))
    # Theorem 7 is about strings without blanks, and says nothing here.
    assert "proven_samples" not in found
    assert setting.leaves == 6**4


def test_blanks_change_the_measured_statistics_as_predicted():
    """Mean of four replicates of up to 24 grammars: within four standard errors and 6 %."""
    setting = RandomHierarchyParameters(
        vocabulary=16,
        depth=2,
        blanks=1,
        estimator="count-cluster",
        positions="pooled",
        sample_ratio=8,
    )
    found = [measure(setting, random_stream("test", seed)) for seed in range(4)]
    expected = predict(setting)
    for name in ("signal", "noise", "synonymic_sensitivity", "leaf_counts"):
        values = np.array([np.atleast_1d(metrics[name])[-1] for metrics in found])
        error = values.std(ddof=1) / 2
        value = float(np.atleast_1d(expected[name])[-1])
        assert values.mean() == pytest.approx(value, abs=4 * error + 0.06 * value)
    assert np.mean([metrics["test_accuracy"] for metrics in found]) > 0.7


def test_few_strings_whose_first_patches_are_all_blank():
    setting = RandomHierarchyParameters(
        vocabulary=4, rules=2, depth=2, blanks=9, estimator="locally-connected", samples=4
    )
    found = measure(setting, random_stream("test", 0))
    # The parents of the first patches of level 1 are labels, which are never blank.
    assert found["synonymic_sensitivity"][0] == pytest.approx(1, abs=0.1)
    assert 0 <= found["test_accuracy"] <= 1


def test_the_power_of_blanks_is_the_slope_between_them():
    points = []
    for blanks in (0, 1, 3):
        for factor, accuracy in ((0.5, 5 / 16), (2.0, 13 / 16)):  # halfway between 1/8 and 1 at 1
            setting = RandomHierarchyParameters(
                estimator="cnn", blanks=blanks, sample_ratio=factor * (blanks + 1) ** 1.5
            )
            row = [{"test_accuracy": accuracy}]
            points.append(Point(setting.model_dump(), row, {"p_star": 1.0}, setting))
    measured, expected = sparsity_power(points)
    assert measured == pytest.approx(1.5, abs=0.01)
    assert expected == pytest.approx(2)
    assert sparsity_power(points[:4]) is None
