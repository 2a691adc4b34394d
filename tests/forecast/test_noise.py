"""Noise of means: pooled variances, their weight, and correlation of replicates."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.forecast import LearningCurve
from solvable.forecast.noise import replicate_noise

SIZES = np.geomspace(100, 12_800, 8)
ERRORS = 0.05 + 2 * SIZES**-0.6


def draw(replicates, relative, seed, *, exponent=1.0, shared=0.0, names=False):
    rng = random_stream("noise", seed)
    spread = relative * ERRORS**exponent
    common = rng.standard_normal((replicates, 1)) * np.sqrt(shared)
    own = rng.standard_normal((replicates, SIZES.size)) * np.sqrt(1 - shared)
    errors = ERRORS + spread * (common + own)
    labels = tuple(np.repeat(np.arange(replicates), SIZES.size).astype(str))
    return LearningCurve(
        np.tile(SIZES, replicates), np.maximum(errors, 0).ravel(), labels if names else None
    )


@pytest.mark.parametrize(("replicates", "relative"), [(3, 0.02), (5, 0.1), (20, 0.05)])
def test_means_deviate_from_the_truth_as_told(replicates, relative):
    z = np.concatenate(
        [
            (curve.means - ERRORS) / np.sqrt(np.diag(replicate_noise(curve).covariance))
            for curve in (draw(replicates, relative, seed) for seed in range(150))
        ]
    )
    # The mean square of 1200 z-scores has a standard error of 0.04, slightly more with pooling. Few
    # replicates make it slightly larger than 1.
    assert np.mean(z**2) == pytest.approx(1.05, abs=0.17)


def test_few_replicates_lean_on_the_pooled_law():
    truth = (0.05 * ERRORS) ** 2
    pooled, raw = [], []
    for seed in range(40):
        curve = draw(3, 0.05, seed)
        pooled.append(np.log(replicate_noise(curve).variances / truth))
        raw.append(np.log(curve.variances / truth))
    # The logarithm of a chi-square with two degrees of freedom has a standard deviation of 1.28.
    assert np.std(pooled) < 0.5 * np.std(raw)


def test_many_replicates_speak_for_themselves():
    rng = random_stream("noise", "own")
    scale = np.where(np.arange(8) % 2 == 0, 0.2, 0.01) * ERRORS
    errors = ERRORS + scale * rng.standard_normal((60, 8))
    noise = replicate_noise(LearningCurve(np.tile(SIZES, 60), np.abs(errors).ravel()))
    # 59 degrees of freedom, and 2 of the law: within 3 standard errors of the relative deviation
    assert np.sqrt(noise.variances) == pytest.approx(scale, rel=0.4)


def test_the_exponent_of_the_noise_is_found():
    found = [
        np.mean([replicate_noise(draw(20, 0.03, seed, exponent=q)).exponent for seed in range(20)])
        for q in (0.5, 1.0)
    ]
    # Variance ~ error^(2 q); the weak prior at 1.5 shifts the exponent by about 0.1.
    assert found == pytest.approx([1.0, 2.0], abs=0.25)


def test_single_errors_leave_the_noise_unknown():
    noise = replicate_noise(LearningCurve(SIZES, ERRORS))
    assert not noise.known
    assert noise.correlation == 0
    np.testing.assert_array_equal(noise.variance_at(ERRORS), 0)
    assert (np.diag(noise.covariance) > 0).all()


def test_replicates_that_agree_exactly_are_known_noise():
    noise = replicate_noise(LearningCurve(np.tile(SIZES, 2), np.tile(ERRORS, 2)))
    assert noise.known
    assert np.sqrt(np.diag(noise.covariance)) == pytest.approx(1e-4 * ERRORS)


def test_a_size_without_replicates_takes_the_noise_of_the_others():
    curve = draw(10, 0.05, 0)
    samples = np.append(curve.samples, 25_600.0)
    noise = replicate_noise(LearningCurve(samples, np.append(curve.errors, 0.055)))
    assert np.sqrt(noise.variances[-1]) == pytest.approx(0.05 * 0.055, rel=0.4)


def test_shared_noise_of_replicates_is_measured_only_where_it_is():
    apart = [replicate_noise(draw(6, 0.05, seed, names=True)) for seed in range(40)]
    shared = [replicate_noise(draw(6, 0.05, seed, shared=0.7, names=True)) for seed in range(40)]
    assert np.mean([one.correlation for one in apart]) < 0.1
    assert np.mean([one.correlation for one in shared]) == pytest.approx(0.65, abs=0.15)
    assert replicate_noise(draw(6, 0.05, 0, shared=0.7)).correlation == 0
    one = shared[0].covariance
    assert np.linalg.eigvalsh(one).min() > 0
    off = one[0, 1] / np.sqrt(one[0, 0] * one[1, 1])
    assert off == pytest.approx(shared[0].correlation, abs=0.01)


def test_replicates_without_a_size_in_common_share_nothing():
    samples = np.repeat(SIZES, 2)
    names = tuple(str(k) for k in range(samples.size))
    errors = np.repeat(ERRORS, 2) * np.tile([0.99, 1.01], 8)
    noise = replicate_noise(LearningCurve(samples, errors, names))
    assert noise.correlation == 0
    np.testing.assert_array_equal(noise.covariance, np.diag(np.diag(noise.covariance)))
