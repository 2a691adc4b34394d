"""The deep quadratic Boolean target: its structure, its recovery and where recovery begins."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.hierarchy.grammar.boolean import (
    DeepQuadraticBoolean,
    recovered_supports,
    recovery_probability,
    recovery_threshold,
)


def share_recovered(dimension, n, trials, levels=0):
    """Share of trials in which all products are found and nothing else."""
    hits = 0
    for seed in range(trials):
        target = DeepQuadraticBoolean(dimension, levels, seed=seed)
        found = recovered_supports(*target.sample(n, seed), levels=target.n_levels)
        hits += all(map(np.array_equal, found, target.supports))
    return hits / trials


def test_supports_are_unions_of_pairs_of_supports():
    target = DeepQuadraticBoolean(16, seed=3)
    assert [block.shape for block in target.supports] == [(8, 2), (4, 4), (2, 8), (1, 16)]
    below = {frozenset([i]) for i in range(16)}
    for block in target.supports:
        level = {frozenset(support.tolist()) for support in block}
        assert set.union(*map(set, level)) == set(range(16))
        assert all(sum(part <= support for part in below) == 2 for support in level)
        below = level
    assert target.squared_norm == pytest.approx(15)
    X, y = target.sample(20_000, 0)
    assert (y**2).mean() == pytest.approx(15, rel=0.05)
    first, second = target.supports[0][0]
    assert (X[:, first] * X[:, second] * y).mean() == pytest.approx(target.signs[0][0], abs=0.15)


def test_all_inputs_give_the_exact_coefficients():
    target = DeepQuadraticBoolean(8, seed=1)
    X = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    y = sum(X[:, S].prod(axis=2) @ c for S, c in zip(target.supports, target.signs, strict=True))
    found = recovered_supports(X, y, levels=3, threshold=0.999)
    assert all(map(np.array_equal, found, target.supports))


@pytest.mark.parametrize("dimension", [16, 32])
def test_recovery_begins_at_the_threshold(dimension):
    # Acceptance check 15, with signs of coefficients unknown, which doubles false alarms.
    threshold = recovery_threshold(dimension=dimension, squared_norm=dimension - 1)
    assert share_recovered(dimension, int(1.5 * threshold), 30) >= 0.9
    assert share_recovered(dimension, int(threshold / 3), 20) <= 0.1


@pytest.mark.slow
def test_recovery_begins_at_the_threshold_in_64_dimensions():
    threshold = recovery_threshold(dimension=64, squared_norm=63)
    assert share_recovered(64, int(1.5 * threshold), 30) >= 0.9
    assert share_recovered(64, int(threshold / 3), 20) <= 0.1


@pytest.mark.parametrize(("dimension", "levels", "n"), [(16, 4, 450), (32, 5, 1_250), (32, 2, 900)])
def test_share_of_recoveries_is_the_predicted_one(dimension, levels, n):
    predicted = recovery_probability(n, dimension=dimension, levels=levels)
    assert 0.2 < predicted < 0.9
    trials = 80
    # Three standard errors, and 0.1 for coefficients treated as independent.
    allowance = 3 * np.sqrt(predicted * (1 - predicted) / trials) + 0.1
    assert abs(share_recovered(dimension, n, trials, levels) - predicted) <= allowance


def test_few_samples_leave_levels_empty():
    found = recovered_supports(np.ones((4, 8)), np.zeros(4), levels=3)
    assert [block.shape for block in found] == [(0, 2), (0, 4), (0, 8)]


def test_values_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="multiple of 2"):
        DeepQuadraticBoolean(12, levels=3)
    with pytest.raises(InvalidParameter, match="dimension"):
        DeepQuadraticBoolean(1)
    with pytest.raises(InvalidData, match="one row of X"):
        recovered_supports(np.ones((4, 8)), np.zeros(3), levels=2)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": -1}, {"seed": "a"}, {"seed": 1.5}, {"levels": 10**6}, {"levels": "a"},
        {"dimension": 10**400}, {"dimension": 2**21}, {"dimension": 15}, {"dimension": 8.0},
    ],
)  # fmt: skip
def test_impossible_targets_are_refused(change):
    with pytest.raises(InvalidParameter, match="allowed") as raised:
        DeepQuadraticBoolean(**change)
    assert "1 levels" not in str(raised.value)


def test_seeds_of_samples():
    target = DeepQuadraticBoolean(8, seed=np.int64(1))
    assert np.array_equal(target.signs[0], DeepQuadraticBoolean(8, seed=1).signs[0])
    assert np.array_equal(target.sample(9, np.int64(3))[0], target.sample(9, 3)[0])
    for rng in (None, "a", 1.5):
        with pytest.raises(InvalidParameter, match="rng"):
            target.sample(3, rng)


def test_samples_of_the_wrong_form_are_refused():
    target = DeepQuadraticBoolean(8, seed=1)
    X, y = target.sample(300, 0)
    for found in (target.recover(X.tolist(), y.tolist()), target.recover(X.astype(float), y)):
        assert all(map(np.array_equal, found, target.recover(X, y)))
    for inputs, values in (
        (None, y), (X, None), (X, y[:, None]), (X[:, :4], y), (X * np.nan, y), (X, y * np.nan),
        (2 * X, y), (X[:0], y[:0]), ([[1], [1, 1]], y), (X.astype(str), y), (X, y[:9]), (X, "a"),
    ):  # fmt: skip
        with pytest.raises(InvalidData, match="allowed"):
            target.recover(inputs, values)
    for samples in (-1, 0, None, "a", np.nan, 10**400):
        with pytest.raises(InvalidParameter, match="samples"):
            target.recovery_probability(samples)


def test_a_target_recovers_its_own_products_above_its_threshold():
    target = DeepQuadraticBoolean(16, seed=2)
    X, y = target.sample(round(1.5 * target.threshold_samples), rng=0)
    for found, true in zip(target.recover(X, y), target.supports, strict=True):
        assert {tuple(row) for row in found} == {tuple(row) for row in true}
    assert target.recovery_probability(1.5 * target.threshold_samples) > 0.9
    assert target.recovery_probability(target.threshold_samples / 3) < 0.1
