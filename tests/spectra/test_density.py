"""The density of a weighted sample covariance matrix against closed forms and simulated spectra."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.density import weighted_density


@pytest.mark.parametrize("aspect_ratio", [4.0, 1.5, 0.5])
def test_equal_weights_give_the_marchenko_pastur_law(aspect_ratio):
    found = weighted_density(
        weights=np.ones(1), aspect_ratio=aspect_ratio, centre=False, points=400
    )
    shape = 1 / aspect_ratio
    lower, upper = (1 - np.sqrt(shape)) ** 2, (1 + np.sqrt(shape)) ** 2
    exact = np.sqrt((upper - found.x) * (found.x - lower)) / (2 * np.pi * shape * found.x)
    np.testing.assert_allclose(found.density, exact, rtol=1e-9)
    assert found.atom == pytest.approx(max(0.0, 1 - aspect_ratio))
    # The trapezoidal rule misses half a step at each end: a relative error of order points^-2.
    assert np.trapezoid(found.density, found.x) == pytest.approx(1 - found.atom, abs=1e-4)


def test_moments_of_signed_weights():
    weights = np.array([-2.0, -0.5, 0.0, 0.3, 1.0, 1.5])
    found = weighted_density(weights=weights, aspect_ratio=3.0, points=2000)
    mass, mean, second = (np.trapezoid(found.density * found.x**k, found.x) for k in range(3))
    assert mass == pytest.approx(1, abs=1e-4)
    assert mean == pytest.approx(0, abs=1e-4)
    # E tr (M - w)² / D = E[w²] / delta by free probability.
    assert second == pytest.approx(np.mean(weights**2) / 3, rel=1e-3)


def test_simulated_spectrum():
    rng = np.random.default_rng(3)
    columns, samples = 400, 2400
    weights = np.tanh(rng.standard_normal(samples) ** 2 - 1)
    g = rng.standard_normal((samples, columns))
    matrix = (g.T * weights) @ g / samples - weights.mean() * np.eye(columns)
    eigenvalues = np.linalg.eigvalsh(matrix)
    found = weighted_density(weights=weights, aspect_ratio=samples / columns)
    cumulative = np.concatenate(
        [[0], np.cumsum(np.diff(found.x) * (found.density[1:] + found.density[:-1]) / 2)]
    )
    empirical = np.searchsorted(eigenvalues, found.x) / columns
    # Rigid spectrum: eigenvalue counts fluctuate by O(log D), far less than by sqrt(D).
    assert np.abs(cumulative - empirical).max() < 3 * np.log(columns) / columns


def test_free_semicircle_alone_and_added():
    # With nearly zero weight only the semicircle is left.
    found = weighted_density(
        weights=np.array([1e-9]), aspect_ratio=2.0, background_variance=0.25, points=400
    )
    exact = np.sqrt(1 - found.x**2) * 2 / np.pi
    np.testing.assert_allclose(found.density, exact, atol=1e-6)
    added = weighted_density(
        weights=np.array([-1.0, 2.0]), aspect_ratio=5.0, background_variance=0.1, points=2000
    )
    # Variances of free variables add.
    second = np.trapezoid(added.density * added.x**2, added.x)
    assert second == pytest.approx(2.5 / 5 + 0.1, rel=1e-3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([]), "shape"),
        (np.ones((2, 2)), "shape"),
        (np.array([1.0, np.nan]), "NaN"),
        (np.zeros(3), "zero"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(InvalidData, match=message):
        weighted_density(weights=weights, aspect_ratio=1.0)


def test_bad_numbers():
    with pytest.raises(InvalidParameter, match="aspect_ratio"):
        weighted_density(weights=np.ones(2), aspect_ratio=0.0)
    with pytest.raises(InvalidParameter, match="background_variance"):
        weighted_density(weights=np.ones(2), aspect_ratio=1.0, background_variance=-1.0)
    with pytest.raises(InvalidParameter, match="points"):
        weighted_density(weights=np.ones(2), aspect_ratio=1.0, points=1)
