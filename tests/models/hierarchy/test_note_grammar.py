"""Acceptance checks of the grammar: counts, signal, noise, correlations, inference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solvable.models.hierarchy.grammar.measure import last_token_covariances
from solvable.models.hierarchy.rules import tuple_numbers
from solvable.models.hierarchy.target import RandomHierarchy


@pytest.mark.parametrize(
    ("sizes", "classes", "ensemble", "strings"),
    [
        ((4, 3, 2, 2), 4, "first", 108),
        ((4, 3, 2, 2), 4, "uniform", 108),
        ((3, 2, 3, 2), 2, "uniform", 32),
        ((8, 8, 2, 2), 8, "first", 4096),
    ],
)
def test_all_strings_of_small_grammars(sizes, classes, ensemble, strings):
    target = RandomHierarchy(*sizes, classes=classes, ensemble=ensemble)
    assert target.n_strings == strings
    X, y = target.unrank(range(strings))
    assert len(np.unique(X, axis=0)) == strings
    np.testing.assert_array_equal(np.bincount(y), strings // classes)
    np.testing.assert_array_equal(target.rank(X), np.arange(strings))
    np.testing.assert_array_equal(target.classify(X), y)


@pytest.mark.parametrize(("vocabulary", "depth"), [(8, 2), (3, 2), (2, 3)])
def test_all_strings_occur_in_the_maximal_case(vocabulary, depth):
    target = RandomHierarchy(vocabulary, vocabulary, 2, depth)
    everything = np.array(list(itertools.product(range(vocabulary), repeat=2**depth)))
    assert target.n_strings == vocabulary ** (2**depth)
    assert target.contains(everything).all()


def mean_signal(target, level):
    """Mean of |q - q'|^2 over tuples of the first patch with different parents."""
    q = target.label_posterior(level)[:: target.rules]
    squares = ((q[:, None] - q[None]) ** 2).sum(axis=-1)
    return squares.sum() / (len(q) * (len(q) - 1))


@pytest.mark.parametrize(("sizes", "classes"), [((16, 8, 2, 4), 16), ((16, 4, 2, 4), 8)])
def test_signal_is_its_closed_form(sizes, classes):
    V, m = sizes[:2]
    signals = np.array(
        [
            [
                mean_signal(RandomHierarchy(*sizes, classes=classes, seed=seed), level)
                for level in (1, 2, 3, 4)
            ]
            for seed in range(60)
        ]
    )
    np.testing.assert_allclose(signals[:, 0], 2)
    for level in (2, 3, 4):
        # E|q - q'|^2 = 2 (V / n_c) c_1 c^(l - 2), with c = (V - 1) / (m V - 1)
        contraction, top = (V - 1) / (m * V - 1), (classes - 1) / (classes * m - 1)
        expected = 2 * V / classes * top * contraction ** (level - 2)
        error = signals[:, level - 1].std() / np.sqrt(60)
        # 6 % is four standard errors at level 3, and less at level 4
        assert abs(signals[:, level - 1].mean() - expected) < max(0.06 * expected, 3 * error)


def test_noise_of_frequencies_of_labels():
    target = RandomHierarchy(16, 8, 2, 2)
    samples, patches = 20_000, 128
    q, p = target.label_posterior(2), target.patch_probabilities(2)
    order = tuple_numbers(target.tables[1].reshape(-1, 2), 16, 2)[:, 0]
    squares = []
    for draw in range(50):
        X, y = target.sample(samples, rng=draw)
        counts = np.zeros((256, 16))
        np.add.at(counts, (tuple_numbers(X[:, :2], 16, 2)[:, 0], y), 1)
        counts = counts[order]
        squares.append(((counts / counts.sum(axis=1, keepdims=True) - q) ** 2).sum(axis=1))
    # E|q_hat - q|^2 = (1 - |q|^2) / (N p)
    expected = np.sqrt(((1 - (q**2).sum(axis=1)) / (samples * p)).mean())
    assert abs(np.sqrt(np.mean(squares)) / expected - 1) < 0.03
    # the bound of Lemma 18 as printed, and with its missing factor |P_l|, at confidence 0.95
    printed = np.sqrt(2 * np.log(4 * patches / 0.05) / samples)
    largest = np.sqrt(np.mean(np.max(squares, axis=1)))
    assert printed < largest < np.sqrt(patches) * printed


@pytest.mark.parametrize("vocabulary", [2, 4])
def test_single_symbols_of_the_latin_grammar_are_independent_of_the_label(vocabulary):
    target = RandomHierarchy(vocabulary, vocabulary, 2, 3, ensemble="latin")
    for level in (2, 3):
        for path in itertools.product(range(2), repeat=level - 1):
            np.testing.assert_allclose(target.label_posterior(level, path), 1 / vocabulary)
    X, _ = target.sample(1, rng=0)
    for place in range(8):
        alone = np.full_like(X, -1)
        alone[0, place] = X[0, place]
        np.testing.assert_allclose(target.label_probabilities(alone), 1 / vocabulary)


@pytest.mark.parametrize(("vocabulary", "rules"), [(32, 8), (64, 16)])
@pytest.mark.parametrize("ensemble", ["uniform", "first"])
def test_correlations_are_at_their_plateaus(vocabulary, rules, ensemble):
    V, m, f = vocabulary, rules, rules / vocabulary
    for height in (1, 2, 3):
        squares = [
            (
                RandomHierarchy(V, m, 2, 3, ensemble=ensemble, seed=seed).token_covariance(height)
                ** 2
            ).mean()
            for seed in range(20)
        ]
        # mean of C² = (1 - f) / (V³ m^(2 l - 1))
        assert 0.75 < np.mean(squares) / ((1 - f) / (V**3 * m ** (2 * height - 1))) < 1.25


@pytest.mark.parametrize("ensemble", ["uniform", "first"])
def test_correlations_vanish_if_all_tuples_occur(ensemble):
    target = RandomHierarchy(8, 8, 2, 4, ensemble=ensemble)
    for height in (1, 2, 3, 4):
        np.testing.assert_allclose(target.token_covariance(height), 0, atol=1e-15)


@pytest.mark.parametrize("samples", [2000, 20_000, 200_000])
def test_error_of_measured_correlations_is_the_floor(samples):
    target = RandomHierarchy(32, 8, 2, 3, ensemble="uniform")
    X, _ = target.sample(samples, rng=0)
    errors = [
        ((measured - target.token_covariance(height, 8 - 2**height + place)) ** 2).mean()
        for height, part in enumerate(last_token_covariances(X, 32, 2), start=1)
        for place, measured in enumerate(part)
    ]
    rms = np.sqrt(np.mean(errors))
    assert abs(rms * np.sqrt(32**2 * samples) - 1) < 0.05


@pytest.mark.parametrize("rules", [8, 11])
@pytest.mark.parametrize("ensemble", ["uniform", "first"])
def test_number_of_compatible_last_tokens(rules, ensemble):
    V, m, s = 32, rules, 2
    counts = []
    for seed in range(8):
        target = RandomHierarchy(V, m, s, 4, ensemble=ensemble, seed=seed)
        X, _ = target.sample(300, rng=0)
        laws = [target.next_token_law(X, height) for height in (1, 2, 3, 4)]
        counts.append([(law > 0).sum(axis=1).mean() for law in laws])
    expected, number = [], V
    for _ in range(4):
        # tuples of compatible parents, other than the one that occurred
        others = (m - 1) + (number - 1) * m
        if ensemble == "uniform":
            number = 1 + others * (V - 1) / (V**s - 1)
        else:
            # m - 1 other tuples have the same first symbol, each with a random parent
            number = 1 + (m - 1) * others / (V * m - 1) * (V - 1) / (V ** (s - 1) - 1)
        expected.append(number)
    np.testing.assert_allclose(np.mean(counts, axis=0), expected, rtol=0.03)


def mean_beliefs(target, epsilon):
    """Mean belief in the true symbol given the leaves below it, from the leaves to the label."""
    tree = target.sample_tree(200, rng=0)
    evidence = target.noisy_evidence(tree[-1], epsilon)
    beliefs, _ = target.belief_propagation(evidence, downward=False)
    return [
        np.take_along_axis(belief, symbols[..., None].astype(int), -1).mean()
        for belief, symbols in zip(reversed(beliefs), reversed(tree), strict=True)
    ]


def mean_weight_of_other_rules(p, V, m, s, ensemble):
    """Mean product of beliefs over the tuples other than the true one, for belief p in true symbols."""
    if ensemble == "uniform":
        return (1 - p**s) / (V**s - 1)
    # Of the other m V - 1 tuples m - 1 have the true first symbol, and m (V - 1) any tail.
    same = p * (1 - p ** (s - 1)) / (V ** (s - 1) - 1)
    other = (1 - p) / (V - 1) / V ** (s - 1)
    return ((m - 1) * same + m * (V - 1) * other) / (m * V - 1)


@pytest.mark.parametrize("epsilon", [0.5, 0.8])
@pytest.mark.parametrize("sizes", [(32, 8, 2, 6), (16, 16, 3, 3)])
@pytest.mark.parametrize("ensemble", ["uniform", "first"])
def test_beliefs_follow_the_diffusion_map(sizes, epsilon, ensemble):
    V, m, s, depth = sizes
    expected = [1 - epsilon + epsilon / V]
    for _ in range(depth):
        p = expected[-1]
        # F(p) = (p^s + (m - 1) w) / (p^s + (m V - 1) w)
        other = mean_weight_of_other_rules(p, V, m, s, ensemble)
        expected.append((p**s + (m - 1) * other) / (p**s + (m * V - 1) * other))
    beliefs = [
        mean_beliefs(RandomHierarchy(*sizes, ensemble=ensemble, seed=seed), epsilon)
        for seed in range(4)
    ]
    np.testing.assert_allclose(np.mean(beliefs, axis=0), expected, atol=0.012)
