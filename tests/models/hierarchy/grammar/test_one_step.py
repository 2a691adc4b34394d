"""One gradient step: vectors against automatic differences, and the measured synonymic sensitivity."""

import itertools

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.grammar.learner.one_step import (
    OneStepClusterClassifier,
    count_gradients,
    measured_sensitivity,
)
from solvable.models.hierarchy.target import RandomHierarchy


def test_vectors_are_gradients_of_the_cross_entropy():
    """The network o = A relu(w x / V) / h, w = 1, differentiated numerically in each weight."""
    rng = np.random.default_rng(0)
    patches, labels = rng.integers(0, 5, 40), rng.integers(0, 3, 40)
    width, vocabulary = 200_000, 7
    # At infinite width all outputs vanish at the start, which the second layer is centred to reproduce.
    second = rng.standard_normal((3, width))
    second -= second.mean(axis=1, keepdims=True)
    counts = np.zeros((5, 3))
    np.add.at(counts, (patches, labels), 1)
    neurons = [0, 1, 2]

    def loss(neuron, patch, change):
        hidden = np.full((40, width), 1 / vocabulary)
        hidden[patches == patch, neuron] += change / vocabulary
        outputs = np.maximum(hidden, 0) @ second.T / width
        logs = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
        return -logs[np.arange(40), labels].mean()

    gradients = count_gradients(counts)
    step = 50.0
    for neuron, patch in itertools.product(neurons[:2], range(3)):
        slope = (loss(neuron, patch, step) - loss(neuron, patch, 0)) / step
        expected = -gradients[patch] @ second[:, neuron] / (vocabulary * width)
        np.testing.assert_allclose(slope, expected, rtol=2e-3, atol=1e-12)


@pytest.mark.parametrize("rules", [None, 4])
def test_sensitivity_is_the_ratio_of_means_over_pairs(rules):
    rng = np.random.default_rng(1)
    patches = rng.integers(0, 12, 70)
    patches[patches == 5] = 6  # a patch that is never seen
    labels = rng.integers(0, 3, 70)
    counts = np.zeros((12, 3))
    np.add.at(counts, (patches, labels), 1)
    g = (counts - counts.mean(axis=1, keepdims=True)) / 70
    used = [p for p in range(12) if rules is not None or p != 5]
    pairs = list(itertools.combinations(used, 2))
    distance = {pair: np.sum((g[pair[0]] - g[pair[1]]) ** 2) for pair in pairs}
    synonyms = [pair for pair in pairs if pair[0] // 4 == pair[1] // 4]
    expected = np.mean([distance[p] for p in synonyms]) / np.mean(list(distance.values()))
    measured = measured_sensitivity(patches, patches // 4, labels, 3, rules=rules)
    assert measured == pytest.approx(expected)


def test_sensitivity_is_one_without_signal():
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 64, 6400)
    values = [
        measured_sensitivity(patches, patches // 8, rng.integers(0, 8, 6400), 8, rules=8)
        for _ in range(20)
    ]
    # The standard error of the mean is about 0.003.
    assert np.mean(values) == pytest.approx(1, abs=0.01)


def test_sensitivity_without_pairs_or_differences_is_missing():
    ones = np.zeros(3, dtype=int)
    assert np.isnan(measured_sensitivity(ones, ones, np.array([0, 1, 1]), 2))
    assert np.isnan(measured_sensitivity(np.arange(2), np.arange(2), np.array([0, 1]), 2))
    with pytest.raises(InvalidData, match="equal length"):
        measured_sensitivity(ones, ones, np.array([0, 1]), 2)
    with pytest.raises(InvalidParameter, match="rules is 2; allowed: an integer of at least 3"):
        measured_sensitivity(np.arange(3), ones, np.array([0, 1, 1]), 2, rules=2)
    with pytest.raises(InvalidData, match="from 0 to 1"):
        measured_sensitivity(ones, ones, np.array([0, 1, 2]), 2)


def test_finite_widths_approach_the_limit():
    counts = np.random.default_rng(0).integers(0, 9, (10, 1, 4))
    labels = np.arange(8) % 4
    rows = OneStepClusterClassifier()._rows(counts, labels)[0]
    exact = rows @ rows.T
    errors = [
        np.linalg.norm(
            (wide := OneStepClusterClassifier(width=h)._rows(counts, labels)[0]) @ wide.T - exact
        )
        / np.linalg.norm(exact)
        for h in (100, 10_000)
    ]
    assert errors[1] < 0.3 * errors[0] < 0.3


@pytest.mark.parametrize("width", [None, 256])
def test_grammar_is_learned_with_enough_samples(width):
    accuracies = []
    for seed in range(3):
        target = RandomHierarchy(8, 4, 2, 3, seed=seed)
        X, y = target.sample(32 * 512, rng=seed)
        model = OneStepClusterClassifier(width=width).fit(X, y)
        accuracies.append(model.score(*target.sample(1000, rng=9)))
    # k-means may merge two symbols in one grammar.
    assert np.median(accuracies) > 0.95


def test_bad_width_is_refused():
    X, y = RandomHierarchy(4, 2, 2, 2).sample(20, rng=0)
    with pytest.raises(InvalidParameter, match="width is 0"):
        OneStepClusterClassifier(width=0).fit(X, y)
