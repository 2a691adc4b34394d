"""Numbers of the kernel of a sample against explicit matrices (sequential 20)."""

import numpy as np
import pytest

from solvable.moment_spectrum.sample_kernel import corrected_kernel, plain_kernel
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
    """Norm and diagonal of matrices of shape (m, D, D)."""
    images = kernels @ directions
    diagonal = np.einsum("dp,mdp->mp", directions, images)
    return (
        np.linalg.norm(kernels, axis=(1, 2)) / n_features,
        diagonal,
    )


def agree(kernel, expected):
    for found, wanted in zip((kernel.size, kernel.diagonal), expected, strict=True):
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


def test_what_a_single_feature_takes_from_the_complement_is_exact(setup):
    features, directions, X = setup
    D, A = features.n_features, directions[:, :1]
    F = features.transform(X)
    outside = F - (F @ A) @ A.T
    kernel = plain_kernel(latent=F @ A, squared_norm=np.sum(F**2, axis=1), n_features=D)
    taken = np.sum(outside**2, axis=1) * (F @ A)[:, 0] ** 2 / (D - 1)
    np.testing.assert_allclose(kernel.outer[:, 0], taken, rtol=1e-9)
    left = outside[:, :, None] * outside[:, None, :] - (np.eye(D) - A @ A.T)
    np.testing.assert_allclose(kernel.rest, np.linalg.norm(left, axis=(1, 2)) / (D - 1), rtol=1e-9)


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
