"""The per-sample kernel against explicit matrices, the background against the population matrix."""

import numpy as np
import pytest

from solvable.errors import InvalidData
from solvable.models.sequential.sample_kernel import (
    corrected_kernel,
    plain_kernel,
    quadratic_background,
)
from solvable.operators import HermiteFeatures

DIMENSION, FEATURES, DRAWS = 5, 3, 40


def flatten(features, matrices):
    return features.from_symmetric(matrices)


@pytest.fixture(scope="module")
def setup():
    rng = np.random.default_rng(0)
    features = HermiteFeatures(2, DIMENSION)
    directions = np.linalg.qr(rng.standard_normal((features.n_features, FEATURES)))[0]
    return features, directions, rng.standard_normal((DRAWS, DIMENSION))


def explicit(kernels, directions, n_features):
    """Size, diagonal and coupling from matrices of shape (m, D, D)."""
    images = kernels @ directions
    diagonal = np.einsum("dp,mdp->mp", directions, images)
    return (
        np.linalg.norm(kernels, axis=(1, 2)) / n_features,
        diagonal,
        (np.sum(images**2, axis=1) - diagonal**2) / n_features,
    )


def agree(kernel, expected):
    for found, wanted in zip(
        (kernel.size, kernel.diagonal, kernel.coupling), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_plain_kernel_is_that_of_explicit_features(setup):
    features, directions, X = setup
    F = features.transform(X)
    kernels = F[:, :, None] * F[:, None, :] - np.eye(features.n_features)
    kernel = plain_kernel(
        latent=F @ directions, squared_norm=np.sum(F**2, axis=1), n_features=features.n_features
    )
    agree(kernel, explicit(kernels, directions, features.n_features))


def test_corrected_kernel_is_that_of_explicit_matrices(setup):
    features, directions, X = setup
    D = features.n_features
    F = features.transform(X)
    basis = features.to_symmetric(np.eye(D))
    kernels = F[:, :, None] * F[:, None, :] - np.eye(D)
    for k, x in enumerate(X):
        moved = np.outer(x, x) - np.eye(DIMENSION)
        kernels[k] -= flatten(features, moved @ basis + basis @ moved)
    matrices = features.to_symmetric(directions)
    kernel = corrected_kernel(
        latent=F @ directions,
        squared_input_norm=np.sum(X**2, axis=1),
        squared_images=np.sum(np.einsum("pab,mb->mpa", matrices, X) ** 2, axis=2),
        traces=np.trace(matrices, axis1=1, axis2=2),
        dimension=DIMENSION,
    )
    agree(kernel, explicit(kernels, directions, D))


def test_corrected_kernel_has_no_mean(setup):
    """The highest chaos is orthogonal to constants: E<A, K A> = 0 exactly."""
    features, directions, _ = setup
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200_000, DIMENSION))
    matrices = features.to_symmetric(directions)
    kernel = corrected_kernel(
        latent=features.project(X, directions),
        squared_input_norm=np.sum(X**2, axis=1),
        squared_images=np.sum(np.einsum("pab,mb->mpa", matrices, X, optimize=True) ** 2, axis=2),
        traces=np.trace(matrices, axis1=1, axis2=2),
        dimension=DIMENSION,
    )
    error = kernel.diagonal.std(axis=0) / np.sqrt(len(X))
    assert np.all(np.abs(kernel.diagonal.mean(axis=0)) < 4 * error)


def population(matrices, weights, features):
    """The exact population matrix for T = y, arXiv:2605.14567 with its O(1/d) part."""
    basis = features.to_symmetric(np.eye(features.n_features))
    S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices)
    inner = sum(w * M @ basis @ M for w, M in zip(weights, matrices, strict=True))
    plain = flatten(features, S @ basis + basis @ S) * 4 / np.sqrt(2)
    return plain, flatten(features, inner) * 4 / np.sqrt(2)


@pytest.mark.parametrize("dimension", [24, 36])
def test_background_matches_the_exact_population_matrix(dimension):
    rng = np.random.default_rng(2)
    features = HermiteFeatures(2, dimension)
    directions = np.linalg.qr(rng.standard_normal((features.n_features, 4)))[0]
    matrices = features.to_symmetric(directions)
    weights = np.array([0.7, -0.5, 0.4, -0.3])
    weights = weights / np.linalg.norm(weights)
    sums, inner = population(matrices, weights, features)
    complement = np.eye(features.n_features) - directions @ directions.T

    corrected = quadratic_background(matrices=matrices, weights=weights, attenuation=1.0).at(1)
    spectrum = np.linalg.eigvalsh(complement @ inner @ complement)
    # Leading order in 1/d: relative error 4/d and the p null directions of the projection.
    assert corrected.variance == pytest.approx(spectrum.var(), rel=6 / dimension)

    plain = quadratic_background(
        matrices=matrices, weights=weights, attenuation=1.0, second_chaos=4 / np.sqrt(2)
    ).at(1)
    values, vectors = np.linalg.eigh(sums)
    np.testing.assert_allclose(plain.atoms, values, atol=1e-10)
    # The profile of a feature is its spectral measure: compare the moments.
    measure = (vectors.T @ directions) ** 2
    for power in range(4):
        np.testing.assert_allclose(
            plain.profiles @ plain.atoms**power, measure.T @ values**power, atol=1e-10
        )


def test_many_atoms_are_gathered_without_moving_their_mean():
    rng = np.random.default_rng(4)
    root = rng.standard_normal((1, 80, 80))
    matrices = root + root.transpose(0, 2, 1)
    matrices /= np.linalg.norm(matrices)
    found = quadratic_background(
        matrices=matrices, weights=np.ones(1), attenuation=1.0, second_chaos=2.0
    ).at(1)
    assert found.atoms.size == 1620
    # Mean of s_a + s_b over pairs a <= b: tr(S) (d + 1) / (d (d + 1) / 2) = 2 tr(S) / d.
    assert found.atoms.mean() == pytest.approx(2 * 2.0 / 80, rel=1e-6)


def test_noise_of_the_contraction_has_its_variance():
    """The eigenvalues of U -> N U + U N have twice the variance of those of N, about."""
    dimension, noise, samples = 60, 3.0, 50.0
    found = quadratic_background(
        matrices=np.eye(dimension)[None] / np.sqrt(dimension),
        weights=np.ones(1),
        attenuation=1.0,
        second_chaos=0.0,
        contraction_noise=noise,
    )
    # One matrix of this size: its spectral variance fluctuates by O(1/d).
    assert found.at(samples).atoms.var() == pytest.approx(2 * noise / samples, rel=0.1)


def test_shapes_are_checked():
    with pytest.raises(InvalidData, match="shape"):
        plain_kernel(latent=np.ones((3, 2)), squared_norm=np.ones(4), n_features=5)
