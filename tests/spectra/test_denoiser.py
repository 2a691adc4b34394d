"""Overlaps, denoiser and per-feature errors: sum rules, second forms, matrices."""

import numpy as np
import pytest
from scipy.integrate import quad

from solvable.spectra.denoiser import denoised, denoising_error, feature_errors, overlaps
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_ends, truncated_moments
from solvable.spectra.measures import discrete, power_law
from solvable.spectra.product_measure import marchenko_pastur

TARGETS = [
    marchenko_pastur(0.2),
    power_law(dimension=60, exponent=1.0),
    discrete(np.array([0.0, 1.0, 5.0]), np.array([0.6, 0.3, 0.1])),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("noise", [0.8, 1.5])
def test_overlaps_are_doubly_stochastic(target, noise):
    law = SpectralLaw(target, noise=noise)
    # Panels narrow enough for the peaks of the overlap.
    ends = np.tile(np.linspace(0, np.pi, 129), (len(law.edges), 1))
    component = np.repeat(np.arange(len(law.edges)), 128)
    points, weights = law.panels(component, ends[:, :-1].ravel(), ends[:, 1:].ravel())
    height = points.height[:, None]
    table = law.variance / (np.subtract.outer(points.u, target.nodes) ** 2 + height**2)
    # Away from the edges: a rule on a continuous target resolves only large heights.
    table = table[:, target.nodes >= 0]
    strengths = target.nodes[target.nodes >= 0]
    np.testing.assert_allclose(weights @ table, 1, rtol=1e-6)
    np.testing.assert_allclose((weights * points.x) @ table, strengths, rtol=1e-6, atol=1e-12)
    square = strengths**2 + law.variance
    np.testing.assert_allclose((weights * points.x**2) @ table, square, rtol=1e-6)
    some = np.flatnonzero(points.height > 0.3 * points.height.max())[::7]
    found = overlaps(law, points.x[some], target.nodes)
    np.testing.assert_allclose(found, table[some], rtol=1e-6)
    np.testing.assert_allclose(found @ target.node_weights, 1, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_denoiser_is_the_mean_of_the_target_under_the_overlaps(target):
    law = SpectralLaw(target, noise=0.9)
    x = np.concatenate([np.linspace(low, high, 9)[1:-1] for low, high in law.edges])
    mean = overlaps(law, x, target.nodes) @ (target.node_weights * target.nodes)
    np.testing.assert_allclose(denoised(law, x), mean, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_denoising_error_two_ways(target, noise):
    law = SpectralLaw(target, noise=noise)
    second = target.node_weights @ target.nodes**2
    other = second - law.integrate((2 * law.u - law.x) ** 2)
    assert denoising_error(law) == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threshold", [-0.4, 0.0, 0.9, 2.0, 8.0])
def test_feature_errors_sum_to_the_risk(target, threshold):
    law = SpectralLaw(target, noise=0.7)
    moments = truncated_moments(law, threshold)
    # R = Q + 4 delta² A - int_b (x² - b²), and x² - b² = (x - b)² + 2 b (x - b).
    second = target.node_weights @ target.nodes**2
    lost = moments.second[0] + 2 * threshold * moments.first[0]
    risk = second + 4 * law.variance * moments.slope[0] - lost
    assert target.node_weights @ feature_errors(law, threshold) == pytest.approx(risk, rel=1e-6)


@pytest.mark.parametrize("target", [*TARGETS, marchenko_pastur(1.0), marchenko_pastur(3.0)])
@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1, 0.3, 1.0, 2.0])
def test_feature_errors_sum_to_the_risk_at_any_noise(target, noise):
    """Down to overlaps far narrower than the quadrature of the law."""
    law = SpectralLaw(target, noise=noise)
    second = target.node_weights @ target.nodes**2
    for threshold in (0.0, 0.5 * noise, 2 * noise, 1.0, 3.0):
        moments = truncated_moments(law, threshold)
        lost = moments.second[0] + 2 * threshold * moments.first[0]
        risk = second + 4 * law.variance * moments.slope[0] - lost
        errors = feature_errors(law, threshold)
        # The rule of a continuous target ignores a cut inside it: an error of the share of one
        # node.
        assert target.node_weights @ errors == pytest.approx(risk, rel=1e-5)
        assert (errors > 0).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threshold", [-0.4, 0.3, 1.1])
def test_feature_errors_by_their_definition(target, threshold):
    """On 600 panels of equal angle, peaks included, without the moments of the overlap."""
    law = SpectralLaw(target, noise=0.3)
    cuts = tail_ends(law, threshold)
    ends = np.array([np.linspace(cut, np.pi, 601) for cut in cuts if cut < np.pi])
    component = np.repeat(np.flatnonzero(cuts < np.pi), 600)
    points, weights = law.panels(component, ends[:, :-1].ravel(), ends[:, 1:].ravel())
    places = law.intervals[:, 0] + np.diff(law.intervals)[:, 0] * 0.4
    strengths = np.concatenate([target.nodes[::7], places])
    distance = points.u[:, None] - strengths
    overlap = law.variance / (distance**2 + points.height[:, None] ** 2)
    rise = (points.x - threshold)[:, None]
    exact = strengths**2 + weights @ (rise * (rise - 2 * strengths) * overlap)
    np.testing.assert_allclose(feature_errors(law, threshold, strengths), exact, rtol=1e-7)


def test_own_error_of_an_isolated_spike():
    d, s, noise, b = 1_000_000, 4.0, 1.0, 1.2
    law = SpectralLaw(discrete(np.array([0.0, s]), np.array([1 - 1 / d, 1 / d])), noise=noise)
    x, overlap = s + noise**2 / s, 1 - noise**2 / s**2

    def bulk(power):
        # The bulk holds O(x, s) = 1 / (s² + 1 - s x) of the spike's direction at unit noise.
        return quad(
            lambda y: (y - b) ** power * np.sqrt(4 - y**2) / (2 * np.pi) / (s**2 + 1 - s * y),
            b,
            2,
        )[0]

    captured = (x - b) * overlap + bulk(1)
    energy = (x - b) ** 2 * overlap + bulk(2)
    # The bump has relative width d^(-1/2).
    assert feature_errors(law, b, s) == pytest.approx(s**2 - 2 * s * captured + energy, rel=1e-3)
    # With the part on other directions it is the isolated formula, factor 2 included (spectra 20).
    whole = s**2 - 2 * s * (x - b) * overlap + (x - b) ** 2
    ratio = noise**2 / s
    assert whole == pytest.approx((ratio - b) ** 2 + 2 * ratio * (s + ratio - b))


def test_matrices():
    rng = np.random.default_rng(11)
    d, noise, b, draws = 200, 0.8, 0.9, 6
    s = np.sort(rng.choice([0.0, 1.0, 4.0], size=d, p=[0.5, 0.3, 0.2]))
    law = SpectralLaw(s, noise=noise)
    soft, best, per_feature = [], [], []
    for _ in range(draws):
        z = rng.standard_normal((d, d))
        values, vectors = np.linalg.eigh(np.diag(s) + noise * (z + z.T) / np.sqrt(2 * d))
        thresholded = (vectors * np.maximum(values - b, 0)) @ vectors.T - np.diag(s)
        shrunk = (vectors * denoised(law, values)) @ vectors.T - np.diag(s)
        squares = np.sum(thresholded**2, axis=1)
        soft.append(squares.mean())
        best.append(np.sum(shrunk**2) / d)
        per_feature.append([squares[s == one].mean() for one in law.target.nodes])

    def close(seen, expected):
        seen = np.array(seen)
        # Four standard errors over the draws, plus an O(1/d) bias.
        error = 4 * seen.std(axis=0, ddof=1) / np.sqrt(draws) + 4 / d
        return bool(np.all(np.abs(seen.mean(axis=0) - expected) < error))

    errors = feature_errors(law, b)
    assert close(per_feature, errors)
    assert close(soft, law.target.node_weights @ errors)
    assert close(best, denoising_error(law))
    assert denoising_error(law) < law.target.node_weights @ errors
