from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from solvable.arrays import random_stream
from solvable.teachers.random_features import ReluFeatures, relu_covariance


def less_linear(u):
    return np.maximum(u, 0) - 1 / np.sqrt(2 * np.pi) - u / 2


@pytest.mark.parametrize("rho", [-0.9, -0.2, 0.0, 0.5])
def test_covariance_is_that_of_the_double_integral(rho):
    # The trapezoidal rule is exact for Gaussian tails, with errors O(step²) at the two kinks.
    grid = np.linspace(-8, 8, 3201)
    u, v = grid[:, None], np.sqrt(1 - rho**2) * grid
    density = stats.norm.pdf(grid)
    step = grid[1] - grid[0]
    value = density @ (less_linear(u) * less_linear(rho * u + v)) @ density * step**2
    assert relu_covariance(np.array(rho)) == pytest.approx(value, abs=2e-5)


def test_covariance_starts_at_degree_two():
    rho = np.array([0.02, 0.01])
    even = (relu_covariance(rho) + relu_covariance(-rho)) / 2
    assert np.log2(even[0] / even[1]) == pytest.approx(2.0, abs=1e-3)
    np.testing.assert_allclose(relu_covariance(rho), rho**2 / (4 * np.pi), rtol=1e-4)


def test_features_have_no_constant_and_no_linear_part():
    features = ReluFeatures(6, 40, seed=1)
    n = 100_000
    X = random_stream(0).standard_normal((n, 6))
    phi = features.transform(X)
    assert (abs(phi.mean(axis=0)) < 5 * phi.std(axis=0) / np.sqrt(n)).all()
    # The standard error is below 0.4/sqrt(n) for each of 240 entries.
    assert abs(X.T @ phi / n).max() < 5 * 0.4 / np.sqrt(n)


def test_whitened_columns_are_uncorrelated_in_simulation_and_the_blocks_add_up(monkeypatch):
    features = ReluFeatures(6, 300, seed=1)
    drawn = random_stream(2).standard_normal((300, 4))
    columns = features.whiten(drawn)
    n = 60_000
    h = features.transform(random_stream(0).standard_normal((n, 6))) @ columns
    products = h[:, :, None] * h[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (abs(products.mean(axis=0) - np.eye(4)) < 5 * error).all()
    whole = features.covariance_product(drawn)
    monkeypatch.setattr("solvable.teachers.random_features.COVARIANCE_ROWS", 7)
    np.testing.assert_allclose(features.covariance_product(drawn), whole, atol=1e-12)


def test_hermite_directions_are_the_regression_on_hermite_features():
    from solvable.operators.features import HermiteFeatures

    features = ReluFeatures(5, 100, seed=1)
    columns = features.whiten(random_stream(2).standard_normal((100, 2)))
    n = 200_000
    X = random_stream(0).standard_normal((n, 5))
    h = features.transform(X) @ columns
    F = HermiteFeatures(2, 5).transform(X)
    directions = features.hermite_directions(columns)
    # The entries F_a h have a standard deviation below 4.
    np.testing.assert_allclose(F.T @ h / n, directions, atol=5 * 4 / np.sqrt(n))
    # Degree 2 has a share c_2² of 0.876 of the variance on average.
    share = np.sum(directions**2, axis=0)
    assert ((share > 0.7) & (share < 1.0)).all()
