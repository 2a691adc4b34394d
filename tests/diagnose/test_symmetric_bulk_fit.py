"""Symmetric matrices: law of noise, coverage of noise, shrinkage and strengths, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose.bulk_fit import fit_symmetric
from solvable.diagnose.noise import SymmetricNoise
from solvable.errors import InvalidData


def noise_matrix(rng, d):
    Z = rng.standard_normal((d, d))
    return (Z + Z.T) / np.sqrt(2 * d)


def test_law_is_that_of_simulated_matrices():
    law, rng = SymmetricNoise(), np.random.default_rng(0)
    fast = np.array([law.draw(30, rng) for _ in range(300)])
    plain = np.array([np.linalg.eigvalsh(noise_matrix(rng, 30)) for _ in range(300)])
    error = np.sqrt((fast.var(axis=0) + plain.var(axis=0)) / 300)
    assert (np.abs(fast.mean(axis=0) - plain.mean(axis=0)) < 4 * error).all()
    x = np.linspace(-1.9, 1.9, 9)
    step = 1e-5
    slope = (law.cdf(x + step) - law.cdf(x - step)) / (2 * step)
    np.testing.assert_allclose(slope, law.density(x), rtol=1e-6)
    # Linear interpolation of a table: error of an eighth of the squared step.
    np.testing.assert_allclose(law.cdf(law.quantile(np.array([0.1, 0.7]))), [0.1, 0.7], atol=1e-7)


def test_outliers_have_the_place_spread_and_overlap_of_the_law():
    rng, d, s = np.random.default_rng(1), 100, 2.0
    places, overlaps = [], []
    for _ in range(200):
        M = noise_matrix(rng, d)
        M[0, 0] += s
        x, V = np.linalg.eigh(M)
        places.append(x[-1])
        overlaps.append(V[0, -1] ** 2)
    law = SymmetricNoise()
    spread = float(law.spread(np.array([s + 1 / s]), d)[0])
    # Standard errors of 200 draws; corrections of order 1 / d.
    assert np.mean(places) == pytest.approx(s + 1 / s, abs=3 * spread / 14 + 1 / d)
    assert np.std(places) == pytest.approx(spread, rel=0.15)
    assert np.mean(overlaps) == pytest.approx(1 - 1 / s**2, abs=0.02)


@pytest.mark.parametrize("shift", [0.3, pytest.param(1.3, marks=pytest.mark.slow)])
def test_intervals_cover_noise_shrinkage_and_strengths(shift):
    rng, d, draws = np.random.default_rng(2), 200, 40
    truth, inside, found = np.array([3.0, 2.0]), np.zeros(4), []
    for _ in range(draws):
        M = noise_matrix(rng, d)
        M[[0, 1], [0, 1]] += truth
        fit = fit_symmetric(np.clip(np.linalg.eigvalsh(M) - shift, 0, None))
        found.append(fit)
        intervals = fit.spikes.intervals()
        inside += [
            abs(fit.noise - 1) < 1.96 * fit.noise_error,
            abs(fit.shrinkage - shift) < 1.96 * fit.shrinkage_error,
            *((intervals[:2, 0] <= truth) & (truth <= intervals[:2, 1])),
        ]
    assert all(one.n_outliers >= 2 for one in found)
    # 1 % nominal: of 40 at most 3 with probability 0.9993.
    assert sum(one.n_outliers > 2 for one in found) <= 3
    # 95 % nominal: of 40 at least 33 with probability 0.9997.
    assert (inside >= 33).all()
    # Uniform p-values: 5 % below 0.05, of 40 at most 7 with probability 0.999.
    assert sum(one.p_value < 0.05 for one in found) <= 7


def test_both_signs_have_a_centre_and_spikes_on_either_side():
    M = noise_matrix(np.random.default_rng(3), 200)
    M[[0, 1], [0, 1]] += [4.0, -3.0]
    fit = fit_symmetric(np.linalg.eigvalsh(5 * (M + 0.7 * np.eye(200))))
    assert fit.symmetric
    assert fit.noise == pytest.approx(5, rel=0.02)
    assert -fit.shrinkage == pytest.approx(3.5, abs=0.15)
    # Four standard deviations of an outlier.
    np.testing.assert_allclose(fit.spikes.strengths, [20, -15], atol=4 * 5 * np.sqrt(2 / 200))


def test_noise_of_both_signs_has_no_outliers_beyond_the_level():
    rng = np.random.default_rng(4)
    fits = [fit_symmetric(SymmetricNoise().draw(150, rng), semidefinite=False) for _ in range(40)]
    # 1 % at either end: of 40 at most 4 with probability 0.999.
    assert sum(one.n_outliers > 0 for one in fits) <= 4


def test_a_covariance_matrix_of_full_rank_is_refused():
    X = np.random.default_rng(5).standard_normal((200, 100))
    with pytest.raises(InvalidData, match="no eigenvalue is zero"):
        fit_symmetric(np.linalg.eigvalsh(X.T @ X / 200))


def test_a_projection_is_no_noise():
    with pytest.raises(InvalidData):
        fit_symmetric(np.r_[np.zeros(100), np.ones(100)])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(9.0), "at least 30"),
        (np.full(50, np.inf), "not finite"),
        (np.ones(50), "all 50"),
        (np.r_[np.zeros(95), 1.0, 2, 3, 4, 5], "no bulk"),
    ],
)
def test_what_cannot_be_fitted_is_refused(values, words):
    with pytest.raises(InvalidData, match=words):
        fit_symmetric(values)


def test_arguments_are_checked():
    with pytest.raises(InvalidData, match="below zero"):
        fit_symmetric(np.arange(50.0) - 5, semidefinite=True)
