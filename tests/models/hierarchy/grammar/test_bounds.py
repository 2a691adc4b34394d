"""Printed guarantees: what the two corrected lemmas change, by simulation where possible."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.grammar.bounds import (
    bandwidth,
    descent_distance,
    descent_steps,
    distinct_share,
    feature_count,
    frequency_errors,
    guaranteed_samples,
    level_samples,
    separation_bound,
)
from solvable.models.hierarchy.grammar.theory import threshold_samples


@pytest.mark.parametrize("overlap", [0.01, 0.1])
def test_kernel_of_different_patches_at_the_bandwidth(overlap):
    distance = 1.4
    kernel = {
        corrected: np.exp(
            -(distance**2)
            / (2 * bandwidth(separation=distance, overlap=overlap, corrected=corrected) ** 2)
        )
        for corrected in (False, True)
    }
    assert kernel[True] == pytest.approx(overlap / 2)
    assert kernel[False] == pytest.approx((overlap / 2) ** 0.25)


def test_random_features_of_the_stated_number_keep_the_overlaps():
    # Two patches at the corrected distance: overlaps scatter by 1/sqrt(2 M), far inside the tolerance.
    overlap, d, rng = 0.3, 6, np.random.default_rng(0)
    width = bandwidth(separation=np.sqrt(2), overlap=overlap, corrected=True)
    sizes = {"overlap": overlap, "spread": 0.8, "separation": np.sqrt(2), "embedding": 3}
    M = int(feature_count(branching=2, failure=0.05, **sizes))
    patches = np.concatenate([np.eye(3)[[0, 1]].reshape(1, d), np.eye(3)[[0, 2]].reshape(1, d)])
    overlaps = []
    for _ in range(40):
        phases = patches @ rng.standard_normal((d, M)) / width
        features = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / np.sqrt(M)
        overlaps.append(abs(features[0] @ features[1]))
    assert max(overlaps) <= overlap


def test_label_laws_of_rare_patches_break_the_printed_bound():
    classes, patches, N, failure = 8, 256, 20_000, 0.1
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.ones(classes), patches)
    worst_law, worst_frequency = 0.0, 0.0
    for _ in range(20):
        counts = rng.multinomial(N, (laws / patches).ravel()).reshape(laws.shape)
        n = counts.sum(axis=1)
        worst_law = max(worst_law, np.linalg.norm(counts / n[:, None] - laws, axis=1).max())
        worst_frequency = max(worst_frequency, abs(n * patches / N - 1).max())
    printed = frequency_errors(N, patches=patches, failure=failure)
    corrected = frequency_errors(N, patches=patches, failure=failure, corrected=True)
    assert worst_frequency <= printed[0]
    assert worst_law > 2 * printed[1]
    assert worst_law <= corrected[1]
    assert corrected[1] == pytest.approx(np.sqrt(patches) * printed[1])


def test_samples_of_one_level_invert_the_error():
    sizes = {"patches": 64.0, "failure": 0.1, "kappa": 1.5}
    for corrected in (False, True):
        N = level_samples(accuracy=0.2, corrected=corrected, **sizes)
        law = frequency_errors(N, corrected=corrected, **sizes)[1]
        assert law == pytest.approx(0.1)  # half of the accuracy
    ratio = level_samples(accuracy=0.2, corrected=True, **sizes) / level_samples(
        accuracy=0.2, **sizes
    )
    assert ratio == pytest.approx(1.5 * 64)


def test_gradient_descent_stays_within_its_bound():
    # One level with orthonormal features of |P| equally frequent patches, from W = 0.
    patches, classes, rng = 32, 4, np.random.default_rng(1)
    laws = rng.dirichlet(np.ones(classes), patches).T
    penalty = 1 / patches
    best = laws / patches / (1 / patches + penalty)
    weights = np.zeros_like(best)
    for step in range(1, 200):
        weights -= 2 / (1 + penalty) * (weights / patches - laws / patches + penalty * weights)
        assert np.linalg.norm(weights - best) <= descent_distance(step, patches=patches)
    steps = descent_steps(accuracy=0.01, patches=patches, classes=classes)
    assert descent_distance(steps, patches=patches) == pytest.approx(
        0.01 / (100 * np.sqrt(classes))
    )


def test_guarantee_exceeds_the_measured_threshold_by_far():
    sizes = {"rules": 8, "depth": 3}
    N = guaranteed_samples(vocabulary=16, branching=2, failure=0.1, **sizes)
    assert N.sum() > 1e7 * threshold_samples(classes=16, **sizes)
    assert N[1:] / N[:-1] == pytest.approx([8, 8])
    bound = separation_bound(**sizes)
    assert bound == pytest.approx([1, 160**-0.5, 1 / 160])
    # K m^(-l / 2) at the leaves is the bound of Proposition 19.
    K = np.sqrt(8 / 20**2)
    assert bound[-1] == pytest.approx(K * 8**-1.5)
    same = guaranteed_samples(vocabulary=16, branching=2, failure=0.1, separation=K, **sizes)
    assert same == pytest.approx(N)


def test_share_of_grammars_with_distinct_laws():
    # Two symbols with two tuples each: laws are equal if each label has one of each, in 4 of 6 deals.
    assert distinct_share(vocabulary=2, rules=2, depth=3) == pytest.approx([1, 1 / 3, 1 / 3])
    V, m, draws, rng = 16, 2, 1_500, np.random.default_rng(0)
    distinct = 0
    for _ in range(draws):
        dealt = rng.permutation(np.repeat(np.arange(V), m)).reshape(V, m)
        counts = (dealt[:, :, None] == np.arange(V)).sum(axis=1)
        distinct += len(np.unique(counts.T, axis=0)) == V
    expected = distinct_share(vocabulary=V, rules=m, depth=2)[1]
    # Three standard errors, and 0.015 for pairs of symbols that are treated as independent.
    allowance = 3 * np.sqrt(expected * (1 - expected) / draws) + 0.015
    assert distinct / draws == pytest.approx(expected, abs=allowance)
    assert np.isnan(distinct_share(vocabulary=1_000, rules=257, depth=2)[1])


def test_values_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="separation is 0"):
        bandwidth(separation=0, overlap=0.1)
