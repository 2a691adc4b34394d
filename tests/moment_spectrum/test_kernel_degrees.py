"""Bound on kernels, a staircase in n, against ridgeless regression."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.hermite import hermite_polynomials
from solvable.moment_spectrum.kernel_degrees import degree_dimension
from solvable.operators import HermiteFeatures
from solvable.theory import best_kernel_error


def test_dimensions_count_the_hermite_features():
    for degree in (1, 2, 3):
        assert degree_dimension(7, degree) == HermiteFeatures(degree, 7).n_features
    assert degree_dimension(20, 4) == 8855
    assert degree_dimension(5, 0) == 1


def test_staircase_of_ridgeless_regression():
    """Least-norm interpolation of degree 2 with n of D_2 samples (sequential 27)."""
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
        # A projection on n random directions; exact in the mean for Gaussian features.
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


def test_hermite_kernel_of_one_degree_has_equal_eigenvalues():
    """The sum over all features of a degree depends on the angle alone."""
    d, degree = 4, 2
    hermite = HermiteFeatures(degree, d)
    rng = np.random.default_rng(3)
    x, turn = rng.standard_normal((1, d)), np.linalg.qr(rng.standard_normal((d, d)))[0]
    z = rng.standard_normal((1, d))
    one = hermite.kernel(x, z)
    two = hermite.kernel(x @ turn, z @ turn)
    np.testing.assert_allclose(one, two, rtol=1e-10)
    assert hermite_polynomials(0.5, 2).shape == (3,)


def test_bad_input():
    with pytest.raises(InvalidParameter, match="degree"):
        degree_dimension(3, -1)
    with pytest.raises(InvalidParameter, match="samples"):
        best_kernel_error(samples=-1, dimension=3, energies={2: 1.0})
    with pytest.raises(InvalidParameter, match="energies"):
        best_kernel_error(samples=1, dimension=3, energies={0: 1.0})
