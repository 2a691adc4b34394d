"""Per-sample numbers of features of degree 3, against explicit matrices (sequential 25)."""

import numpy as np
import pytest

from solvable.moment_spectrum.cubic_forms import (
    crossed_contractions,
    cubic_operator,
    cubic_sample,
    tensors_of,
)
from solvable.operators import HermiteFeatures, MomentOperator


def directions(d: int, p: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.standard_normal((HermiteFeatures(3, d).n_features, p)))[0]


def grid(d: int, order: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a Gauss rule in d coordinates."""
    nodes, chances = np.polynomial.hermite_e.hermegauss(order)
    X = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    chance = np.prod(np.stack(np.meshgrid(*[chances / chances.sum()] * d, indexing="ij")), axis=0)
    return X, chance.ravel()


@pytest.mark.parametrize(("d", "p"), [(3, 1), (4, 2), (7, 4)])
def test_numbers_of_the_corrected_kernel_are_those_of_its_matrix(d: int, p: int) -> None:
    A = directions(d, p, d)
    X = np.random.default_rng(d).standard_normal((5, d)) * [[0.3], [1], [1], [1], [2]]
    features = HermiteFeatures(3, d)
    sample = cubic_sample(A, [X[:2], X[2:]])
    np.testing.assert_allclose(sample.latent, features.project(X, A), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sample.squared_norm, features.squared_norm(X), rtol=1e-9)
    for k, x in enumerate(X):
        K = MomentOperator(x[None], np.ones(1), features, correction="wick").dense()
        scale = np.linalg.norm(K)
        np.testing.assert_allclose(sample.sixth[k], np.diag(A.T @ K @ A), atol=1e-5 * scale)
        images = np.sum((K @ A) ** 2, axis=0)
        np.testing.assert_allclose(sample.images[k], images, atol=1e-5 * scale**2)
        assert sample.kernel.size[k] == pytest.approx(scale / features.n_features, rel=1e-9)


def test_crossed_contractions_are_moments_of_the_corrected_kernel() -> None:
    # E[f_j² <A_i, K A_i>] = 2 R_ij
    A = directions(3, 3, 4)
    X, chance = grid(3, 8)
    sample = cubic_sample(A, [X])
    exact = (sample.sixth * chance[:, None]).T @ sample.latent**2
    np.testing.assert_allclose(exact, 2 * crossed_contractions(tensors_of(A)), atol=1e-3)


@pytest.mark.parametrize(("d", "weights"), [(2, [1.0]), (3, [0.8, -0.6]), (4, [0.7, 0.5, 0.4])])
def test_operator_of_the_index(d: int, weights: list[float]) -> None:
    """Against the exact mean of the corrected operator, by Gauss-Hermite quadrature."""
    features, lam = HermiteFeatures(3, d), np.array(weights)
    A, c = directions(d, lam.size, d), np.sqrt(2) * lam
    X, chance = grid(d)
    index = (features.project(X, A) ** 2 - 1) @ lam / np.sqrt(2)
    T = index * chance * len(X)
    exact = MomentOperator(X, T, features, correction="wick").dense()
    matrix = cubic_operator(tensors_of(A), c)(np.eye(features.n_features)) + (A * c) @ A.T
    np.testing.assert_allclose(matrix, exact, atol=1e-9)
