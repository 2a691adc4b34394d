from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.moment_spectrum.quadratic_forms import degree_two_energy, quadratic_index_variance
from solvable.targets import HierarchicalTarget


def random_symmetric(count, dimension, seed):
    matrices = random_stream(seed).standard_normal((count, dimension, dimension))
    matrices = matrices + matrices.transpose(0, 2, 1)
    return matrices / np.linalg.norm(matrices, axis=(1, 2), keepdims=True)


def test_variance_of_one_diagonal_feature_is_that_of_independent_squares():
    a = np.array([0.9, -0.3, 0.5, 0.1])
    a /= np.linalg.norm(a)
    # h = sum a_j u_j with independent u_j = (x_j² - 1)/sqrt2 of kurtosis 15.
    fourth = 3 * np.sum(a**2) ** 2 + (15 - 3) * np.sum(a**4)
    variance = quadratic_index_variance(np.diag(a)[None], np.ones(1))
    assert variance == pytest.approx((fourth - 1) / 2, rel=1e-12)


def test_variance_is_that_of_simulated_forms_that_are_not_orthonormal():
    M, weights = random_symmetric(3, 4, seed=0), np.array([0.7, -0.5, 0.4])
    n = 400_000
    X = random_stream(1).standard_normal((n, 4))
    h = (np.einsum("na,iab,nb->ni", X, M, X) - np.trace(M, axis1=1, axis2=2)) / np.sqrt(2)
    index = (h**2 - 1) @ weights / np.sqrt(2)
    deviations = (index - index.mean()) ** 2
    error = deviations.std() / np.sqrt(n)
    assert abs(deviations.mean() - quadratic_index_variance(M, weights)) < 4 * error


@pytest.mark.parametrize("seed", range(3))
def test_variance_does_not_depend_on_the_basis_of_the_inputs(seed):
    M, weights = random_symmetric(3, 6, seed), np.array([1.0, -2.0, 0.5])
    rotation = np.linalg.qr(random_stream(seed, "rotation").standard_normal((6, 6)))[0]
    rotated = rotation @ M @ rotation.T
    for formula in (quadratic_index_variance, degree_two_energy):
        assert formula(rotated, weights) == pytest.approx(formula(M, weights), rel=1e-10)


def test_energy_splits_the_variance_by_degree():
    # One feature u = (x²-1)/sqrt2: (u²-1)/sqrt2 = c2 He_2 + c4 He_4 + constant.
    M, weights = np.ones((1, 1, 1)), np.ones(1)
    # u² = (He_4 + 4 He_2 + 2)/2, so the degree-2 energy is (4/2)² * 2! / 2.
    assert degree_two_energy(M, weights) == pytest.approx(4.0)
    assert quadratic_index_variance(M, weights) == pytest.approx(4.0 + 24 / 4 / 2)


def test_degree_two_energy_is_that_of_simulated_labels():
    # 5 % at d = 20 with 150,000 samples. The product of the means of two halves is unbiased;
    # its standard error is 1.5 % of the energy.
    target = HierarchicalTarget(dimension=20, features=6, signs="alternating")
    halves = []
    for seed in (0, 1):
        X, y = target.sample(75_000, seed)
        halves.append(target.feature_map.adjoint(X, y[:, None])[:, 0] / len(y))
    energy = halves[0] @ halves[1]
    assert energy == pytest.approx(target.degree_two_energy, rel=0.05)
