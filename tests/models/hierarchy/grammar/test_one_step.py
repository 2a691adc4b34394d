"""One gradient step: vectors against automatic differences, and the measured synonymic sensitivity."""

import itertools

import numpy as np
import pytest

from solvable.models.hierarchy.grammar.learner.count_cluster import (
    count_gradients,
    gradient_distances,
)


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


def test_distances_are_means_over_pairs():
    counts = np.random.default_rng(1).integers(0, 12, (3, 4, 3))
    counts[1, 1] = 0  # a tuple that is never seen
    flat = counts.reshape(12, 3)
    g = (flat - flat.mean(axis=1, keepdims=True)) / flat.sum()
    pairs = list(itertools.combinations(range(12), 2))
    distance = {pair: np.sum((g[pair[0]] - g[pair[1]]) ** 2) for pair in pairs}
    synonyms = [pair for pair in pairs if pair[0] // 4 == pair[1] // 4]
    expected = (np.mean([distance[p] for p in synonyms]), np.mean(list(distance.values())))
    assert gradient_distances(counts) == pytest.approx(expected)


def test_distances_of_synonyms_and_of_others_are_equal_without_signal():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(20):
        synonyms, others = gradient_distances(rng.poisson(12.5, (8, 8, 8)))
        ratios.append(synonyms / others)
    # The standard error of the mean is about 0.003.
    assert np.mean(ratios) == pytest.approx(1, abs=0.01)


def test_a_level_with_one_rule_has_no_synonyms():
    synonyms, others = gradient_distances(np.eye(3)[:, None])
    assert np.isnan(synonyms)
    assert others > 0
