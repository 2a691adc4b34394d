"""The background of degree-2 features against the exact population matrix, and its scaling."""

import numpy as np
import pytest

from solvable.moment_spectrum.degree_two_background import quadratic_background, random_matrices
from solvable.operators import HermiteFeatures


def population(dimension, weights, second_chaos):
    """Matrices, their directions, and the exact population operator without its spikes."""
    features = HermiteFeatures(2, dimension)
    rng = np.random.default_rng(dimension)
    directions = np.linalg.qr(rng.standard_normal((features.n_features, weights.size)))[0]
    matrices = features.to_symmetric(directions)
    basis = features.to_symmetric(np.eye(features.n_features))
    S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices)
    image = sum(w * M @ basis @ M for w, M in zip(weights, matrices, strict=True)) * 4 / np.sqrt(2)
    image = image + second_chaos * (S @ basis + basis @ S)
    return matrices, directions, features.from_symmetric(image)


WEIGHTS = np.array([0.7, -0.5, 0.4, -0.3]) / np.linalg.norm([0.7, -0.5, 0.4, -0.3])


@pytest.mark.parametrize("second_chaos", [None, 4 / np.sqrt(2)])
def test_it_is_the_exact_population_matrix_on_the_complement(second_chaos):
    matrices, directions, exact = population(9, WEIGHTS, second_chaos or 0.0)
    found = quadratic_background(
        matrices=matrices, weights=WEIGHTS, attenuation=1.0, second_chaos=second_chaos
    ).at(1e12)
    complement = np.linalg.qr(directions, mode="complete")[0][:, WEIGHTS.size :]
    values, vectors = np.linalg.eigh(complement.T @ exact @ complement)
    np.testing.assert_allclose(found.atoms, values, atol=1e-10)
    links = ((complement @ vectors).T @ exact @ directions) ** 2
    for power in range(3):
        np.testing.assert_allclose(
            found.links @ found.atoms**power, links.T @ values**power, atol=1e-10
        )


@pytest.mark.parametrize("second_chaos", [None, 4 / np.sqrt(2)])
def test_larger_dimensions_are_scaled_from_random_matrices(second_chaos):
    """At d = 34 eigenvalues are of order 1/d: the scaled ones have their spread and their ends."""
    matrices, directions, exact = population(34, WEIGHTS, second_chaos or 0.0)
    found = quadratic_background(
        matrices=matrices, weights=WEIGHTS, attenuation=1.0, second_chaos=second_chaos
    ).at(1e12)
    complement = np.linalg.qr(directions, mode="complete")[0][:, WEIGHTS.size :]
    values = np.linalg.eigvalsh(complement.T @ exact @ complement)
    # The next order is 5 / (2 d): .11 at the 22 dimensions behind it and .07 here.
    assert found.atoms.std() == pytest.approx(values.std(), rel=0.15)
    np.testing.assert_allclose(found.atoms[[0, -1]], values[[0, -1]], rtol=0.25)
    joined = np.sum(((complement.T @ exact @ directions) ** 2), axis=0)
    np.testing.assert_allclose(found.links.sum(axis=1), joined, rtol=0.35)


def test_a_single_strong_feature_has_products_of_its_eigenvalues():
    """U -> M U M has the eigenvalues a b: twice as wide as the semicircle of the same variance."""
    matrices = random_matrices(1, 20)
    found = quadratic_background(matrices=matrices, weights=np.ones(1), attenuation=1.0).at(1)
    ends = np.linalg.eigvalsh(matrices[0])[[0, -1]]
    assert found.atoms.max() == pytest.approx(4 / np.sqrt(2) * np.max(ends**2), rel=0.05)
    assert found.atoms.min() == pytest.approx(4 / np.sqrt(2) * np.prod(ends), rel=0.05)


def test_many_features_leave_a_semicircle():
    """Beyond as many as the dimension they are drawn together, with 8/d^2 of variance in all."""
    weights = np.full(400, 400**-0.5)
    found = quadratic_background(
        matrices=np.zeros((0, 0, 0)), weights=weights, attenuation=1.0, dimension=60
    ).at(1)
    assert found.links.shape == (400, found.atoms.size)
    total = found.variance + np.mean(found.atoms**2)
    assert total == pytest.approx(8 / 60**2, rel=0.15)


def test_noise_of_the_contraction_has_its_variance():
    """The eigenvalues of U -> N U + U N have twice the variance of those of N, about."""
    noise, samples = 3.0, 50.0
    found = quadratic_background(
        matrices=np.zeros((0, 0, 0)),
        weights=np.ones(1) * 1e-9,
        attenuation=1.0,
        second_chaos=0.0,
        contraction_noise=noise,
        dimension=60,
    )
    # One matrix of 22 dimensions: its spectral variance fluctuates by some 1/d.
    assert found.at(samples).atoms.var() == pytest.approx(2 * noise / samples, rel=0.2)
