import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.quadratic.network.dilute import dilute_state, spike_error
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import truncated_moments
from solvable.spectra.measures import discrete, power_law


def dilute_at(state, target):
    """Solution to first order in the number of features, at the ratio b/delta of a full solution."""
    return dilute_state(
        target,
        sample_ratio=state.sample_ratio,
        label_noise=state.label_noise,
        shrinkage=state.threshold / state.effective_noise,
    )


def error_and_freedom(strengths, weights, threshold):
    law = SpectralLaw(discrete(strengths, weights), noise=1.0)
    moments = truncated_moments(law, threshold)
    kept = moments.second[0] + 2 * threshold * moments.first[0]
    return np.array([weights @ strengths**2 + 4 * moments.slope[0] - kept, moments.slope[0]])


@pytest.mark.parametrize("threshold", [0.0, 0.7, 1.6, 2.4])
@pytest.mark.parametrize("strength", [0.3, 0.8, 1.4, 3.0])
def test_one_feature_is_the_derivative_of_the_spectral_law_in_its_mass(strength, threshold):
    places = np.array([0.0, strength])
    start = error_and_freedom(places, np.array([1.0, 0.0]), threshold)
    slopes = [
        (error_and_freedom(places, np.array([1 - mass, mass]), threshold) - start) / mass
        for mass in (1e-5, 2e-5)
    ]
    # Richardson extrapolation removes the next order in the mass.
    found = 2 * slopes[0] - slopes[1]
    expected = np.array([float(part) for part in spike_error(strength, shrinkage=threshold)])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_one_feature_in_simulated_noise_with_and_without_it():
    dimension, strength, threshold = 120, 3.0, 0.5
    spike = np.zeros((dimension, dimension))
    spike[0, 0] = strength
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(40):
        z = rng.standard_normal((dimension, dimension))
        noise = (z + z.T) / np.sqrt(2 * dimension)
        errors = []
        for target in (spike, 0 * spike):
            values, vectors = np.linalg.eigh(target + noise)
            estimate = (vectors * np.maximum(values - threshold, 0)) @ vectors.T
            errors.append(np.sum((estimate - target) ** 2))
        differences.append(errors[0] - errors[1])
    mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(40)
    expected, _ = spike_error(strength, shrinkage=threshold)
    assert abs(mean - expected) < 4 * error
    # The formula of an isolated spike (quadratic 10) does not hold next to a bulk.
    published = (1 / 3 - 0.5) ** 2 + 2 / 3 * (3 + 1 / 3 - 0.5)
    assert published - mean > 4 * error


def test_beyond_the_bulk_it_is_the_formula_with_the_factor_two():
    r = np.linspace(1.2, 9, 20)
    for a in (2.0, 2.5, 4.0):
        out = r + 1 / r > a
        expected = np.where(out, (1 / r - a) ** 2 + 2 / r * (r + 1 / r - a), r**2)
        np.testing.assert_allclose(spike_error(r, shrinkage=a)[0], expected, rtol=1e-12)


def test_with_a_bulk_that_formula_is_too_large():
    r = np.linspace(1.5, 20, 30)
    published = (1 / r - 0.5) ** 2 + 2 / r * (r + 1 / r - 0.5)
    found, _ = spike_error(r, shrinkage=0.5)
    assert np.all(found < published - 0.5)
    # Without a threshold half of a weak feature is learned, because half of the noise is cut.
    weak, _ = spike_error(1e-5, shrinkage=0.0)
    assert weak == pytest.approx(0.5e-10, rel=1e-4)


@pytest.mark.parametrize("exponent", [0.75, 1.5])
@pytest.mark.parametrize("samples", [10.0, 5_000.0])
@pytest.mark.parametrize("relative", [0.3, 2.0])
def test_few_features_agree_with_the_exact_solution(exponent, samples, relative):
    dimension, noise = 20_000, 0.5
    target = power_law(dimension=dimension, exponent=exponent, heads=40, ratio=1.2)
    setting = {
        "sample_ratio": samples / dimension,
        "label_noise": noise,
        "regularisation": relative * 4 * np.sqrt(noise * samples / dimension),
    }
    exact = solve_quadratic(target, **setting)
    found = dilute_at(exact, target)
    # The neglected terms are of relative order K / d, below 0.02 except for the slow decay.
    within = 0.015 if exponent > 0.9 else 0.025
    assert found.matrix_error == pytest.approx(exact.matrix_error, rel=within)
    assert found.effective_noise == pytest.approx(exact.effective_noise, rel=within)
    assert found.threshold == pytest.approx(exact.threshold, rel=within)
    assert found.regularisation == pytest.approx(setting["regularisation"], rel=within)


def test_small_networks_of_the_table_of_error_decompositions():
    target = power_law(dimension=400, exponent=1.0)
    for samples, penalty, error in ((100.0, 1.5, 0.11922), (7.5, 0.05, 0.50375)):
        exact = solve_quadratic(
            target, sample_ratio=samples / 400, label_noise=0.5, regularisation=penalty
        )
        found = dilute_at(exact, target)
        # (quadratic 10) is wrong by up to a factor of 2 there.
        assert found.matrix_error == pytest.approx(error, rel=0.01)


def test_states_that_no_network_has_are_refused():
    target = power_law(dimension=50, exponent=1.0)
    with pytest.raises(InvalidParameter, match="closer to 2"):
        dilute_state(target, sample_ratio=0.01, label_noise=0.5, shrinkage=0.1)
    with pytest.raises(InvalidParameter, match="the error vanishes"):
        dilute_state(target, sample_ratio=5.0, label_noise=0.0, shrinkage=1.0)
