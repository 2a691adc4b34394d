import numpy as np
import pytest

from solvable.arrays import ArraySource
from solvable.errors import InvalidParameter
from solvable.models.quadratic.narrow_theory import (
    cut_moments,
    instability,
    solve_narrow,
    width_cut,
)
from solvable.models.quadratic.network.factorised import solve_factorised
from solvable.models.quadratic.network.sensing import GaussianSensing, SampleSensing
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import discrete
from solvable.spectra.product_measure import marchenko_pastur


def test_growth_of_a_small_change_by_simulated_matrices():
    """Twelve directions separate from the bulk, whose gaps to the bulk hardly fluctuate."""
    d, alpha = 100, 0.9
    strengths = np.append(np.linspace(6, 9, 12), np.zeros(d - 12))
    state = solve_narrow(
        strengths, width_ratio=0.12, sample_ratio=alpha, label_noise=0.6, regularisation=0.05
    )
    rng = np.random.default_rng(4)
    grown = []
    for _ in range(10):
        first, second = ((z + z.T) / np.sqrt(2 * d) for z in rng.standard_normal((2, d, d)))
        fits = []
        for change in (0.0, 1e-5):
            matrix = np.diag(strengths) + state.effective_noise * first + change * second
            values, vectors = np.linalg.eigh(matrix)
            top = vectors[:, -12:]
            fits.append((top * (values[-12:] - state.threshold)) @ top.T)
        # (quadratic 30): noise of variance 1e-10 is a perturbation of mean square 2 alpha 1e-10.
        grown.append(np.sum((fits[1] - fits[0]) ** 2) / d / (2 * alpha * 1e-10))
    assert state.width_limited
    assert instability(state, d) == pytest.approx(np.mean(grown), rel=0.1)


def power_law_strengths(dimension, exponent):
    strengths = np.arange(1, dimension + 1.0) ** -exponent
    return strengths * np.sqrt(dimension / np.sum(strengths**2))


@pytest.mark.parametrize("width", [4, 20, 60])
def test_error_and_divergence_of_the_best_p_directions(width):
    dimension, noise, threshold = 120, 0.8, 0.3
    strengths = power_law_strengths(dimension, 1.0)
    rng = np.random.default_rng(width)
    found = []
    for _ in range(12):
        z = rng.standard_normal((dimension, dimension))
        values, vectors = np.linalg.eigh(
            np.diag(strengths) + noise * (z + z.T) / np.sqrt(2 * dimension)
        )
        kept, lost = values[-width:], values[:-width]
        pairs = np.sum((kept[:, None] - threshold) / (kept[:, None] - lost))
        # The limit omits the p diagonal terms, of order 1 / d.
        freedom = (pairs + width * (width - 1) / 2) / dimension**2
        top = vectors[:, -width:]
        estimate = (top * (kept - threshold)) @ top.T
        error = np.sum((estimate - np.diag(strengths)) ** 2) / dimension
        found.append([error, freedom, kept.sum() / dimension])
    law = SpectralLaw(strengths, noise=noise)
    moments = cut_moments(law, width_cut(law, width / dimension))
    expected = [
        moments.error(1.0, noise**2, threshold),
        moments.freedom(threshold),
        moments.first,
    ]
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(12)
    # Tolerance: four standard errors, plus 1.5 % for corrections of order 1 / d.
    assert np.all(np.abs(mean - expected) < 4 * error + 0.015 * np.abs(expected))


@pytest.mark.parametrize("fraction", [1e-3, 0.2, 0.5, 0.9])
def test_cut_holds_the_mass_asked_for(fraction):
    law = SpectralLaw(marchenko_pastur(0.2), noise=0.7)
    place = width_cut(law, fraction)
    assert truncated_moments(law, place).mass[0] == pytest.approx(fraction, rel=1e-9)


def test_cut_between_components_is_in_the_gap():
    law = SpectralLaw([0.0, 0.0, 0.0, 9.0], noise=0.5)
    assert law.edges[0, 1] < width_cut(law, 0.25) < law.edges[1, 0]
    assert width_cut(law, 1.0) <= law.edges[0, 0]


@pytest.mark.parametrize("ratio", [0.15, pytest.param(1.0, marks=pytest.mark.slow)])
def test_the_rank_of_the_convex_problem_is_width_enough(ratio):
    # Thirty bounded eigenvalues and many zeros, so that the cut lies in a bulk.
    target = discrete(np.append(0.0, np.linspace(0.5, 4.5, 30)), np.append(120.0, np.ones(30)))
    setting = {"sample_ratio": ratio, "label_noise": 0.5, "regularisation": 0.3}
    exact = solve_quadratic(target, **setting)
    # Equations of a cut spectrum just below the rank, those of a wide network above.
    for factor, within in ((0.995, 3e-3), (1.001, 1e-7), (5.0, 1e-7)):
        found = solve_narrow(target, width_ratio=factor * exact.rank_fraction, **setting)
        assert found.width_limited == (factor < 1)
        for name in ("matrix_error", "threshold", "train_error", "objective"):
            assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=within)
    narrow = solve_narrow(target, width_ratio=0.5 * exact.rank_fraction, **setting)
    assert narrow.objective > exact.objective * 1.001


@pytest.mark.parametrize(
    ("width", "published", "within"), [(23, 0.00810, 0.015), (1, 0.2553, 0.002)]
)
def test_published_errors_of_narrow_networks(width, published, within):
    # arXiv:2606.28242 at d = 400, n = 160,000: one network trained by L-BFGS at each width.
    found = solve_narrow(
        power_law_strengths(400, 1.25),
        width_ratio=width / 400,
        sample_ratio=1.0,
        label_noise=0.1,
        regularisation=0.1,
    )
    assert found.matrix_error == pytest.approx(published, rel=within)
    assert found.width_limited


@pytest.mark.slow
def test_error_has_its_minimum_at_a_finite_width():
    errors = [
        solve_narrow(
            power_law_strengths(400, 1.25),
            width_ratio=width / 400,
            sample_ratio=1.0,
            label_noise=0.1,
            regularisation=0.1,
        ).matrix_error
        for width in (3, 10, 23, 100, 400)
    ]
    assert np.argmin(errors) == 2
    # arXiv:2606.28242: 0.01453 for a trained wide network, 0.01442 by the equations.
    assert errors[-1] == pytest.approx(0.01442, rel=0.01)


def test_width_limited_error_falls_as_the_tail_of_the_target():
    # p^(1 - 2 gamma): few units on many samples lose the tail of the target (arXiv:2606.28242).
    strengths = power_law_strengths(100, 1.25)
    for width in (1, 3):
        found = solve_narrow(
            strengths,
            width_ratio=width / 100,
            sample_ratio=20.0,
            label_noise=0.1,
            regularisation=0.01,
        )
        assert found.matrix_error == pytest.approx(np.sum(strengths[width:] ** 2) / 100, rel=0.05)


def trained(dimension, width, n, noise, penalty, seeds):
    strengths = power_law_strengths(dimension, 1.0)
    errors, train = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, dimension))
        clean = (X**2 @ strengths - strengths.sum()) / np.sqrt(dimension)
        y = clean + np.sqrt(noise) * rng.standard_normal(n)
        sensing = SampleSensing(ArraySource(X))
        solution = solve_factorised(
            sensing, y, penalty, width=width, tolerance=1e-3, max_iterations=200
        )
        errors.append(np.sum((solution.matrix - np.diag(strengths)) ** 2) / dimension)
        train.append(np.mean(solution.residual**2))
    return np.array(errors), np.array(train)


def agrees(dimension, width, n, seeds):
    noise, penalty = 0.5, 0.3
    theory = solve_narrow(
        power_law_strengths(dimension, 1.0),
        width_ratio=width / dimension,
        sample_ratio=n / dimension**2,
        label_noise=noise,
        regularisation=penalty,
    )
    measured = trained(dimension, width, n, noise, penalty, seeds)
    for values, value in zip(measured, (theory.matrix_error, theory.train_error), strict=True):
        error = values.std(ddof=1) / np.sqrt(seeds)
        # Samples add about 4 / d, as for wide networks.
        assert abs(values.mean() - value) < 4 * error + 4 / dimension * value
    return theory


def test_trained_networks_of_few_units():
    theory = agrees(60, 5, 3600, 3)
    assert theory.rank_fraction == pytest.approx(5 / 60)
    # Five units differ from a wide network by far more than the tolerance above.
    wide = solve_quadratic(
        power_law_strengths(60, 1.0), sample_ratio=1.0, label_noise=0.5, regularisation=0.3
    )
    assert theory.matrix_error > 1.4 * wide.matrix_error


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, 8, 25])
def test_trained_networks_at_dimension_100(width):
    agrees(100, width, 10_000, 6)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "penalty"), [(3, 0.02), (8, 0.02), (8, 0.3), (20, 0.3)])
def test_gaussian_sensing_of_few_samples(width, penalty):
    dimension, n, noise = 60, 1080, 0.5
    strengths = power_law_strengths(dimension, 1.0)
    theory = solve_narrow(
        strengths,
        width_ratio=width / dimension,
        sample_ratio=n / dimension**2,
        label_noise=noise,
        regularisation=penalty,
    )
    measured = []
    for seed in range(4):
        sensing = GaussianSensing(n, dimension, seed)
        rng = np.random.default_rng(seed)
        y = sensing.forward(np.diag(np.sqrt(strengths))) + np.sqrt(noise) * rng.standard_normal(n)
        solution = solve_factorised(
            sensing, y, penalty, width=width, tolerance=1e-2, max_iterations=150
        )
        error = np.sum((solution.matrix - np.diag(strengths)) ** 2) / dimension
        measured.append([error, np.mean(solution.residual**2)])
    mean, error = np.mean(measured, axis=0), np.std(measured, axis=0, ddof=1) / 2
    expected = np.array([theory.matrix_error, theory.train_error])
    # Tolerance: four standard errors of four draws, plus diagonal terms of order 1 / d.
    assert np.all(np.abs(mean - expected) < 4 * error + expected / dimension)


def test_parameters_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="width_ratio is 0"):
        solve_narrow(
            np.ones(3), width_ratio=0.0, sample_ratio=1.0, label_noise=0.5, regularisation=0.1
        )
    with pytest.raises(InvalidParameter):
        solve_narrow(
            np.ones(3), width_ratio=0.5, sample_ratio=-1.0, label_noise=0.5, regularisation=0.1
        )
