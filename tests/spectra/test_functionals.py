"""Truncated moments of the spectral law: closed forms, finite differences, matrices."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from solvable.errors import InvalidData
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import (
    degrees_of_freedom,
    truncated_moments,
    truncated_moments_near,
)
from solvable.spectra.measures import power_law
from solvable.spectra.product_measure import marchenko_pastur


def test_semicircle_at_zero():
    for noise in (0.3, 1.0, 5.0):
        found = truncated_moments(SpectralLaw([0.0], noise=noise), 0.0)
        assert found.second[0] == pytest.approx(noise**2 / 2, rel=1e-10)
        assert found.slope[0] == pytest.approx(0.25, abs=1e-10)
        assert found.mass[0] == pytest.approx(0.5, abs=1e-10)


def test_semicircle_cut_anywhere():
    thresholds = np.array([-2.5, -1.999, -1.0, 0.4, 1.7, 1.9999, 2.5])
    found = truncated_moments(SpectralLaw([0.0], noise=1.0), thresholds)
    for k, b in enumerate(thresholds):
        for power, values in enumerate((found.mass, found.first, found.second)):
            exact, _ = quad(
                lambda a, b=b, power=power: (
                    (2 * np.cos(a) - b) ** power * 2 / np.pi * np.sin(a) ** 2
                ),
                0,
                np.arccos(np.clip(b / 2, -1, 1)),
                epsabs=1e-13,
            )
            assert values[k] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("target", "thresholds"),
    [
        (marchenko_pastur(0.2), [-1.0, 0.0, 0.7, 2.0, 4.0]),
        (marchenko_pastur(1.0), [0.0, 1.0, 4.0]),
        (power_law(dimension=60, exponent=1.0), [-0.5, 0.5, 1.4, 3.0, 6.0]),
    ],
)
@pytest.mark.parametrize("noise", [0.3, 1.0, 2.0])
def test_derivatives_against_differences(target, thresholds, noise):
    thresholds = np.array(thresholds)
    step = 1e-4
    here = truncated_moments(SpectralLaw(target, noise=noise), thresholds)
    up, down = (
        truncated_moments(SpectralLaw(target, noise=noise + sign * step), thresholds).second
        for sign in (1, -1)
    )
    np.testing.assert_allclose(here.noise_derivative, (up - down) / (2 * step), atol=1e-6)
    law = SpectralLaw(target, noise=noise)
    up, down = (truncated_moments(law, thresholds + sign * step).second for sign in (1, -1))
    # dJ/db = -2 int_b (x - b) mu(dx)
    np.testing.assert_allclose(-2 * here.first, (up - down) / (2 * step), atol=1e-6)


def test_eigenvalues_of_a_matrix():
    rng = np.random.default_rng(7)
    d, noise, draws = 300, 0.8, 6
    spectrum = power_law(dimension=d, exponent=1.0)
    thresholds = np.array([-0.5, 0.5, 1.5, 3.0])
    seen = np.empty((draws, 3, thresholds.size))
    for k in range(draws):
        z = rng.standard_normal((d, d))
        matrix = np.diag(spectrum.nodes) + noise * (z + z.T) / np.sqrt(2 * d)
        rise = np.linalg.eigvalsh(matrix)[:, None] - thresholds
        above = rise > 0
        seen[k] = (above.mean(0), (above * rise).mean(0), (above * rise**2).mean(0))
    found = truncated_moments(SpectralLaw(spectrum, noise=noise), thresholds)
    expected = np.stack([found.mass, found.first, found.second])
    # Four standard errors over the draws, plus the O(1/d) bias of a linear statistic.
    error = 4 * seen.std(axis=0, ddof=1) / np.sqrt(draws) + 1.5 / d
    assert (np.abs(seen.mean(axis=0) - expected) < error).all()


def test_degrees_of_freedom_are_the_divergence():
    """Sum of finite differences over an orthonormal basis of symmetric matrices (spectra 24)."""
    d, b, step = 7, 0.3, 1e-5
    root = np.random.default_rng(3).standard_normal((d, d))
    matrix = (root + root.T) / 2

    def threshold(m):
        values, vectors = np.linalg.eigh(m)
        return (vectors * np.maximum(values - b, 0)) @ vectors.T

    divergence = 0.0
    for i in range(d):
        for j in range(i + 1):
            base = np.zeros((d, d))
            base[i, j] = base[j, i] = 1 if i == j else 0.5**0.5
            change = threshold(matrix + step * base) - threshold(matrix - step * base)
            divergence += (change * base).sum() / (2 * step)
    values = np.linalg.eigvalsh(matrix)[::-1]
    found = degrees_of_freedom(values, values[values > b] - b)
    assert found == pytest.approx(divergence, rel=1e-5)


def test_thresholds_together_are_as_one_by_one():
    law = SpectralLaw(marchenko_pastur(0.1), noise=0.2)
    thresholds = np.linspace(-1, 6, 23)
    together = truncated_moments(law, thresholds)
    alone = np.array([truncated_moments(law, b).second[0] for b in thresholds])
    np.testing.assert_allclose(together.second, alone, rtol=1e-13, atol=1e-15)
    assert (np.diff(together.mass) <= 1e-12).all()


def test_threshold_must_be_finite():
    with pytest.raises(InvalidData, match="finite"):
        truncated_moments(SpectralLaw([0.0], noise=1.0), np.nan)


@pytest.mark.parametrize(
    "target",
    [
        power_law(dimension=200, exponent=0.6),
        power_law(dimension=100_000, exponent=1.0),
        marchenko_pastur(0.9),
        marchenko_pastur(1.0),
    ],
)
def test_four_decades_of_noise(target):
    for noise in np.geomspace(1e-3, 30, 8):
        law = SpectralLaw(target, noise=noise)
        assert law.weights.sum() == pytest.approx(1, abs=1e-9)
        assert np.isfinite(truncated_moments(law, [0.0, noise, 1.0]).slope).all()


@pytest.mark.parametrize(("ratio", "risk"), [(0.3, 1.0326), (0.5, 0.3469)])
def test_published_curve_of_a_quadratic_network(ratio, risk):
    target, width, label_noise, penalty = marchenko_pastur(0.2), 0.2, 0.5, 0.02

    def residuals(point):
        noise, b = np.exp(point)
        moments = truncated_moments(SpectralLaw(target, noise=noise), b)
        lost = moments.second[0] + 2 * b * moments.first[0]
        error = 1 + width + 4 * noise**2 * moments.slope[0] - lost
        return (
            (error + label_noise / 2) / (2 * noise**2) - ratio,
            4 * b * (ratio - moments.slope[0]) / penalty - 1,
        )

    start = np.sqrt((risk + label_noise / 2) / (2 * ratio))
    # The published error fixes delta; the second equation alone then gives b.
    inner = brentq(lambda log_b: residuals((np.log(start), log_b))[1], -12, 0)
    # The error is given to 4 digits, which the condition on the sample ratio repeats.
    assert residuals((np.log(start), inner))[0] == pytest.approx(0, abs=1e-3 * ratio)


@pytest.mark.parametrize(
    "target", [marchenko_pastur(0.2), power_law(dimension=60, exponent=1.0), np.array([-2.0, 1.0])]
)
def test_moments_near_a_threshold_are_exact_at_their_own(target):
    law = SpectralLaw(target, noise=0.4)
    for low, high in law.edges:
        anchor = None
        for b in low + (high - low) * np.array([0.5, 0.501, 0.5010001, 0.02]):
            found, anchor = truncated_moments_near(law, float(b), anchor)
            exact = truncated_moments(law, found.threshold)
            np.testing.assert_allclose(found.second, exact.second, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(found.slope, exact.slope, rtol=1e-11, atol=1e-14)
            assert low < found.threshold[0] < high
        # A second call from there is nearer by the square.
        first, anchor = truncated_moments_near(law, float((low + high) / 2), None)
        second, _ = truncated_moments_near(law, float((low + high) / 2), anchor)
        away = np.abs([m.threshold[0] - (low + high) / 2 for m in (first, second)])
        assert away[1] <= 20 * away[0] ** 2 / (high - low) + 1e-15
    outside, anchor = truncated_moments_near(law, float(law.edges[-1, 1]) + 0.1)
    assert anchor is None
    assert outside.mass[0] == 0
