"""Degree energies against simulation, the staircase of kernels against ridgeless regression."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.hermite import hermite_polynomials
from solvable.moment_spectrum.kernel_degrees import (
    degree_dimension,
    degree_energies,
    single_index_exponents,
)
from solvable.operators import HermiteFeatures
from solvable.theory import best_kernel_error


def random_matrices(dimension, features, seed=0):
    hermite = HermiteFeatures(2, dimension)
    rng = np.random.default_rng(seed)
    return hermite.to_symmetric(
        np.linalg.qr(rng.standard_normal((hermite.n_features, features)))[0]
    )


WEIGHTS = np.array([0.8, -0.5, 0.33])
WEIGHTS = WEIGHTS / np.linalg.norm(WEIGHTS)


def index_of(X, matrices):
    h = np.einsum("na,pab,nb->np", X, matrices, X, optimize=True)
    h = (h - np.trace(matrices, axis1=1, axis2=2)) / np.sqrt(2)
    return (h**2 - 1) @ WEIGHTS / np.sqrt(2)


def test_energies_by_projection_on_each_degree():
    """Degree 2 by regression on all Hermite features of degree 2; the rest is degree 4."""
    d = 8
    matrices = random_matrices(d, 3)
    hermite = HermiteFeatures(2, d)
    X = np.random.default_rng(1).standard_normal((300_000, d))
    index = index_of(X, matrices)
    F = hermite.transform(X)
    coefficients = F.T @ index / len(X)
    noise = np.mean((F * index[:, None]) ** 2, axis=0).sum() / len(X)
    energies = degree_energies(weights=WEIGHTS, dimension=d, matrices=matrices)
    # The mean of each coefficient adds its variance: subtracted. Two per cent are left.
    assert np.sum(coefficients**2) - noise == pytest.approx(energies[2], rel=0.05)
    assert index.var() == pytest.approx(energies[2] + energies[4], rel=0.05)
    linear = X.T @ index / len(X)
    assert np.sum(linear**2) < 20 * index.var() * d / len(X)


@pytest.mark.parametrize("dimension", [20, 60])
def test_average_energies_over_random_matrices(dimension):
    exact = [
        degree_energies(
            weights=WEIGHTS, dimension=dimension, matrices=random_matrices(dimension, 3, seed)
        )
        for seed in range(8)
    ]
    leading = degree_energies(weights=WEIGHTS, dimension=dimension)
    for degree in (2, 4):
        mean = np.mean([one[degree] for one in exact])
        assert mean == pytest.approx(leading[degree], rel=3 / dimension)


def test_all_positive_weights_make_a_large_quadratic_part():
    mixed = degree_energies(weights=WEIGHTS, dimension=30)[2]
    positive = degree_energies(weights=np.abs(WEIGHTS), dimension=30)[2]
    assert positive > 2 * mixed


def test_dimensions_count_the_hermite_features():
    for degree in (1, 2, 3):
        assert degree_dimension(7, degree) == HermiteFeatures(degree, 7).n_features
    assert degree_dimension(20, 4) == 8855
    assert degree_dimension(5, 0) == 1


def test_staircase_of_ridgeless_regression():
    """One degree at a time: least norm interpolation of degree 2 with n of D_2 samples."""
    d, rng = 16, np.random.default_rng(2)
    hermite = HermiteFeatures(2, d)
    D = hermite.n_features
    direction = rng.standard_normal(D)
    direction /= np.linalg.norm(direction)
    for n in (34, 68, 102):
        errors = []
        for _ in range(20):
            F = hermite.transform(rng.standard_normal((n, d)))
            found = np.linalg.lstsq(F, F @ direction, rcond=None)[0]
            errors.append(np.sum((found - direction) ** 2))
        bound = float(best_kernel_error(samples=n, dimension=d, energies={2: 1.0}))
        # Projection on n random directions: exact in the mean for Gaussian features.
        assert np.mean(errors) == pytest.approx(bound, abs=0.04)


def test_staircase_has_its_steps():
    d = 30
    energies = {0: 5.0, 1: 0.2, 2: 0.3, 4: 0.5}
    samples = np.array([0, d, degree_dimension(d, 2), degree_dimension(d, 4), 10**9])
    errors = best_kernel_error(samples=samples, dimension=d, energies=energies)
    D2, D4 = degree_dimension(d, 2), degree_dimension(d, 4)
    expected = [1, 1 - 0.2 - 0.3 * d / D2 - 0.5 * d / D4, 0.5 - 0.5 * D2 / D4, 0, 0]
    np.testing.assert_allclose(errors, expected, atol=1e-12)
    grid = np.geomspace(1, 1e7, 50)
    curve = best_kernel_error(samples=grid, dimension=d, energies=energies)
    assert np.all(np.diff(curve) <= 0)


def test_no_kernel_learns_degree_four_from_degree_two_samples():
    """The plateau of the issue: between d^2 and d^4/24 the error is Var(y) - 4 |S|^2."""
    d = 60
    energies = degree_energies(weights=WEIGHTS, dimension=d)
    plateau = energies[4] / (energies[2] + energies[4])
    n = 4 * degree_dimension(d, 2)
    error = best_kernel_error(samples=n, dimension=d, energies=energies)
    assert plateau - n / degree_dimension(d, 4) < error < plateau


def test_hermite_kernel_of_one_degree_has_equal_eigenvalues():
    """All directions of one degree cost the same: sum over them is a function of the angle."""
    d, degree = 4, 2
    hermite = HermiteFeatures(degree, d)
    rng = np.random.default_rng(3)
    x, turn = rng.standard_normal((1, d)), np.linalg.qr(rng.standard_normal((d, d)))[0]
    z = rng.standard_normal((1, d))
    one = hermite.kernel(x, z)
    two = hermite.kernel(x @ turn, z @ turn)
    np.testing.assert_allclose(one, two, rtol=1e-10)
    assert hermite_polynomials(0.5, 2).shape == (3,)


def test_exponents_of_three_layers():
    found = single_index_exponents(polynomial_degree=3, epsilon=0.5)
    assert (found.kernel, found.first_layer, found.second_layer, found.whole) == pytest.approx(
        (3, 1.5, 1.5, 1.5)
    )
    assert found.two_layer_degree == pytest.approx(1.5)
    squared = single_index_exponents(polynomial_degree=3, epsilon=0.5, readout_degree=2)
    assert (squared.kernel, squared.two_layer_degree, squared.whole) == pytest.approx((6, 3.0, 1.5))
    steep = single_index_exponents(polynomial_degree=4, epsilon=0.6)
    assert steep.whole == pytest.approx(2.4)


def test_bad_input():
    with pytest.raises(InvalidParameter, match="degree"):
        degree_dimension(3, -1)
    with pytest.raises(InvalidParameter, match="matrices"):
        degree_energies(weights=np.ones(2), dimension=3, matrices=np.ones((2, 4, 4)))
    with pytest.raises(InvalidParameter, match="samples"):
        best_kernel_error(samples=-1, dimension=3, energies={2: 1.0})
    with pytest.raises(InvalidParameter, match="energies"):
        best_kernel_error(samples=1, dimension=3, energies={0: 1.0})
    for arguments in (
        {"polynomial_degree": 1, "epsilon": 0.5},
        {"polynomial_degree": 3, "epsilon": 1},
    ):
        with pytest.raises(InvalidParameter, match="epsilon"):
            single_index_exponents(**arguments)
