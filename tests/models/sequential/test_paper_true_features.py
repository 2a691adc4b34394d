"""The layer-wise learner on true Hermite features, at d = 40 and at the size of the paper.

Overlaps are compared with the closed form (sequential 8), with moments from draws of the target, less
the loss at infinite n of the corrected operator (sequential 20). The size d = 120 is that of the
published runs of arXiv:2605.14567 with a tanh readout.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.learners import LayerwiseSpectralRegressor
from solvable.operators import MomentOperator, apply_label_map, leading_eigenpairs
from solvable.targets import HierarchicalTarget

MOMENT_DRAWS = 200_000


def predicted_overlaps(target, n_samples, floor):
    r"""Closed form (sequential 8), :math:`(\nu-\tau_2)_+ / ((\nu-\tau_2)_+ + \tau_{2h})`."""
    X, y = target.sample(MOMENT_DRAWS, random_stream(target.seed, "moments"), dtype=np.float32)
    h, squared_norm = target.latent(X), target.feature_map.squared_norm(X)
    size = target.n_features_total
    weights = apply_label_map(y, "tanh")
    ratio = squared_norm / size
    heights = weights @ (h**2 - 1) / len(y) - np.mean(weights * (ratio - 1))
    noise = np.mean((weights * ratio) ** 2)
    spread = (weights**2 * ratio) @ h**2 / len(y)
    excess = np.maximum(n_samples / size * heights**2 - noise, 0.0)
    return np.clip(excess / (excess + spread) - floor, 0.0, None)


def overlaps(target, directions):
    """Squared overlap of each true feature with the span of the learned directions."""
    return np.sum((target.directions.T @ directions) ** 2, axis=1)


@cache
def fits_at_40(ratio, seed):
    """Target, samples, corrected fit and its normalised error."""
    target = HierarchicalTarget(40, features=6, decay=0.4, signs="alternating", seed=seed)
    fresh = 20_000
    n_samples = ratio * target.n_features_total
    X, y = target.sample(n_samples + fresh, random_stream(seed, "train", ratio))
    learner = LayerwiseSpectralRegressor(
        2,
        n_directions=6,
        selection="forced",
        correction="wick",
        held_back=fresh,
        shuffle=False,
        random_state=seed,
    ).fit(X, y)
    Z, truth = target.sample(10_000, random_stream(seed, "test"))
    error = np.mean((learner.predict(Z) - truth) ** 2) / np.var(truth)
    return target, (X[:-fresh], y[:-fresh]), learner, error


def plain_by_modulus(target, X, y):
    """Overlaps of arXiv:2605.14567, Algorithm 1: plain operator, eigenvalues ranked by modulus."""
    plain = MomentOperator(X, apply_label_map(y, "tanh"), target.feature_map)
    count = target.features
    pairs = leading_eigenpairs(plain, count, count, rng=0, tolerance=1e-3)
    largest = np.argsort(-np.abs(pairs.values))[:count]
    return overlaps(target, pairs.vectors[:, largest])


def check_at_40(ratio, seeds):
    measured, expected, errors, predicted_errors = [], [], [], []
    for seed in seeds:
        target, _, learner, error = fits_at_40(ratio, seed)
        # Loss of the corrected operator at infinite n: 4 / (lambda d)²   (sequential 20).
        floor = 4 / (target.weights * target.dimension) ** 2
        prediction = predicted_overlaps(target, ratio * target.n_features_total, floor)
        measured.append(overlaps(target, learner.directions_).mean())
        expected.append(prediction.mean())
        errors.append(error)
        predicted_errors.append(1 - np.sum(target.weights**2 * prediction**2))
    return map(np.mean, (measured, expected, errors, predicted_errors))


@pytest.mark.parametrize("ratio", [32, pytest.param(64, marks=pytest.mark.slow)])
def test_check_15_overlaps_at_40(ratio):
    measured, expected, error, predicted_error = check_at_40(ratio, (0, 1, 2))
    # Single seeds deviate by 0.02.
    assert measured == pytest.approx(expected, abs=0.03)
    # Heavy tails at finite d raise the error by 8 % at n = 32 D and 5 % at 64 D.
    assert error == pytest.approx(predicted_error, rel=0.12)


@pytest.mark.slow
def test_check_15_overlaps_at_40_with_many_samples():
    measured, expected, error, predicted_error = check_at_40(128, (0, 1, 2))
    assert measured == pytest.approx(expected, abs=0.03)
    assert error == pytest.approx(predicted_error, rel=0.08)


def test_check_15_plain_ranking_by_modulus_loses_a_feature():
    lost = 0
    for seed in (0, 1, 2):
        target, samples, learner, _ = fits_at_40(32, seed)
        corrected = overlaps(target, learner.directions_)
        assert corrected.min() > 0.55
        lost += plain_by_modulus(target, *samples).min() < 0.05
        # At least five of six directions are outside the predicted edges.
        assert learner.layers_[0].outliers.sum() >= 5
    # The weakest negative spike lies at the edge of the shifted bulk. The plain operator loses it in two
    # of ten draws, the corrected operator never.
    assert lost >= 1


@pytest.mark.slow
def test_check_16_the_size_of_the_committed_rows():
    target = HierarchicalTarget(
        120, features=11, decay=0.4, readout="tanh", signs="alternating", seed=0
    )
    n_samples, fresh = 410_950, 20_000
    X, y = target.sample(n_samples + fresh, random_stream(0, "train"), dtype=np.float32)
    options = {"n_directions": 11, "held_back": fresh, "shuffle": False, "random_state": 0}
    learner = LayerwiseSpectralRegressor(2, selection="forced", correction="wick", **options).fit(
        X, y
    )
    found = overlaps(target, learner.directions_)
    floor = 4 / (target.weights * 120) ** 2
    expected = predicted_overlaps(target, n_samples, floor)
    assert found.mean() == pytest.approx(0.81, abs=0.03)
    np.testing.assert_allclose(found, expected, atol=0.04)
    assert learner.layers_[0].outliers.all()

    Z, truth = target.sample(5000, random_stream(0, "test"))
    error = np.mean((learner.predict(Z) - truth) ** 2) / np.var(truth)
    # Published rows at this size: errors 0.518 and 0.483, overlaps 0.673 and 0.720.
    assert error < 0.45

    ranked = plain_by_modulus(target, X[:n_samples], y[:n_samples]).mean()
    # Ranking by modulus loses negative spikes; the number depends on the signs.
    assert 0.62 <= ranked <= 0.82
    assert ranked < found.mean()
