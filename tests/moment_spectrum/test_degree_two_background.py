"""Background of degree-2 features against exact population matrices, and its scaling."""

import numpy as np
import pytest

from solvable.moment_spectrum.degree_two_background import quadratic_background, random_matrices
from solvable.moment_spectrum.quadratic_forms import mean_traces
from solvable.operators import HermiteFeatures

WEIGHTS = np.array([0.7, -0.5, 0.4, -0.3]) / np.linalg.norm([0.7, -0.5, 0.4, -0.3])


def population(matrices, weights, plain):
    """Directions, and the exact population operator without spikes (sequential 19)."""
    features = HermiteFeatures(2, matrices.shape[1])
    basis = features.to_symmetric(np.eye(features.n_features))
    image = sum(w * M @ basis @ M for w, M in zip(weights, matrices, strict=True))
    if plain:
        S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices)
        image = image + S @ basis + basis @ S
    return features.from_symmetric(matrices), features.from_symmetric(image) * 4 / np.sqrt(2)


def background(weights, dimension, plain):
    """Background for the unmapped label sum_i lambda_i (h_i² - 1) / sqrt(2)."""
    # theta_i = sqrt(2) lambda_i (1 + 4 / d), and E[T 2 tr((x x^T - I) M_i²)] = (8 / sqrt(2)) <S, M_i²>
    squares = mean_traces(weights.size, dimension)[1]
    contracted = 8 / np.sqrt(2) * squares @ weights if plain else None
    heights = np.sqrt(2) * weights * (1 + 4 / dimension)
    return quadratic_background(heights, dimension, contracted=contracted).at(1e12)


@pytest.mark.parametrize("plain", [False, True])
def test_it_is_the_exact_population_matrix_on_the_complement(plain):
    matrices = random_matrices(WEIGHTS.size, 12)
    directions, exact = population(matrices, WEIGHTS, plain)
    found = background(WEIGHTS, 12, plain)
    complement = np.linalg.qr(directions, mode="complete")[0][:, WEIGHTS.size :]
    values, vectors = np.linalg.eigh(complement.T @ exact @ complement)
    np.testing.assert_allclose(found.atoms, values, atol=1e-6)
    links = ((complement @ vectors).T @ exact @ directions) ** 2
    for power in range(3):
        np.testing.assert_allclose(
            found.links @ found.atoms**power, links.T @ values**power, atol=1e-6
        )


@pytest.mark.parametrize("plain", [False, True])
def test_larger_dimensions_are_scaled_from_random_matrices(plain):
    """At d = 34 the scaled operator has the spread and the extremes of the exact one."""
    matrices = random_matrices(WEIGHTS.size, 34)
    directions, exact = population(matrices, WEIGHTS, plain)
    found = background(WEIGHTS, 34, plain)
    complement = np.linalg.qr(directions, mode="complete")[0][:, WEIGHTS.size :]
    values = np.linalg.eigvalsh(complement.T @ exact @ complement)
    # The next order is 5 / (2 d): 0.11 in 22 dimensions, from which it is scaled, and 0.07 here.
    assert found.atoms.std() == pytest.approx(values.std(), rel=0.15)
    np.testing.assert_allclose(found.atoms[[0, -1]], values[[0, -1]], rtol=0.25)
    joined = np.sum(((complement.T @ exact @ directions) ** 2), axis=0)
    np.testing.assert_allclose(found.links.sum(axis=1), joined, rtol=0.35)


def test_a_single_strong_feature_has_products_of_its_eigenvalues():
    """U -> M U M has eigenvalues a b, twice as wide as a semicircle of the same variance."""
    ends = np.linalg.eigvalsh(random_matrices(1, 20)[0])[[0, -1]]
    found = background(np.ones(1), 20, False)
    assert found.atoms.max() == pytest.approx(4 / np.sqrt(2) * np.max(ends**2), rel=0.05)
    assert found.atoms.min() == pytest.approx(4 / np.sqrt(2) * np.prod(ends), rel=0.05)


def test_many_features_leave_a_semicircle():
    """More features than inputs give a semicircle with a total variance of 8/d²."""
    found = background(np.full(400, 400**-0.5), 60, False)
    assert found.links.shape == (400, found.atoms.size)
    total = found.variance + np.mean(found.atoms**2)
    assert total == pytest.approx(8 / 60**2, rel=0.15)


def test_noise_of_the_contraction_has_its_variance():
    """The eigenvalues of U -> N U + U N have about twice the variance of those of N."""
    noise, samples = 3.0, 50.0
    found = quadratic_background(
        np.ones(1) * 1e-9, 60, contracted=np.zeros(1), contraction_noise=noise
    )
    # The spectral variance of one matrix of 22 dimensions fluctuates by about 1/d.
    assert found.at(samples).atoms.var() == pytest.approx(2 * noise / samples, rel=0.2)


def test_the_background_grows_with_the_heights():
    low, high = (quadratic_background(np.array([height]), 16) for height in (2.0, 4.0))
    np.testing.assert_allclose(high.rates, 2 * low.rates)
    assert low.contraction is None
