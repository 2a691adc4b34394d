"""Acceptance checks 8 and 9 of the notes: kernels see no hierarchy, the deep CNN learns it near P*."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.models.hierarchy.grammar.learner.convolutional import (
    FullyConnectedNetwork,
    HierarchicalCNN,
)
from solvable.models.hierarchy.grammar.learner.kernel import KernelClassifier, LazyCNNClassifier
from solvable.models.hierarchy.target import RandomHierarchy

RATIOS = np.array([0.5, 1.0, 2**0.5, 2.0, 4.0])


def grammar(rules, depth, seed):
    """Grammar with eight symbols and labels, and its P*."""
    return RandomHierarchy(8, rules, 2, depth, seed=seed), 8 * rules**depth


def accuracies(make, depth, ratios=RATIOS, seeds=(0, 1)):
    """Mean test accuracy over grammars at N / P*."""
    curves = []
    for seed in seeds:
        target, p_star = grammar(4, depth, seed)
        test = target.sample(4000, 2000 + seed)
        curves.append(
            [
                make(seed).fit(*target.sample(round(r * p_star), 1000 + seed)).score(*test)
                for r in ratios
            ]
        )
    return np.mean(curves, axis=0)


def crossing(curve, level, ratios=RATIOS):
    """Return the first N / P* with this accuracy, interpolated in the logarithm."""
    above = int(np.argmax(curve >= level))
    assert curve[above] >= level > curve[above - 1]
    part = (level - curve[above - 1]) / (curve[above] - curve[above - 1])
    return ratios[above - 1] * (ratios[above] / ratios[above - 1]) ** part


@pytest.mark.parametrize(
    ("depth", "printed"),
    [
        (2, (0.27, 0.40, 0.59, 0.73, 0.96)),
        pytest.param(3, (0.0, 0.35, 0.35, 0.59, 0.90), marks=pytest.mark.slow),
    ],
)
def test_the_deep_cnn_learns_near_p_star(depth, printed):
    curve = accuracies(lambda seed: HierarchicalCNN(random_state=seed), depth)
    # Half of the way from chance to 1, as the notes define N50. An accuracy of 1/2 is reached slightly
    # earlier, at 0.76 P* for depth 2 and three grammars, since this network learns from fewer strings.
    assert 0.8 < crossing(curve, (1 + 1 / 8) / 2) < 2.5
    assert 0.7 < crossing(curve, 0.5) < 2.5
    assert curve[-1] >= 0.85
    # Printed for 0.5, 1, 1.5, 2 and 3 times P* at depth 2, and for 1, 2 and 4 times P* at depth 3.
    # With smaller batches and larger steps this network is at least that good.
    assert np.all(curve > np.array(printed) - 0.03)


@pytest.mark.slow
def test_a_tuned_kernel_sees_no_hierarchy():
    kernel = accuracies(
        lambda seed: KernelClassifier(kernel="gaussian", random_state=seed), 3, [8.0]
    )
    deep = accuracies(lambda seed: HierarchicalCNN(random_state=seed), 3, [8.0])
    assert deep[0] > 0.99
    assert deep[0] - kernel[0] > 0.4
    # The notes have 0.41 to 0.45 for the best of four widths. Here a ridge of 10 at half of the median
    # distance gives that; leave-one-out chooses ridges near 0.1, and 0.58 to 0.62 is the best of all
    # widths and ridges on the test strings.
    assert 0.45 < kernel[0] < 0.62


def test_kernels_fail_on_strings_of_a_nearly_complete_grammar():
    gaps = []
    for seed in range(3):
        target, _ = grammar(4, 2, seed)
        X, y = target.sample(512, seed, replace=False)  # all strings in random order
        deep, kernel = (
            model.fit(X[:384], y[:384]).score(X[384:], y[384:])
            for model in (HierarchicalCNN(random_state=0), KernelClassifier(random_state=0))
        )
        assert deep > 0.95
        gaps.append(deep - kernel)
    assert np.mean(gaps) > 0.4


@pytest.mark.slow
def test_shared_features_and_depth_are_what_helps():
    """At 4 P* the lazy CNN and the fully connected network are far behind the deep CNN."""
    ratios = [4.0]
    deep = accuracies(lambda seed: HierarchicalCNN(random_state=seed), 3, ratios)[0]
    local = accuracies(lambda seed: HierarchicalCNN(shared=False, random_state=seed), 3, ratios)[0]
    flat = accuracies(lambda seed: FullyConnectedNetwork(random_state=seed), 3, ratios)[0]
    lazy = accuracies(lambda seed: LazyCNNClassifier(), 3, ratios, seeds=(0,))[0]
    assert deep > local > 0.9
    assert deep - flat > 0.3
    assert deep - lazy > 0.3


@pytest.mark.slow
def test_the_fully_connected_network_needs_a_factor_that_grows_with_depth():
    factors = []
    for depth in (2, 3):
        ratios = np.array([1.0, 2.0, 4.0, 8.0])
        goal = (1 + 1 / 8) / 2
        flat = accuracies(lambda seed: FullyConnectedNetwork(random_state=seed), depth, ratios)
        deep = accuracies(lambda seed: HierarchicalCNN(random_state=seed), depth, ratios / 2)
        factors.append(crossing(flat, goal, ratios) / crossing(deep, goal, ratios / 2))
    # The factor of arXiv:2307.02129 is 2^L: it doubles with each level.
    assert 1.5 < factors[1] / factors[0] < 3.5


def test_synonyms_become_equal_inside_the_network_near_p_star():
    """Sensitivity S of the last layers to swaps of synonyms falls from near 1 to near 0."""
    sensitivity = []
    for ratio in (0.25, 8.0):
        target, p_star = grammar(4, 3, 0)
        model = HierarchicalCNN(random_state=0).fit(*target.sample(round(ratio * p_star), 1))
        X, _ = target.sample(1000, 2)
        swapped = target.swap_synonyms(X, 3, 3)
        features, moved = (model.hidden(strings, 1).reshape(1000, -1) for strings in (X, swapped))
        apart = features - np.roll(features, 1, axis=0)
        sensitivity.append(np.sum((features - moved) ** 2) / np.sum(apart**2))
    assert sensitivity[0] > 0.5
    assert sensitivity[1] < 0.1


@pytest.mark.slow
def test_the_deep_cnn_learns_near_p_star_at_other_sizes():
    """Half of the way from chance to 1 is within a factor 1.6 of P*, while P* varies by 8."""
    ratios = 2.0 ** np.arange(-1.5, 2.5, 0.5)
    for V, m, s, L in ((16, 4, 2, 2), (32, 4, 2, 2), (16, 3, 2, 3), (4, 4, 3, 2), (8, 2, 2, 4)):
        curves = []
        for seed in (0, 1):
            target = RandomHierarchy(V, m, s, L, seed=seed)
            test = target.sample(4000, 2000 + seed)
            curve = []
            for ratio in ratios:
                data = target.sample(round(ratio * V * m**L), 1000 + seed)
                model = HierarchicalCNN(branching=s, vocabulary=V, random_state=seed)
                curve.append(model.fit(*data).score(*test))
            curves.append(curve)
        place = crossing(np.mean(curves, axis=0), (1 + 1 / V) / 2, ratios)
        assert 1 / 1.6 < place < 1.6, (V, m, s, L)
