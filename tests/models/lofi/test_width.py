"""Convergence in width: predicted deviations against random features of many seeds."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.lofi.width import fourth_moment_kernel, width_convergence
from solvable.operators.activations import dual_kernel, evaluate
from solvable.operators.lift import RandomLift


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "erf", "step", "square"])
@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.6])
def test_fourth_moment_kernel_against_draws(activation, rho):
    rng = np.random.default_rng(3)
    u = rng.standard_normal(400_000)
    v = rho * u + np.sqrt(1 - rho**2) * rng.standard_normal(400_000)
    left, right = np.array([1.3]), np.array([0.8])
    inner = np.array([[rho * np.sqrt(1.3 * 0.8)]])
    draws = (
        evaluate(activation, np.sqrt(1.3) * u) ** 2 * evaluate(activation, np.sqrt(0.8) * v) ** 2
    )
    found = fourth_moment_kernel(activation, inner, left, right)[0, 0]
    # Five standard errors; 2e-3 for the jump of the step in a series of degree 48.
    error = 5 * draws.std() / np.sqrt(draws.size)
    assert found == pytest.approx(draws.mean(), abs=error + 2e-3)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_entry_deviations_of_random_features(activation):
    X = np.random.default_rng(0).standard_normal((30, 8))
    found = width_convergence(X, activation=activation)
    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    inner = X @ X.T / scale**2
    kernel = dual_kernel(activation, inner, np.diag(inner).copy(), np.diag(inner).copy())
    width, errors = 400, []
    for seed in range(300):
        Z = RandomLift(8, width, activation, scale, seed).transform(X)
        errors.append(np.sqrt(width) * (Z @ Z.T - kernel))
    measured = np.std(errors, axis=0)
    # A standard deviation from 300 draws has a relative error of 4 %, 900 of them up to 4.5 times it.
    np.testing.assert_allclose(measured, found.entry_deviation, rtol=0.25, atol=0.01)
    total = np.sqrt(np.mean(np.sum(np.square(errors), axis=(1, 2))))
    assert found.frobenius_error == pytest.approx(total, rel=0.06)


def test_largest_error_is_in_the_range_of_the_note():
    X = np.random.default_rng(0).standard_normal((120, 20))
    found = width_convergence(X)
    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    inner = X @ X.T / scale**2
    kernel = dual_kernel("relu", inner, np.diag(inner).copy(), np.diag(inner).copy())
    assert np.mean(np.diag(kernel)) == pytest.approx(0.5, abs=1e-12)
    largest = []
    for seed in range(20):
        Z = RandomLift(20, 1_000, "relu", scale, seed).transform(X)
        largest.append(np.sqrt(1_000) * np.abs(Z @ Z.T - kernel).max())
    assert 2.5 < np.mean(largest) < 5.5
    # Diagonal errors are skewed and entries correlated: the median is good to 15 %.
    assert found.largest_error == pytest.approx(np.median(largest), rel=0.15)


def test_relative_error_of_an_eigenvalue_is_root_two_over_the_width():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 20))
    y = np.where(X[:, 0] ** 2 > 0.454936, 1.0, -1.0)
    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    width, leading = 4_000, []
    for seed in range(60):
        Z = RandomLift(20, width, "tanh", scale, seed).transform(X)
        values = np.linalg.eigvalsh(_signed(Z, y))
        leading.append([values[-1], values[0]])
    relative = np.sqrt(width) * np.std(leading, axis=0, ddof=1) / np.abs(np.mean(leading, axis=0))
    # The eigenfunction is a sum of many bounded terms, Gaussian to one in ten; 60 draws give 9 %.
    expected = width_convergence(X, activation="tanh").eigenvalue_error
    np.testing.assert_allclose(relative, expected, rtol=0.3)


def _signed(Z, y):
    """A symmetric matrix with the eigenvalues of diag(y) Z Z^T."""
    values, vectors = np.linalg.eigh(Z @ Z.T)
    root = vectors * np.sqrt(np.maximum(values, 0))
    return root.T @ (y[:, None] * root)


def test_unusable_inputs_are_refused():
    with pytest.raises(InvalidData, match="row of zeros"):
        width_convergence(np.zeros((3, 2)))
    with pytest.raises(InvalidData, match="shape"):
        width_convergence(np.ones(3))
    with pytest.raises(InvalidParameter, match="scale"):
        width_convergence(np.ones((3, 2)), scale=-1.0)
    with pytest.raises(InvalidParameter, match="activation"):
        width_convergence(np.ones((3, 2)), activation="swish")
