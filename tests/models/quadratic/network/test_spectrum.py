"""Test error, noise and denoising estimated from training data, against the true target."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.models.quadratic.network.amp import solve_amp
from solvable.models.quadratic.network.learner import QuadraticNetRegressor
from solvable.models.quadratic.network.sensing import SampleSensing
from solvable.models.quadratic.network.solvers import solve_fista
from solvable.models.quadratic.network.spectrum import spectral_estimate
from solvable.spectra.denoiser import denoising_error
from solvable.spectra.free_convolution import SpectralLaw


def problem(d, n, seed, noise=0.5):
    rng = random_stream(seed, "gcv")
    strengths = np.arange(1, d + 1) ** -1.0
    strengths *= np.sqrt(d / np.sum(strengths**2))
    sensing = SampleSensing(ArraySource(rng.standard_normal((n, d))))
    labels = sensing.forward(np.diag(np.sqrt(strengths)))
    return sensing, labels + np.sqrt(noise) * rng.standard_normal(n), np.diag(strengths)


def test_identities_of_the_estimate():
    sensing, labels, _ = problem(40, 1600, 0)
    found = solve_fista(sensing, labels, 1.0, tolerance=1e-9)
    estimate = spectral_estimate(found, 1.0)
    train = np.mean(found.residual**2)
    factor = (1 - estimate.degrees_of_freedom / 1600) ** 2
    assert estimate.gcv_score == pytest.approx(train / factor, rel=1e-9)
    # M is the fit plus its dual, and thresholding M returns the fit.
    noisy = (estimate.vectors * estimate.eigenvalues) @ estimate.vectors.T
    np.testing.assert_allclose(noisy, found.matrix + estimate.shrinkage * found.dual, atol=1e-6)
    rebuilt = (
        estimate.vectors * np.maximum(estimate.eigenvalues - estimate.shrinkage, 0)
    ) @ estimate.vectors.T
    np.testing.assert_allclose(rebuilt, found.matrix, atol=1e-9)


def test_pruning_and_denoising_lower_the_error():
    best, known, unknown = [], [], []
    for seed in range(3):
        sensing, labels, target = problem(60, 2000, seed)
        found = solve_amp(sensing, labels, 0.05)
        estimate = spectral_estimate(found, 0.05)
        raw = np.sum((found.matrix - target) ** 2)
        pruned = np.sum((estimate.pruned() - target) ** 2)
        unknown.append(np.sum((estimate.denoised() - target) ** 2))
        known.append(np.sum((estimate.denoised(np.diag(target)) - target) ** 2))
        assert known[-1] < unknown[-1] < pruned < raw
        # Rayleigh quotients are the best eigenvalues for these eigenvectors.
        quotients = np.einsum("ij,ik,kj->j", estimate.vectors, target, estimate.vectors)
        best.append(np.sum((estimate.vectors * quotients @ estimate.vectors.T - target) ** 2))
    assert np.sum(best) < np.sum(known) < 1.1 * np.sum(best)
    assert np.sum(unknown) < 1.25 * np.sum(best)


def test_denoising_reaches_the_error_of_the_law():
    # The least error of the law at the noise estimated from the fit, as M is the target plus a
    # semicircle. One instance of d = 60 scatters by 6.5 %, so that 10 % is 2.7 standard errors of
    # three.
    ratios = []
    for seed in range(3):
        sensing, labels, target = problem(60, 3600, seed)
        estimate = spectral_estimate(solve_amp(sensing, labels, 0.5), 0.5)
        strengths = np.diag(target)
        error = np.sum((estimate.denoised(strengths) - target) ** 2) / 60
        ratios.append(error / denoising_error(SpectralLaw(strengths, noise=estimate.noise)))
    assert np.mean(ratios) == pytest.approx(1, abs=0.1)


def test_features_are_those_of_the_target():
    sensing, labels, target = problem(100, 10_000, 0)
    estimate = spectral_estimate(solve_amp(sensing, labels, 0.5), 0.5)
    strengths, overlaps = estimate.features()
    true = np.diag(target)
    # Features above the noise stand out; near the noise one more or one less may do so.
    assert abs(len(strengths) - np.sum(true > estimate.noise)) <= 4
    # Three standard deviations of an outlier, noise times sqrt(2/d).
    bound = 3 * estimate.noise * np.sqrt(2 / 100)
    np.testing.assert_allclose(strengths[:4], true[:4], atol=bound)
    seen = np.diag(estimate.vectors)[:4] ** 2
    np.testing.assert_allclose(overlaps[:4], seen, atol=0.05)
    assert np.all(np.diff(strengths) <= 0)
    assert np.all((overlaps > 0) & (overlaps < 1))


def test_noise_alone_shows_no_feature():
    rng = random_stream(3)
    sensing = SampleSensing(ArraySource(rng.standard_normal((2000, 40))))
    shown = []
    for _ in range(20):
        found = solve_amp(sensing, rng.standard_normal(2000), 0.5)
        shown.append(len(spectral_estimate(found, 0.5).features()[0]))
    # Each draw exceeds the edge with probability 0.01; two of twenty have a probability below 2 %.
    assert np.sum(shown) <= 2


def test_nothing_learned_is_the_variance():
    sensing, labels, _ = problem(20, 400, 1)
    estimate = spectral_estimate(solve_fista(sensing, labels, 1e3), 1e3)
    assert estimate.degrees_of_freedom == 0
    assert estimate.gcv_score == pytest.approx(np.mean(labels**2))


def test_gcv_chooses_near_the_best():
    rng = random_stream(2)
    X = rng.standard_normal((3000, 20))
    y = X[:, 0] ** 2 + 0.5 * X[:, 1] ** 2 + 2 * rng.standard_normal(3000)
    chosen = QuadraticNetRegressor("gcv", solver="fista").fit(X[:600], y[:600])
    error = np.mean((chosen.predict(X[600:]) - y[600:]) ** 2)
    for factor in (0.1, 0.3, 3, 10):
        other = QuadraticNetRegressor(chosen.regularisation_ * factor, solver="fista")
        other.fit(X[:600], y[:600])
        # The best regularisation may lie between two of the path, which costs up to 2 %.
        assert error < 1.02 * np.mean((other.predict(X[600:]) - y[600:]) ** 2)


@pytest.mark.parametrize("n", range(30, 62))
def test_a_fit_that_learned_nothing_estimates_the_noise_at_any_number_of_samples(n):
    """The root is at the end of the bracket, where rounding decides on the sign (for example n = 35)."""
    sensing, labels, _ = problem(9, n, n)
    found = solve_amp(sensing, labels, 1e5, tolerance=1e-6)
    estimate = spectral_estimate(found, 1e5)
    assert estimate.degrees_of_freedom == 0
    assert estimate.gcv_score == pytest.approx(np.mean(labels**2), rel=1e-9)


@pytest.mark.parametrize(("penalty", "cuts"), [(0.05, "noise"), (4.0, "threshold")])
def test_pruning_cuts_at_the_edge_of_the_noise_or_at_the_threshold(penalty, cuts):
    """Pruned fits from the dual alone, M = S + b H (quadratic 15)."""
    d, n = 40, 1600
    sensing, labels, _ = problem(d, n, 0)
    found = solve_fista(sensing, labels, penalty, tolerance=1e-9)
    estimate = spectral_estimate(found, penalty)
    epsilon = estimate.shrinkage / penalty
    noise = 2 * epsilon / d * np.linalg.norm(found.residual)  # (quadratic 7)
    assert (2 * noise > estimate.shrinkage) == (cuts == "noise")
    values, vectors = np.linalg.eigh(found.matrix + penalty * epsilon * found.dual)
    kept = np.maximum(values - max(2 * noise, penalty * epsilon), 0)
    np.testing.assert_allclose(estimate.pruned(), (vectors * kept) @ vectors.T, atol=1e-6)
    if cuts == "threshold":
        np.testing.assert_allclose(estimate.pruned(), found.matrix, atol=1e-9)
