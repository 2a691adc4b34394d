"""Learners on Gaussian features against the closed forms of docs/derivations/sequential.md.

With T = y, c_i² = (nu - 1)_+/(nu + 4 lambda_i²), nu = 2 lambda_i² n/D (sequential 8), and
NMSE = 1 - sum lambda_i² c_i⁴ (sequential 11). The setting has D = 465, 16 features and decay 1. Signs
differ between seeds, because the heavy tail of y shifts features of one sign.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.learners import LayerwiseSpectralRegressor
from solvable.models.sequential.claims import crossings
from solvable.models.sequential.system import SequentialParameters, system
from solvable.operators import MomentOperator, standardise
from solvable.targets import HierarchicalTarget

TOTAL = 465
TEST_ROWS = 10_000


def draw(ratio, seed, features, decay):
    target = HierarchicalTarget(30, features=features, decay=decay, inputs="gaussian", seed=seed)
    fresh = int(np.clip(ratio * TOTAL, 8000, 40_000))
    X, y = target.sample(round(ratio * TOTAL) + fresh, random_stream(seed, "train"), np.float32)
    Z, truth = target.sample(TEST_ROWS, random_stream(seed, "test"), np.float32)
    return target, X, y, fresh, Z, truth


@cache
def records(ratio, seeds, features=16, decay=1.0, label_map="identity"):
    """Squared overlaps and normalised error of the layer-wise learner; T = y by default."""
    found = []
    for seed in range(seeds):
        target, X, y, fresh, Z, truth = draw(ratio, seed, features, decay)
        learner = LayerwiseSpectralRegressor(
            1,
            n_directions=features,
            label_map=label_map,
            readout="none",
            selection="forced",
            held_back=fresh,
            shuffle=False,
            cross_terms=False,
            random_state=seed,
        ).fit(X, y)
        overlaps = np.sum((target.directions.T @ learner.directions_) ** 2, axis=1)
        error = np.mean((learner.predict(Z) - truth) ** 2) / truth.var()
        found.append({"squared_overlap": overlaps, "normalised_mse": error})
    return found


@cache
def in_sample_error(ratio, seeds):
    """Error of arXiv:2605.14567, Algorithm 1: a second layer of the largest eigenvalues by modulus."""
    errors = []
    for seed in range(seeds):
        target, X, y, fresh, Z, truth = draw(ratio, seed, 16, 1.0)
        labels, centre, scale = standardise(y[:-fresh])
        matrix = MomentOperator(X[:-fresh], labels, target.feature_map).dense()
        values, vectors = np.linalg.eigh(matrix)
        largest = np.argsort(-np.abs(values))[:16]
        h = Z @ vectors[:, largest]
        guess = centre + scale / 2 * ((h**2 - 1) @ values[largest])
        errors.append(np.mean((guess - truth) ** 2) / truth.var())
    return float(np.mean(errors))


def mean(found, name):
    return np.mean([one[name] for one in found], axis=0)


def squared_weights(features=16, decay=1.0):
    weights = np.arange(1, features + 1) ** (-2 * decay)
    return weights / weights.sum()


def closed_form(ratio, features=16, decay=1.0):
    squared = squared_weights(features, decay)
    strength = 2 * squared * ratio
    return np.maximum(strength - 1, 0) / (strength + 4 * squared)


def error_sum(ratio, features=16, decay=1.0):
    return 1 - squared_weights(features, decay) @ closed_form(ratio, features, decay) ** 2


@pytest.mark.parametrize("seeds", [5])
@pytest.mark.slow
def test_check_6_overlaps_at_128(seeds):
    """Overlaps of (sequential 8) at n/D = 128."""
    measured = mean(records(128, seeds), "squared_overlap")
    np.testing.assert_allclose(measured[:6], closed_form(128)[:6], atol=0.03)


@pytest.mark.slow
def test_check_7_all_overlaps_at_512():
    """Overlaps of (sequential 8) at n/D = 512; arXiv:2605.14567, Theorem 3.1."""
    found = np.array([one["squared_overlap"] for one in records(512, 5)])
    error = found.std(axis=0, ddof=1) / np.sqrt(5)
    # A tolerance of 0.02 plus two standard errors.
    assert np.all(np.abs(found.mean(axis=0) - closed_form(512)) < 0.02 + 2 * error)
    assert found.mean(axis=0).sum() == pytest.approx(closed_form(512).sum(), abs=0.15)


@pytest.mark.parametrize(
    ("ratio", "seeds"), [(8, 3), (16, 3), pytest.param(32, 6, marks=pytest.mark.slow)]
)
def test_check_8_resolvent_with_a_clipped_label(ratio, seeds):
    """Overlaps of the resolvent formula (sequential 6)."""
    parameters = SequentialParameters(
        dimension=30, inputs="gaussian", features=6, decay=1.0, label_map="clip",
        samples=ratio * TOTAL,
    )  # fmt: skip
    found = [system.measure(parameters, random_stream("clip", seed)) for seed in range(seeds)]
    predicted = np.asarray(system.predict(parameters)["squared_overlap"])
    strong = predicted > 0.5
    measured = np.array([one["squared_overlap"] for one in found])[:, strong]
    # A tolerance of 0.03 with six seeds; the standard deviation of a seed is 0.02 to 0.06.
    slack = 0.03 + 2 * measured.std(axis=0, ddof=1) / np.sqrt(seeds) * (seeds < 6)
    assert np.all(np.abs(measured.mean(axis=0) - predicted[strong]) < slack)


@pytest.mark.parametrize(
    ("ratio", "seeds", "tolerance"),
    [
        pytest.param(32, 10, 0.08, marks=pytest.mark.slow),
        pytest.param(64, 3, 0.08, marks=pytest.mark.slow),
        (128, 3, 0.04),
        pytest.param(256, 5, 0.04, marks=pytest.mark.slow),
        pytest.param(512, 5, 0.04, marks=pytest.mark.slow),
    ],
)
def test_check_9_error_is_the_sum_over_features(ratio, seeds, tolerance):
    """The error of (sequential 11)."""
    found = records(ratio, seeds)
    error = np.std([one["normalised_mse"] for one in found], ddof=1) / np.sqrt(seeds)
    expected = error_sum(ratio)
    # At n/D = 32 heavy tails raise the error by 8.2 % (30 seeds, standard error 1.4 %). There, and with
    # few seeds, two standard errors are added to the tolerance.
    slack = 2 * error if ratio == 32 or seeds < 5 else 0.0
    assert mean(found, "normalised_mse") == pytest.approx(
        expected, abs=tolerance * expected + slack
    )


@pytest.mark.slow
def test_check_9_at_few_samples_needs_the_finite_size_theory():
    """At n/D = 32 the predicted error, like the measured one, exceeds the closed form."""
    predicted = [
        system.predict(
            SequentialParameters(
                dimension=30, inputs="gaussian", features=16, decay=1.0,
                label_map="identity", signs=signs, samples=32 * TOTAL,
            )
        )["normalised_mse"]
        for signs in ("random", "alternating", "positive")
    ]  # fmt: skip
    found = np.array([one["normalised_mse"] for one in records(32, 16)])
    measured, error = found.mean(), found.std(ddof=1) / 4
    # 0.323 +- 0.005 measured, 0.290 predicted: 8 % allows for the heavy tails of T = y.
    assert abs(measured - np.mean(predicted)) < 0.08 * measured + 3 * error
    assert measured > error_sum(32)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [64, 128, 256, 512])
def test_check_10_in_sample_error(ratio):
    """Eigenvalues (sequential 10) and error of the in-sample layer (sequential 14)."""
    measured = in_sample_error(ratio, 5)
    squared, overlap = squared_weights(), closed_form(ratio)
    height = np.sqrt(2 * squared)
    noise = 1 / ratio
    eigenvalue = np.where(overlap > 0, height + noise / height, 2 * np.sqrt(noise))
    raw = 1 - np.sum(height * eigenvalue * overlap) + np.sum(eigenvalue**2) / 2
    assert measured == pytest.approx(raw, rel=0.08)


@pytest.mark.parametrize("ratio", [16, pytest.param(32, marks=pytest.mark.slow)])
def test_check_10_in_sample_is_worse_than_the_mean_label(ratio):
    """For n below p D the in-sample error (sequential 14) exceeds one."""
    assert in_sample_error(ratio, 3) > 1


@pytest.mark.slow
@pytest.mark.parametrize("decay", [1.0, 0.75])
def test_check_11_thresholds_grow_as_twice_the_decay(decay):
    """arXiv:2605.14567, Equation 2.10. Labels are mapped, as heavy tails delay strong features."""
    ratios = 16 * 2 ** (np.arange(10) / 2)
    measured = np.array(
        [mean(records(float(r), 3, 64, decay, "tanh"), "squared_overlap") for r in ratios]
    )
    crossing = crossings(ratios, measured)[1:14]
    rank = np.arange(2, 15)
    used = np.isfinite(crossing)
    assert used.sum() >= 8
    slope = np.polyfit(np.log(rank[used]), np.log(crossing[used]), 1)[0]
    assert slope == pytest.approx(2 * decay, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("decay", [1.0, 0.75])
def test_check_12_slope_of_the_error_is_that_of_the_sum(decay):
    """arXiv:2605.14567, Theorem 3.2, at finite size. Errors scatter by 8 % at n/D = 32, 1 % at 512."""
    seeds = {32: 12, 64: 8, 128: 4, 256: 3, 512: 3}
    ratios = np.array(list(seeds))
    measured = [
        mean(records(float(r), seeds[r], 64, decay), "normalised_mse") for r in ratios.tolist()
    ]
    closed = [error_sum(r, 64, decay) for r in ratios]
    finite = [
        system.predict(
            SequentialParameters(
                dimension=30, inputs="gaussian", features=64, decay=decay,
                label_map="identity", signs="random", samples=r * TOTAL,
            )
        )["normalised_mse"]
        for r in ratios.tolist()
    ]  # fmt: skip
    slopes = [np.polyfit(np.log(ratios), np.log(one), 1)[0] for one in (measured, closed, finite)]
    assert slopes[0] == pytest.approx(slopes[1], abs=0.05)
    assert slopes[0] == pytest.approx(slopes[2], abs=0.05)
    # The asymptote, -1 + 1/(2 decay), is not visible at these sizes.
    assert slopes[0] < -1 + 1 / (2 * decay) - 0.05
