"""Decay of strengths: coverage, refusal; errors of pruning and denoising against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose.bulk_fit import fit_bulk, fit_symmetric
from solvable.diagnose.strengths import fit_decay, shrinkage_errors
from solvable.errors import InvalidData


def test_intervals_cover_the_decay():
    rng, inside = np.random.default_rng(0), 0
    for _ in range(200):
        s = rng.random(20) ** -0.7
        found = fit_decay(s, 0.001 * s)
        inside += found.low <= 0.7 <= found.high
    # 95 % nominal: of 200 at least 180 with probability 0.999.
    assert inside >= 180


def test_p_values_are_uniform_for_a_power_law_and_small_for_equal_strengths():
    rng = np.random.default_rng(1)
    p_values = [fit_decay(rng.random(30) ** -1.0, np.zeros(30)).p_value for _ in range(60)]
    # 10 % nominal: of 60 at most 13 with probability 0.998.
    assert sum(one < 0.1 for one in p_values) <= 13
    flat = 1 + 0.01 * rng.random(40)
    flat[-1] = 0.1
    assert fit_decay(flat, np.zeros(40)).p_value < 0.05


def test_strengths_behind_a_matrix_of_both_noise_and_threshold_keep_their_decay():
    rng, d, decay = np.random.default_rng(2), 400, 1.0
    Z = rng.standard_normal((d, d))
    M = (Z + Z.T) / np.sqrt(2 * d) + np.diag(20 * np.arange(1, d + 1) ** -decay)
    fit = fit_symmetric(np.clip(np.linalg.eigvalsh(M) - 0.5, 0, None))
    found = fit_decay(fit.spikes.strengths, fit.spikes.standard_errors)
    assert found.low < decay < found.high
    assert found.amplitude == pytest.approx(20, rel=0.25)
    # The part below the observed strengths is a part of the tail of the sum.
    exact = float((400 * np.arange(found.n + 1, d + 1) ** -2.0).sum())
    assert found.undetected(d) == pytest.approx(exact, rel=0.5)


@pytest.mark.parametrize("shape", [(150, 300), (200, 200)])
def test_errors_of_a_rectangular_matrix_are_those_of_simulation(shape):
    rng, (p, q) = np.random.default_rng(3), shape
    strengths = np.array([4.0, 2.5])
    seen, said = [], []
    for _ in range(10):
        left = np.linalg.qr(rng.standard_normal((p, 2)))[0]
        right = np.linalg.qr(rng.standard_normal((q, 2)))[0]
        S = (left * strengths) @ right.T
        U, y, Vt = np.linalg.svd(rng.standard_normal(shape) / q**0.5 + S, full_matrices=False)
        fit = fit_bulk(y, shape)
        assert fit.n_outliers == 2
        spikes = fit.spikes
        c = np.sqrt(spikes.short_overlap * spikes.long_overlap)
        found = shrinkage_errors(y, 2, spikes.strengths, c, edge=fit.edge)
        best = spikes.strengths * c
        # Gavish and Donoho's closed form of the best size, in units of the noise   (spectra 14).
        x, ratio = y[:2] / fit.noise, p / q
        closed = fit.noise / x * np.sqrt((x**2 - 1 - ratio) ** 2 - 4 * ratio)
        np.testing.assert_allclose(best, closed, rtol=1e-9)
        kinds = (
            y,
            np.r_[y[:2], 0 * y[2:]],
            np.r_[y[:2] - fit.edge, 0 * y[2:]],
            np.r_[best, 0 * y[2:]],
        )
        seen.append(
            [((U * kind) @ Vt - S).ravel() @ ((U * kind) @ Vt - S).ravel() for kind in kinds]
        )
        said.append(
            [found.bulk + found.shrinkage + found.rotation, found.cut, found.edge, found.denoised]
        )
    # Ten draws with fluctuations of about 8 % (less for the bulk).
    np.testing.assert_allclose(np.mean(said, axis=0), np.mean(seen, axis=0), rtol=0.08)
    assert (np.diff(np.mean(seen, axis=0)[[0, 1, 3]]) < 0).all()


def test_error_of_a_feature_is_equation_six_with_its_factor_two():
    s, delta, b = 3.0, 1.0, 0.4
    y = s + delta**2 / s - b
    found = shrinkage_errors(
        np.array([0.0, y]), 1, np.array([s]), np.array([1 - delta**2 / s**2]), edge=2 - b
    )
    expected = (delta**2 / s - b) ** 2 + 2 * delta**2 / s * (s + delta**2 / s - b)
    assert found.cut == pytest.approx(expected)
    assert found.cut < found.edge


@pytest.mark.parametrize("strengths", [np.ones(3), np.ones(20), np.r_[np.zeros(10), 1.0]])
def test_what_has_no_decay_is_refused(strengths):
    with pytest.raises(InvalidData, match="strengths"):
        fit_decay(strengths, np.zeros(strengths.size))
