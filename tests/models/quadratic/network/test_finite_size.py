"""First order in 1/d against simulated spectra, a second derivation, and trained networks."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.models.quadratic.narrow_theory import solve_narrow
from solvable.models.quadratic.network.finite_size import _functionals, finite_sizes, unreachable
from solvable.models.quadratic.network.measure import minimise
from solvable.models.quadratic.network.sample_shape import rank_slopes, sample_shape
from solvable.models.quadratic.network.sensing import GaussianSensing, SampleSensing
from solvable.models.quadratic.network.target import QuadraticTarget
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.excess_mass import excess_mass
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import power_law
from solvable.spectra.product_measure import marchenko_pastur


def finite_size(state, *, samples):
    """First order in 1/d for samples or for Gaussian measurements."""
    return finite_sizes(state, samples=samples)[samples]


def mass_at(law, place):
    """Additional mass above x at finite d, times d (quadratic 19)."""
    u, height = law.preimage(place)
    return float(excess_mass(law, np.atleast_1d(u + 1j * height))[0])


def gaussian_matrices(rng, count, d):
    draws = rng.standard_normal((count, d, d))
    return (draws + draws.transpose(0, 2, 1)) / np.sqrt(2 * d)


def test_the_excess_of_pure_noise_is_known():
    """Pure noise: a quarter of an eigenvalue more at each edge, half of one less in between."""
    law = SpectralLaw([0.0], noise=1.0)
    assert mass_at(law, 2 - 1e-9) == pytest.approx(0.25, abs=1e-4)
    x = np.array([-1.2, 0.0, 0.7, 1.9])
    wanted = 0.25 - np.arccos(x / 2) / (2 * np.pi)
    np.testing.assert_allclose([mass_at(law, one) for one in x], wanted, atol=1e-10)
    # E Tr Z² / d = 1 + 1/d; the limit is 1.
    assert _functionals(law, -20.0).excess == pytest.approx(1.0, abs=1e-6)


def test_the_excess_of_a_random_target_is_known():
    """E Tr S² / d = 1 + k + 1/d, plus the contribution of noise."""
    law = SpectralLaw(marchenko_pastur(0.3), noise=0.8)
    assert _functionals(law, -20.0).excess == pytest.approx(1 + 0.8**2, rel=1e-5)


@pytest.mark.parametrize("kind", ["atoms", "random"])
def test_moments_of_simulated_spectra(kind):
    d, noise, count = 20, 1.1, 3_000
    rng = random_stream("spectra", kind)
    strengths = np.concatenate([np.linspace(1, 4, 6), np.zeros(d - 6)])
    signal = np.diag(strengths)
    law = SpectralLaw(strengths, noise=noise)
    if kind == "random":
        units = rng.standard_normal((count, d, 6))
        signal = units @ units.transpose(0, 2, 1) / np.sqrt(6 * d)
        law = SpectralLaw(marchenko_pastur(0.3), noise=noise)
    values = np.linalg.eigvalsh(signal + noise * gaussian_matrices(rng, count, d))
    for threshold in (0.3, 1.5):
        seen = np.mean(np.maximum(values - threshold, 0) ** 2, axis=1)
        error = seen.std() / np.sqrt(count)
        gap = seen.mean() - float(truncated_moments(law, threshold).second[0])
        first = _functionals(law, threshold).excess / d
        # The second order is smaller by a factor of 1/d.
        assert abs(gap - first) < 4 * error + abs(first) / d * 2
        assert abs(gap) > 4 * error  # the limit itself is off


@pytest.mark.parametrize("target", [power_law(dimension=24, exponent=1.0), marchenko_pastur(0.2)])
@pytest.mark.parametrize("ratio", [0.2, 1.5])
def test_shift_of_the_saddle_point_by_a_second_way(saddle_objective, target, ratio):
    """The correction of the error equals half of the slope of the corrected objective in the noise."""
    penalty, noise = 0.1, 0.5
    state = solve_quadratic(target, sample_ratio=ratio, label_noise=noise, regularisation=penalty)
    found = finite_size(state, samples=False)
    # Newton search for the saddle point of Phi(B, delta) with J replaced by J + t J_1.
    step = 1e-4
    size, width = penalty * state.effective_noise / (2 * state.threshold), state.effective_noise

    def objective(residual_norm, effective_noise, order):
        base = saddle_objective(
            target,
            residual_norm=residual_norm,
            effective_noise=effective_noise,
            sample_ratio=ratio,
            label_noise=noise,
            regularisation=penalty,
        )
        law = SpectralLaw(target, noise=effective_noise)
        b = penalty * effective_noise / (2 * residual_norm)
        random_energy = 0.0 if hasattr(target, "node_weights") and len(target.nodes) == 24 else 1.0
        extra = random_energy - _functionals(law, b).excess
        return base + order * residual_norm / effective_noise * extra

    def gradient(order):
        first = [
            (objective(size + h, width, order) - objective(size - h, width, order)) / (2 * h)
            for h in [step * size]
        ]
        second = [
            (objective(size, width + h, order) - objective(size, width - h, order)) / (2 * h)
            for h in [step * width]
        ]
        return np.array(first + second)

    def at(i, j):
        return objective(size * (1 + 20 * step * i), width * (1 + 20 * step * j), 0.0)

    h = 20 * step
    middle = at(0, 0)
    curvature = np.array(
        [
            [(at(1, 0) - 2 * middle + at(-1, 0)) / (h * size) ** 2,
             (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h * size * width)],
            [0.0, (at(0, 1) - 2 * middle + at(0, -1)) / (h * width) ** 2],
        ]
    )  # fmt: skip
    curvature[1, 0] = curvature[0, 1]
    moved = -np.linalg.solve(curvature, gradient(1.0) - gradient(0.0))
    assert found.matrix_error == pytest.approx(4 * ratio * width * moved[1], rel=2e-2)
    # The training error is B² / alpha; the code uses the leverage of a sample.
    assert found.train_error == pytest.approx(2 * size * moved[0] / ratio, rel=2e-2)


@pytest.mark.parametrize(
    ("target", "ratio", "penalty"),
    [(power_law(dimension=24, exponent=1.0), 0.8, 0.5), (marchenko_pastur(0.4), 0.5, 0.1)],
)
def test_the_rank_by_a_second_way(target, ratio, penalty):
    """The rank from the mass above the moving threshold, instead of a penalty of the rank."""
    setting = {"sample_ratio": ratio, "label_noise": 0.7, "regularisation": penalty}
    state = solve_quadratic(target, **setting)
    found = finite_size(state, samples=False)
    noise, b, step = state.effective_noise, state.threshold, 1e-3

    def rank(scale, shift):
        law = SpectralLaw(target, noise=noise * (1 + scale))
        return float(truncated_moments(law, b * (1 + shift)).mass[0])

    # R + Delta/2 = 2 alpha delta², E_train = delta² (1/epsilon)² / 4 alpha, 1/epsilon = lambda / b
    by_noise = found.matrix_error / (4 * ratio * noise)
    by_threshold = b * (by_noise / noise - found.train_error / (2 * state.train_error))
    along = (rank(step, 0) - rank(-step, 0)) / (2 * step * noise)
    across = (rank(0, step) - rank(0, -step)) / (2 * step * b)
    wanted = along * by_noise + across * by_threshold + mass_at(state.law, b)
    assert found.rank_fraction == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("b", [0.3, 1.1])
def test_a_penalty_of_the_rank_cuts_a_little_above_the_threshold(b):
    """Derivatives in a penalty of the rank against finite differences."""
    law = SpectralLaw(2.5 * np.arange(1, 25) ** -0.8, noise=0.8)
    found, before = rank_slopes(law, b), sample_shape(law, b)
    for name in ("error", "cube", "third", "fourth", "tilt"):
        short, long = (
            2 * (getattr(sample_shape(law, b, b + h), name) - getattr(before, name)) / h**2
            for h in (0.04, 0.08)
        )
        assert getattr(found, name) == pytest.approx(2 * short - long, rel=0.03, abs=3e-3)


def test_a_width_of_the_rank_has_the_first_order_of_a_wide_network():
    """A width just below the rank cuts eigenvalues just above the threshold, with a small effect."""
    target = power_law(dimension=60, exponent=1.0)
    setting = {"sample_ratio": 0.7, "label_noise": 0.4, "regularisation": 0.3}
    wide = solve_quadratic(target, **setting)
    narrow = solve_narrow(target, width_ratio=0.98 * wide.rank_fraction, **setting)
    assert narrow.width_limited
    for kind in (False, True):
        near, full = finite_size(narrow, samples=kind), finite_size(wide, samples=kind)
        for name in ("matrix_error", "train_error"):
            assert getattr(near, name) == pytest.approx(getattr(full, name), rel=0.05, abs=0.01)


def simulated(sensing_of, ratio, replicates, d=20, penalty=0.2, noise=0.5):
    target = QuadraticTarget(d, "power-law", noise=noise)
    n = round(ratio * d * d)
    state = solve_quadratic(
        target.strengths, sample_ratio=n / d**2, label_noise=noise, regularisation=penalty
    )
    found = []
    for replicate in range(replicates):
        rng = random_stream("finite size", replicate)
        sensing = sensing_of(n, d, rng)
        labels = sensing.forward(target.factor) + np.sqrt(noise) * rng.standard_normal(n)
        solution = minimise(sensing, labels, penalty)
        trace = float(np.sum(solution.factor**2)) / d
        error = target.matrix_error(solution.matrix)
        found.append((error, np.mean(solution.residual**2), trace, solution.factor.shape[1] / d))
    return state, np.array(found)


def compared(state, found, correction, d):
    names = ("matrix_error", "train_error", "trace", "rank_fraction")[: found.shape[1]]
    limit = np.array([getattr(state, name) for name in names])
    first = np.array([getattr(correction, name) for name in names]) / d
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    # The tolerance is of second order: the square of the first order, plus 5/d².
    left = np.abs(found.mean(axis=0) - limit - first)
    np.testing.assert_array_less(left, 4 * error + 5 * (first**2 / limit + limit / d**2))
    # A rank may be equal in all draws.
    return np.abs(found.mean(axis=0) - limit) / np.maximum(error, 1e-300)


def gaussian(n, d, rng):
    return GaussianSensing(n, d, int(rng.integers(2**31)))


def test_gaussian_measurements_obey_the_first_order():
    """The prediction at d = 20 holds with the first order, and not without."""
    state, found = simulated(gaussian, 0.6, 60)
    off = compared(state, found, finite_size(state, samples=False), 20)
    assert off[0] > 4 or off[1] > 4


def samples(n, d, rng):
    return SampleSensing(ArraySource(rng.standard_normal((n, d))))


@pytest.mark.parametrize(("ratio", "noise"), [(0.7, 0.0), (1.3, 0.8)])
def test_samples_obey_the_first_order(ratio, noise):
    """Samples with and without label noise; the correction of the rank is five times the Gaussian one."""
    state, found = simulated(samples, ratio, 60, noise=noise)
    off = compared(state, found, finite_size(state, samples=True), 20)
    gaussian = finite_size(state, samples=False)
    # Neither the limit nor the correction for Gaussian measurements suffices.
    error = found[:, 0].std() / np.sqrt(len(found))
    assert off[0] > 6
    assert off[3] > 4
    assert found[:, 0].mean() > state.matrix_error + gaussian.matrix_error / 20 + 5 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratio", "noise", "penalty"),
    [(0.5, 0.0, 0.5), (1.2, 0.0, 0.03), (0.8, 0.3, 2.0), (2.5, 2.0, 0.1)],
)
def test_samples_at_more_settings(ratio, noise, penalty):
    state, found = simulated(samples, ratio, 200, d=30, noise=noise, penalty=penalty)
    compared(state, found, finite_size(state, samples=True), 30)


def test_functionals_of_the_shape_are_those_of_a_matrix():
    """Functionals against one large drawn matrix of target plus noise."""
    d, noise, b = 400, 0.9, 0.7
    strengths = 3.0 * np.arange(1, d + 1) ** -0.5
    matrix = np.diag(strengths) + noise * gaussian_matrices(random_stream("shape"), 1, d)[0]
    found = sample_shape(SpectralLaw(strengths, noise=noise), b)
    values, vectors = np.linalg.eigh(matrix)
    f = np.maximum(values - b, 0)
    error = vectors.T @ np.diag(strengths) @ vectors - np.diag(f)
    gaps = values[:, None] - values + np.eye(d)
    divided = (f[:, None] - f) / gaps + np.diag(values > b)
    rho, lean = divided.mean(axis=1), np.diag(error)
    square = np.sum(error**2, axis=1)
    pair = lean @ divided @ lean / d**2
    assert found.error == pytest.approx(square.mean(), rel=0.03)
    assert found.freedom == pytest.approx(rho.mean() / 2, rel=0.03)
    assert found.leverages == pytest.approx(np.mean(rho**2), rel=0.03)
    assert found.with_error == pytest.approx(2 * np.mean(rho * square) + pair, rel=0.03)
    assert found.with_lean == pytest.approx(np.mean(rho * lean), rel=0.05)
    assert found.cube == pytest.approx(np.trace(error @ error @ error) / d, rel=0.05)

    # Third and fourth derivative of Tr (M - b)_+² along x x^T, from phases of the resolvent.
    def changes(order):
        places = np.linspace(b, b + 60, 60_001) - 1j * 0.02
        resolvent = np.mean(1 / (places[:, None] - values), axis=1)
        phases = np.imag(resolvent**order) / (np.pi * order)
        return np.trapezoid(2 * (places.real - b) * phases, places.real)

    assert found.third == pytest.approx(changes(3), rel=0.05)
    assert found.fourth == pytest.approx(changes(4), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.35, 1.0])
def test_gaussian_measurements_at_more_ratios(ratio):
    state, found = simulated(gaussian, ratio, 300, d=24)
    compared(state, found, finite_size(state, samples=False), 24)


def test_the_correction_vanishes_with_the_noise_and_the_target_alone_stays():
    """Far above recovery the remaining corrections are of order delta."""
    state = solve_quadratic(
        power_law(dimension=20, exponent=1.0),
        sample_ratio=500.0,
        label_noise=0.5,
        regularisation=0.1,
    )
    found = finite_size(state, samples=True)
    assert abs(found.matrix_error) / 20 < 0.2 * state.matrix_error
    assert abs(found.train_error) / 20 < 1e-3 * state.train_error


@pytest.mark.parametrize(("ratio", "many"), [(0.17, True), (0.7, False)])
def test_labels_below_what_a_positive_matrix_fits(ratio, many):
    """For few samples near interpolation such labels cause most of the training error (quadratic 21)."""
    d = 32
    state, found = simulated(samples, ratio, 12, d=d, penalty=0.02, noise=0.5)
    lost = unreachable(state, d)
    first = state.train_error + finite_size(state, samples=True).train_error / d
    error = found[:, 1].std(ddof=1) / np.sqrt(len(found))
    assert (lost > 0.3 * first) == many
    assert (found[:, 1].mean() > first + 2 * error) == many
    if many:  # an upper bound of the excess, of its order
        excess = found[:, 1].mean() - first
        assert excess - 2 * error < lost < 7 * (excess + 2 * error)
