"""Profile likelihoods, their calibration, and averaged tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, norm

from solvable.arrays import random_stream
from solvable.forecast import LearningCurve
from solvable.forecast.families import PowerLaw
from solvable.forecast.fitting import fit_family, relative_misfit
from solvable.forecast.intervals import (
    CHI_SQUARE_90,
    ConfidenceMixture,
    Profile,
    deviance_scale,
    profile_deviance,
)
from solvable.forecast.noise import replicate_noise

SIZES = np.geomspace(50, 6400, 8)
TARGET = 12_800.0


def curve_of(errors, relative, replicates=5, seed=0):
    rng = random_stream("profile", seed)
    scatter = 1 + relative * rng.standard_normal((replicates, errors.size))
    return LearningCurve(np.tile(SIZES, replicates), (errors * scatter).ravel())


def fitted(curve, resamples=200):
    return fit_family(
        PowerLaw(500.0), sizes=curve.sizes, means=curve.means, noise=replicate_noise(curve),
        resamples=resamples, rng=random_stream("profile", "draws"),
    )  # fmt: skip


def test_the_constant_is_the_quantile():
    assert pytest.approx(chi2(1).ppf(0.9), abs=1e-4) == CHI_SQUARE_90


def test_the_least_misfit_through_a_value_is_that_of_a_bounded_search():
    rng = random_stream("through", 0)
    family = PowerLaw(500.0)
    parameters = np.array([[0.3], [0.8]])
    shapes = family.shapes(parameters, SIZES)
    target = family.shapes(parameters, np.array([TARGET]))[:, 0]
    white = np.diag(rng.uniform(1, 3, 8))
    data = rng.uniform(0.1, 1, (1, 8))
    values = np.array([0.05, 0.3, 0.9])
    found = profile_deviance(shapes, target, data, white, values)
    for place, value in enumerate(values):

        def misfit(offset, k, value=value):
            curve = offset + (value - offset) / target[k] * shapes[k]
            return float(np.sum((white @ (data[0] - curve)) ** 2))

        least = min(
            minimize_scalar(misfit, bounds=(0, value), args=(k,), method="bounded").fun
            for k in range(2)
        )
        assert found[0, place] == pytest.approx(least, rel=1e-4)


def test_signed_roots_of_precise_data_are_those_of_error_propagation():
    truth = 0.1 + 0.9 * (SIZES / 500) ** -0.5
    one = fitted(curve_of(truth, 1e-3, replicates=40))
    profile = Profile(one, curve_of(truth, 1e-3, replicates=40).means, TARGET)
    # Delta method, with derivatives of the prediction by offset, amplitude and exponent
    exponent = one.grid.parameters[one.best.rows[0], 0]
    amplitude = one.best.amplitude[0]

    def slopes(n):
        shape = (n / 500) ** -exponent
        return np.stack([np.ones_like(shape), shape, -amplitude * np.log(n / 500) * shape], 1)

    information = (one.white @ slopes(SIZES)).T @ (one.white @ slopes(SIZES))
    at = slopes(np.array([TARGET]))[0]
    spread = np.sqrt(at @ np.linalg.solve(information, at))
    values = profile.best + spread * np.array([-2.0, -1.0, 1.0, 2.0])
    below = profile.confidence_below(values, 1.0)
    np.testing.assert_allclose(below, norm.cdf([-2, -1, 1, 2]), atol=0.02)


def test_the_boundary_of_the_offset_does_not_cut_an_interval():
    # The true offset is zero; with a positive fitted offset the interval must include zero offset.
    truth = (SIZES / 50) ** -0.5
    missed = 0
    for seed in range(20):
        curve = curve_of(truth, 0.05, seed=seed)
        one = fitted(curve, 100)
        profile = Profile(one, curve.means, TARGET)
        mixture = ConfidenceMixture([profile], [1.0], [deviance_scale(one, TARGET)])
        lower, upper = mixture.quantiles((0.05, 0.95))
        missed += not lower <= (TARGET / 50) ** -0.5 <= upper
    # With 10 % each, six or more misses of twenty have a probability of 1 %.
    assert missed <= 5


def test_calibration_is_near_one_where_the_noise_is_known():
    truth = 0.1 + 0.9 * (SIZES / 500) ** -0.5
    curve = curve_of(truth, 0.01, replicates=60)
    # With 400 draws the 90 % quantile of the deviance has a standard error of about 9 %.
    assert deviance_scale(fitted(curve, 400), TARGET) == pytest.approx(1, abs=0.17)


def test_few_replicates_widen_the_calibration():
    truth = 0.1 + 0.9 * (SIZES / 500) ** -0.5
    scales = [deviance_scale(fitted(curve_of(truth, 0.05, 2, seed)), TARGET) for seed in range(10)]
    assert np.mean(scales) > 1.02


def test_averaged_tails_lie_between_those_of_the_models():
    truth = 0.1 + 0.9 * (SIZES / 500) ** -0.5
    low, high = (curve_of(factor * truth, 0.02) for factor in (1, 1.3))
    profiles = [Profile(fitted(one), one.means, TARGET) for one in (low, high)]
    alone = [ConfidenceMixture([one], [1.0], [1.0]).quantiles((0.05, 0.95)) for one in profiles]
    both = ConfidenceMixture(profiles, [0.5, 0.5], [1.0, 1.0]).quantiles((0.05, 0.95))
    assert alone[0][0] < both[0] < alone[1][0]
    assert alone[0][1] < both[1] < alone[1][1]
    mostly = ConfidenceMixture(profiles, [0.999, 0.001], [1.0, 1.0]).quantiles((0.05, 0.95))
    assert mostly == pytest.approx(alone[0], rel=2e-3)


def test_a_new_measurement_adds_its_noise():
    truth = 0.1 + 0.9 * (SIZES / 500) ** -0.5
    curve = curve_of(truth, 0.05, replicates=40)
    noise = replicate_noise(curve)
    mixture = ConfidenceMixture([Profile(fitted(curve), curve.means, TARGET)], [1.0], [1.0])
    lower, upper = mixture.quantiles((0.05, 0.95))
    wide = mixture.measurement_quantiles((0.05, 0.95), noise, 0.0)
    centre = float(mixture.quantiles((0.5,))[0])
    own = 1.645 * np.sqrt(noise.variance_at(np.array([centre]))[0])
    assert wide[1] - wide[0] == pytest.approx(np.hypot(upper - lower, 2 * own), rel=0.05)


def test_the_misfit_is_what_noise_does_not_explain():
    rng = random_stream("misfit", 0)
    covariance = np.diag(np.full(400, 0.01**2))
    residual = 0.01 * rng.standard_normal(400)
    assert relative_misfit(residual, np.ones(400), covariance, 440) == 0
    beyond = residual + 0.03 * rng.standard_normal(400)
    # 400 deviations have a standard error of 3.5 % in total, and twice that in the difference.
    assert relative_misfit(beyond, np.ones(400), covariance, 400) == pytest.approx(0.03, rel=0.2)
