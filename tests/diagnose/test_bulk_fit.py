"""Bulk and spikes of rectangular matrices: law, edge, rate of false alarms, coverage, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose.bulk_fit import fit_bulk
from solvable.diagnose.noise import (
    RectangularNoise,
    SymmetricNoise,
    debias,
    noise_edge,
    noise_singular_values,
)
from solvable.errors import InvalidData, InvalidParameter


def spiked(rng, shape, strengths):
    """Noise of variance 1/q plus orthogonal signals; with the planted directions."""
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T, left, right


@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.9, 1.0])
def test_law_has_unit_mass_and_the_moments_of_marchenko_and_pastur(ratio):
    from scipy.integrate import quad

    law = RectangularNoise(ratio)
    low, high = law.edges
    for power, expected in ((0, 1.0), (2, 1.0), (4, 1 + ratio)):
        value, _ = quad(
            lambda x, k=power: float(law.density(np.array([x]))[0]) * x**k, low, high, limit=200
        )
        assert value == pytest.approx(expected, abs=1e-6)
    middle = (low + high) / 2
    mass, _ = quad(lambda x: float(law.density(np.array([x]))[0]), low, middle, limit=200)
    assert law.cdf(np.array([middle]))[0] == pytest.approx(mass, abs=1e-6)
    shares = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(law.cdf(law.quantile(shares)), shares, atol=1e-9)


@pytest.mark.parametrize("law", [RectangularNoise(0.05), RectangularNoise(1.0), SymmetricNoise()])
def test_a_signal_shows_where_its_strength_is_read(law):
    strengths = law.threshold * np.array([1.001, 1.5, 20.0])
    places = np.array([law.place(strength) for strength in strengths])
    assert (places > law.edges[1]).all()
    # The place of an outlier has slope zero at the threshold.
    np.testing.assert_allclose(law.strength(places), strengths, rtol=1e-9)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_moments_beyond_the_edge_are_those_of_the_density(ratio):
    from scipy.integrate import quad

    law, x = RectangularNoise(ratio), np.array([2.4])
    first, second = law.moments_beyond(x)
    for value, power in ((first[0], 1), (second[0], 2)):
        expected, _ = quad(
            lambda y, k=power: float(law.density(np.array([y]))[0]) / (x[0] ** 2 - y**2) ** k,
            *law.edges,
        )
        assert value == pytest.approx(expected, rel=1e-5)
    cross, _ = quad(
        lambda y: y**2 * float(law.density(np.array([y]))[0]) / (x[0] ** 2 - y**2) ** 2, *law.edges
    )
    short, long_, mixed = (float(one[0]) for one in law.fluctuations_beyond(x))
    assert mixed == pytest.approx(cross, rel=1e-5)
    assert short == pytest.approx(second[0] - first[0] ** 2, rel=1e-9)
    # The longer side has a share 1 - c of its eigenvalues at zero.
    zeros = (1 - ratio) / x[0] ** 2
    square = ratio * second[0] + zeros / x[0] ** 2
    assert long_ == pytest.approx(square - (ratio * first[0] + zeros) ** 2, rel=1e-9)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_very_strong_signals_keep_their_errors(ratio):
    strengths = 10.0 ** np.arange(1, 9)
    places = np.sqrt((1 + strengths**2) * (ratio + strengths**2)) / strengths
    found = debias(places, noise=1.0, n_columns=400, ratio=ratio)
    np.testing.assert_allclose(found.strengths, strengths, rtol=1e-12)
    # Far above the noise an outlier moves by the one entry of the noise along the signal.
    np.testing.assert_allclose(found.standard_errors[2:], 400**-0.5, rtol=1e-4)


def test_edge_holds_at_its_probability_and_narrows_as_the_power_two_thirds():
    rng = np.random.default_rng(0)
    tops = np.array([noise_singular_values(60, 150, rng)[-1] for _ in range(1500)])
    for probability in (0.5, 0.9, 0.99):
        seen = (tops < noise_edge(60, 150, probability=probability)).mean()
        # Three standard errors, and the error of the asymptotic law at this size (below a percent).
        error = 3 * np.sqrt(probability * (1 - probability) / tops.size) + 0.01
        assert abs(seen - probability) < error
    sizes = np.array([10_000, 1_000_000])
    margins = [noise_edge(n, 2 * n) / (n**0.5 + (2 * n) ** 0.5) - 1 for n in sizes]
    slope = np.diff(np.log(margins))[0] / np.diff(np.log(sizes))[0]
    assert slope == pytest.approx(-2 / 3, abs=0.01)


def test_bidiagonal_noise_has_the_spectrum_of_a_gaussian_matrix():
    rng = np.random.default_rng(1)
    fast = np.array([noise_singular_values(40, 70, rng) for _ in range(300)])
    plain = np.array(
        [np.linalg.svd(rng.standard_normal((40, 70)), compute_uv=False)[::-1] for _ in range(300)]
    )
    error = np.sqrt((fast.var(axis=0) + plain.var(axis=0)) / 300)
    assert (np.abs(fast.mean(axis=0) - plain.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize("shape", [(100, 100), (100, 400)])
def test_pure_noise_has_outliers_at_the_nominal_rate_only(shape):
    rng = np.random.default_rng(2)
    fits = [fit_bulk(noise_singular_values(*shape, rng), shape) for _ in range(60)]
    # 1 % nominal: of 60 at most 4 with probability 0.9996.
    assert sum(found.n_outliers > 0 for found in fits) <= 4
    # p-values are uniform: 5 % below 0.05, of 60 at most 9 with probability 0.999.
    assert sum(found.p_value < 0.05 for found in fits) <= 9
    assert sum(found.shrinkage > 0 for found in fits) <= 4
    noise = np.array([found.noise for found in fits]) / shape[1] ** 0.5
    # A bias of order 1/p remains: the finite-size correction of the density.
    assert noise.mean() == pytest.approx(1, abs=1 / shape[0])


@pytest.mark.parametrize("excess", [pytest.param(1.5, marks=pytest.mark.slow), 3.0])
def test_planted_strengths_are_within_their_intervals(excess):
    rng, shape = np.random.default_rng(3), (100, 200)
    strength = excess * (shape[0] / shape[1]) ** 0.25
    inside, found_all, draws = 0, 0, 60
    for _ in range(draws):
        W, _, _ = spiked(rng, shape, [strength])
        found = fit_bulk(np.linalg.svd(W, compute_uv=False), shape)
        found_all += found.n_outliers >= 1
        if found.n_outliers:
            low, high = found.spikes.intervals(floor=found.threshold)[0]
            inside += low <= strength <= high
    # At 1.5 times the threshold nearly all draws are beyond the margin at this size.
    assert found_all >= 0.9 * draws
    # 95 % nominal: three standard errors of sixty draws are 8.4 %.
    assert inside / found_all > 0.866


def test_overlaps_are_those_of_the_singular_vectors():
    rng, shape = np.random.default_rng(4), (200, 500)
    seen, said = [], []
    for _ in range(12):
        W, left, right = spiked(rng, shape, [3.0, 1.5])
        U, y, Vt = np.linalg.svd(W, full_matrices=False)
        found = fit_bulk(y, shape)
        assert found.n_outliers == 2
        seen.append([(U[:, i] @ left[:, i]) ** 2 for i in range(2)])
        seen[-1] += [(Vt[i] @ right[:, i]) ** 2 for i in range(2)]
        said.append([*found.spikes.short_overlap, *found.spikes.long_overlap])
    # Overlaps fluctuate by about 0.03 here; twelve draws.
    np.testing.assert_allclose(np.mean(seen, axis=0), np.mean(said, axis=0), atol=0.03)


@pytest.mark.parametrize(("shift", "zeros"), [(0.3, True), (0.8, True), (1.3, True)])
def test_shrinkage_is_found_and_undone(shift, zeros):
    W, _, _ = spiked(np.random.default_rng(5), (300, 375), [4.0])
    y = np.clip(np.linalg.svd(W, compute_uv=False) - shift, 0, None)
    found = fit_bulk(y, W.shape)
    assert (found.zeros > 0) == zeros
    assert found.p_value > 0.05
    # The remaining bulk has 300 (1 - F(b)) values: at the largest shift fifty, near its edge.
    assert found.shrinkage == pytest.approx(shift, abs=0.1)
    low, high = found.spikes.intervals()[0]
    assert low - 0.1 < 4.0 < high + 0.1


@pytest.mark.parametrize("shift", [0.0, 0.9])
def test_intervals_cover_noise_and_shrinkage(shift):
    rng, shape, draws = np.random.default_rng(7), (150, 250), 40
    inside = np.zeros(2)
    for _ in range(draws):
        W, _, _ = spiked(rng, shape, [4.0, 2.0])
        y = np.clip(np.linalg.svd(W, compute_uv=False) - shift, 0, None)
        found = fit_bulk(y, shape)
        inside += [
            abs(found.noise - 1) < 1.96 * found.noise_error,
            abs(found.shrinkage - shift) <= 1.96 * found.shrinkage_error,
        ]
    # 95 % nominal: of 40 at least 33 with probability 0.9997.
    assert (inside >= 33).all()


@pytest.mark.parametrize("factor", [1e-6, 1e5])
def test_fit_follows_the_unit_of_the_matrix(factor):
    W, _, _ = spiked(np.random.default_rng(6), (80, 120), [3.0])
    y = np.linalg.svd(W, compute_uv=False)
    one, other = fit_bulk(y, W.shape), fit_bulk(factor * y, W.shape[::-1])
    assert other.noise / factor == pytest.approx(one.noise, rel=1e-4)
    np.testing.assert_allclose(other.spikes.strengths / factor, one.spikes.strengths, rtol=1e-4)


def test_a_power_law_is_no_bulk():
    y = np.arange(1, 301) ** -0.7
    try:
        found = fit_bulk(y, (300, 300))
    except InvalidData:
        return
    assert found.p_value < 0.05


@pytest.mark.parametrize(
    ("values", "shape", "words"),
    [
        (np.ones(10), (10, 20), "at least 30"),
        (np.arange(40.0), (50, 60), "pass all"),
        (np.zeros(40), (40, 60), "all 40 singular values are 0"),
        (np.full(40, np.nan), (40, 60), "not finite"),
        (np.arange(40.0) - 5, (40, 60), "from -5"),
        (np.r_[np.zeros(60), np.ones(20)], (80, 90), "no bulk"),
    ],
)
def test_what_cannot_be_fitted_is_refused(values, shape, words):
    with pytest.raises(InvalidData, match=words):
        fit_bulk(values, shape)


def test_arguments_are_checked():
    with pytest.raises(InvalidParameter, match="ratio"):
        RectangularNoise(1.5)
    with pytest.raises(InvalidParameter, match="two rows"):
        noise_edge(1, 5)
    with pytest.raises(InvalidParameter, match="not beyond"):
        debias(np.array([1.0]), noise=1.0, n_columns=100, ratio=0.5)
