"""Features of degree 3 sample by sample, against explicit matrices of single samples."""

import numpy as np
import pytest

from solvable.moment_spectrum.cubic_forms import (
    CubicForms,
    crossed_contractions,
    joined,
    tensors_of,
)
from solvable.operators import HermiteFeatures, MomentOperator


def directions(d: int, p: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.standard_normal((HermiteFeatures(3, d).n_features, p)))[0]


def corrected_matrix(x: np.ndarray) -> np.ndarray:
    features = HermiteFeatures(3, x.size)
    return MomentOperator(x[None], np.ones(1), features, correction="wick").dense()


@pytest.mark.parametrize(("d", "p"), [(3, 1), (4, 2), (7, 4)])
def test_numbers_of_the_corrected_kernel_are_those_of_its_matrix(d: int, p: int) -> None:
    rng = np.random.default_rng(d)
    everything = directions(d, 2 * p, d)
    A, V = everything[:, :p], everything[:, p:]
    X = rng.standard_normal((5, d)) * [[0.3], [1], [1], [1], [2]]
    features = HermiteFeatures(3, d)
    sample = CubicForms(A, np.stack([V, 2 * V, V[:, ::-1]]))(X)
    f, g = features.project(X, A), features.project(X, V)
    np.testing.assert_allclose(sample.latent, f, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sample.squared_norm, features.squared_norm(X), rtol=1e-9)
    np.testing.assert_allclose(sample.crossed[1], 2 * f * g, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(sample.crossed[2], f * g[:, ::-1], rtol=1e-3, atol=1e-3)
    for k, x in enumerate(X):
        K = corrected_matrix(x)
        scale = np.linalg.norm(K)
        np.testing.assert_allclose(sample.sixth[k], np.diag(A.T @ K @ A), atol=1e-5 * scale)
        np.testing.assert_allclose(sample.crossed_sixth[k], np.diag(V.T @ K @ A), atol=1e-5 * scale)
        images = np.sum((K @ A) ** 2, axis=0)
        np.testing.assert_allclose(sample.images[k], images, atol=1e-5 * scale**2)
        assert sample.kernel.size[k] == pytest.approx(scale / features.n_features, rel=1e-9)
        coupling = (images - np.diag(A.T @ K @ A) ** 2) / features.n_features
        np.testing.assert_allclose(sample.kernel.coupling[k], coupling, atol=1e-5 * scale**2)


def test_the_lower_chaoses_have_mean_zero_and_are_orthogonal_to_the_highest() -> None:
    d = 5
    A = directions(d, 2, 1)
    X = np.random.default_rng(2).standard_normal((60_000, d))
    forms = CubicForms(A, np.zeros((3, *A.shape)))
    sample = joined([forms(part) for part in np.array_split(X, 3)])
    assert sample.latent.shape == (60_000, 2)
    for values in (sample.sixth, sample.fourth, sample.second):
        error = values.std(axis=0) / np.sqrt(len(X))
        assert (np.abs(values.mean(axis=0)) < 4 * error).all()
    product = sample.fourth * sample.second
    assert (np.abs(product.mean(axis=0)) < 4 * product.std(axis=0) / np.sqrt(len(X))).all()


def test_crossed_contractions_are_moments_of_the_corrected_kernel() -> None:
    # E[f_j^2 <A_i, K A_i>] = 2 R_ij
    d = 3
    A = directions(d, 3, 4)
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    X = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    chance = np.prod(np.stack(np.meshgrid(*[weights] * d, indexing="ij")), axis=0).ravel()
    sample = CubicForms(A, np.zeros((3, *A.shape)))(X)
    exact = (sample.sixth * chance[:, None]).T @ sample.latent**2
    np.testing.assert_allclose(exact, 2 * crossed_contractions(tensors_of(A)), atol=1e-3)
