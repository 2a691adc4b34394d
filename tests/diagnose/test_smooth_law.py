"""Smooth laws: SciPy's densities, exact derivatives, tails recovered, goodness of fit."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose.smooth_law import SmoothLaw, _terms, fit_smooth
from solvable.errors import InvalidData


def test_densities_are_those_of_scipy():
    from scipy.stats import betaprime, gengamma

    y = np.array([0.2, 1.0, 3.0])
    heavy = SmoothLaw(True, 2.0, 1.5, 0.7, 1.2, 0.0)
    # (y / m)^a has a beta prime law.
    x = (y / 2) ** 1.5
    np.testing.assert_allclose(heavy.density(y), betaprime(0.7, 1.2).pdf(x) * 1.5 * x / y)
    np.testing.assert_allclose(heavy.cdf(y), betaprime(0.7, 1.2).cdf(x))
    light = SmoothLaw(False, 2.0, 1.5, 0.7, np.inf, 0.0)
    other = gengamma(0.7, 1.5, scale=2.0)
    np.testing.assert_allclose(light.density(y), other.pdf(y))
    np.testing.assert_allclose(light.cdf(y), other.cdf(y))


@pytest.mark.parametrize("power_tail", [True, False])
def test_gradient_is_that_of_differences(power_tail):
    t = np.random.default_rng(0).normal(size=20)
    theta = np.array([0.3, 0.2, -0.4, 0.5])[: 3 + power_tail]
    _, gradient = _terms(theta, t, power_tail)
    for k in range(theta.size):
        step = np.eye(theta.size)[k] * 1e-6
        above, below = (_terms(theta + s * step, t, power_tail)[0].sum() for s in (1, -1))
        assert gradient[k] == pytest.approx((above - below) / 2e-6, rel=1e-5)


def test_likelihood_is_the_sum_of_log_densities_and_draws_follow_the_law():
    law = SmoothLaw(True, 3.0, 2.0, 1.0, 0.8, 0.0)
    values = law.draw(4000, np.random.default_rng(1))
    found = fit_smooth(values, power_tail=True)
    assert found.log_likelihood == pytest.approx(np.log(found.density(values)).sum())
    assert found.log_likelihood >= np.log(law.density(values)).sum() - 1e-3
    # The exponent of squares is 1.8; its error with 4000 values is about 0.03.
    assert 1 + found.sharpness * found.tail / 2 == pytest.approx(1.8, abs=0.12)


def test_families_are_separated():
    rng = np.random.default_rng(2)
    heavy = SmoothLaw(True, 1.0, 3.0, 0.5, 0.5, 0.0).draw(600, rng)
    light = rng.lognormal(size=600)
    gains = [
        fit_smooth(v, power_tail=True).log_likelihood
        - fit_smooth(v, power_tail=False).log_likelihood
        for v in (heavy, light)
    ]
    # One more parameter costs half the logarithm of 600: 3.2.
    assert gains[0] > 10
    assert gains[1] < 3.2


def test_goodness_of_fit_says_no_to_two_clusters():
    rng = np.random.default_rng(3)
    values = np.r_[rng.uniform(1, 1.1, 150), rng.uniform(9, 10, 150)]
    assert fit_smooth(values, power_tail=False).p_value(values) < 0.05
    fine = rng.gamma(2.0, size=200)
    assert fit_smooth(fine, power_tail=False).p_value(fine, draws=19) > 0.05


def test_power_law_lowered_by_a_threshold_keeps_its_exponent_and_the_threshold():
    strengths = np.random.default_rng(5).random(4000) ** -0.8
    found = fit_smooth(strengths[strengths > 2] - 2, power_tail=True, shifted=True)
    assert (found.sharpness, found.body, found.n_parameters) == pytest.approx((1.0, 1.0, 2))
    # 1,680 values: errors of about 8 % of the exponent and 10 % of the threshold.
    assert found.tail == pytest.approx(1 / 0.8, rel=0.2)
    assert found.scale == pytest.approx(2.0, rel=0.25)


def test_unit_does_not_matter():
    values = np.random.default_rng(4).gamma(3.0, size=100)
    one = fit_smooth(values, power_tail=True)
    other = fit_smooth(1e-8 * values, power_tail=True)
    assert other.log_likelihood == pytest.approx(one.log_likelihood + 100 * np.log(1e8), abs=1e-3)


@pytest.mark.parametrize("values", [np.ones(9), np.zeros(9), np.arange(3.0), np.array([])])
def test_bad_values_are_refused(values):
    with pytest.raises(InvalidData, match="allowed"):
        fit_smooth(values, power_tail=True)
