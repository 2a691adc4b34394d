"""Hermite features (arXiv:2605.14567, Equation 2.1): orthonormality, kernels, products."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter
from solvable.hermite import hermite_polynomials
from solvable.operators import HermiteFeatures
from solvable.operators._engines import sum_of_products, thin_product
from solvable.operators._symmetric import (
    mirror,
    quadratic_forms,
    rank_update,
    triangles,
    weighted_gram,
)
from solvable.operators.feature_map import FeatureMap

CASES = [(1, 7), (2, 1), (2, 6), (3, 1), (3, 5)]


def by_definition(X: np.ndarray, degree: int) -> np.ndarray:
    """Compute features as products of orthonormal polynomials, multi-indices in row-major order."""
    from itertools import combinations_with_replacement

    table = hermite_polynomials(X, degree)
    columns = []
    for indices in combinations_with_replacement(range(X.shape[1]), degree):
        powers = np.bincount(indices, minlength=X.shape[1])
        columns.append(np.prod([table[p, :, j] for j, p in enumerate(powers)], axis=0))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(("degree", "dimension"), CASES)
def test_explicit_features_follow_the_definition(degree: int, dimension: int) -> None:
    X = np.random.default_rng(0).standard_normal((9, dimension))
    features = HermiteFeatures(degree, dimension)
    explicit = features.transform(X)
    assert explicit.shape == (9, features.n_features)
    np.testing.assert_allclose(explicit, by_definition(X, degree), atol=1e-12)


@pytest.mark.parametrize(("degree", "bound"), [(2, 0.03), (3, 0.06)])
def test_covariance_is_the_identity(degree: int, bound: float) -> None:
    # E[F F^T] = I. The largest standard error of an entry is sqrt(E[F⁴] / n): E[F⁴] is 93 for
    # (x³ - 3 x) / sqrt(6), hence 0.022, and 15 for degree 2, hence 0.009.
    X = np.random.default_rng(11).standard_normal((200_000, 5))
    explicit = HermiteFeatures(degree, 5).transform(X)
    covariance = explicit.T @ explicit / len(X)
    assert np.abs(covariance - np.eye(len(covariance))).max() < bound
    assert np.abs(explicit.mean(axis=0)).max() < 4.5 / sqrt(len(X))


@pytest.mark.parametrize(("degree", "dimension"), CASES)
def test_dual_kernel_is_the_inner_product_of_features(degree: int, dimension: int) -> None:
    # Closed forms of the dual kernel for degrees 1, 2 and 3
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((8, dimension)), rng.standard_normal((6, dimension))
    features = HermiteFeatures(degree, dimension)
    F, G = features.transform(X), features.transform(Y)
    np.testing.assert_allclose(features.kernel(X, Y), F @ G.T, atol=1e-10)
    np.testing.assert_allclose(features.kernel(X), F @ F.T, atol=1e-10)
    np.testing.assert_allclose(features.squared_norm(X), (F**2).sum(axis=1), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("degree", "dimension"), CASES)
def test_products_equal_explicit_ones(degree: int, dimension: int, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((70, dimension)).astype(dtype)
    features = HermiteFeatures(degree, dimension)
    F = features.transform(X.astype(np.float64))
    U, W = rng.standard_normal((features.n_features, 3)), rng.standard_normal((70, 3))
    w = rng.standard_normal(70)
    tolerance = 1e-10 if dtype is np.float64 else 2e-3
    np.testing.assert_allclose(features.project(X, U), F @ U, atol=tolerance)
    np.testing.assert_allclose(features.adjoint(X, W), F.T @ W, atol=tolerance)
    weighted = features.weighted_product(X, w, U)
    scale = np.abs(F.T @ (w[:, None] * (F @ U))).max()
    np.testing.assert_allclose(weighted, F.T @ (w[:, None] * (F @ U)), atol=tolerance * scale)
    assert features.project(X, U).dtype == dtype
    assert weighted.dtype == np.float64


def test_results_of_no_rows() -> None:
    features = HermiteFeatures(2, 3)
    X, U = np.zeros((0, 3)), np.ones((6, 2))
    assert features.project(X, U).shape == (0, 2)
    assert features.transform(X).shape == (0, 6)
    assert features.squared_norm(X).shape == (0,)
    with pytest.raises(InvalidData, match="no samples"):
        features.weighted_product(X, np.zeros(0), U)


def test_integers_are_taken_as_real_numbers() -> None:
    features = HermiteFeatures(2, 2)
    X = np.array([[1, 2], [3, 4]])
    np.testing.assert_allclose(features.transform(X), by_definition(X * 1.0, 2))
    assert features.squared_norm(X).dtype == np.float64


@pytest.mark.parametrize("dimension", [1, 2, 9])
def test_symmetric_matrices_are_an_isometry(dimension: int) -> None:
    features = HermiteFeatures(2, dimension)
    rng = np.random.default_rng(5)
    U = rng.standard_normal((features.n_features, 4))
    V = features.to_symmetric(U)
    np.testing.assert_array_equal(V, V.transpose(0, 2, 1))
    np.testing.assert_allclose(np.einsum("aij,bij->ab", V, V), U.T @ U, atol=1e-12)
    np.testing.assert_allclose(features.from_symmetric(V), U, atol=1e-14)
    x = rng.standard_normal((1, dimension))
    form = (np.einsum("i,aij,j->a", x[0], V, x[0]) - np.einsum("aii->a", V)) / sqrt(2)
    np.testing.assert_allclose(features.project(x, U)[0], form, atol=1e-12)


def test_flattening_order_is_that_of_triu_indices() -> None:
    features = HermiteFeatures(2, 3)
    u = np.arange(6.0)[:, None] + 1
    expected = np.zeros((3, 3))
    expected[np.triu_indices(3)] = u[:, 0]
    expected[0, 1:] /= sqrt(2)
    expected[1, 2] /= sqrt(2)
    np.testing.assert_allclose(np.triu(features.to_symmetric(u)[0]), expected)


def test_symmetric_matrices_are_for_degree_two() -> None:
    for degree in (1, 3):
        with pytest.raises(InvalidParameter, match="of degree 2"):
            HermiteFeatures(degree, 3).to_symmetric(np.zeros((3, 1)))


def test_cubic_tensors_are_an_isometry() -> None:
    engine: Any = HermiteFeatures(3, 4)._engine
    U = np.random.default_rng(6).standard_normal((20, 3))
    tensors = engine.to_tensor(U)
    np.testing.assert_allclose(tensors.T @ tensors, U.T @ U, atol=1e-12)
    np.testing.assert_allclose(engine.from_tensor(tensors), U, atol=1e-12)
    cube = tensors[:, 0].reshape(4, 4, 4)
    np.testing.assert_array_equal(cube, cube.transpose(2, 0, 1))


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
)
def test_adjoint_and_symmetry(degree: int, dimension: int, n: int, seed: int) -> None:
    """<W, F U> = <F^T W, U>, and the weighted product is symmetric."""
    rng = np.random.default_rng(seed)
    features = HermiteFeatures(degree, dimension)
    X, w = rng.standard_normal((n, dimension)), rng.standard_normal(n)
    U = rng.standard_normal((features.n_features, 2))
    W = rng.standard_normal((n, 2))
    left = np.sum(W * features.project(X, U))
    right = np.sum(features.adjoint(X, W) * U)
    size = np.abs(W).sum() * np.abs(features.project(X, U)).max() + 1
    assert left == pytest.approx(right, abs=1e-11 * size)
    image = features.weighted_product(X, w, U)
    assert U[:, 0] @ image[:, 1] == pytest.approx(
        float(U[:, 1] @ image[:, 0]), abs=1e-10 * (1 + np.abs(image).max())
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_kernel_is_invariant_under_rotations(degree: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    X = rng.standard_normal((5, 4))
    features = HermiteFeatures(degree, 4)
    np.testing.assert_allclose(features.kernel(X @ rotation), features.kernel(X), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((4, 3), "degree is 4; allowed: 1, 2, 3"), ((2, 0), "dimension is 0"), ((0, 3), "degree")],
)
def test_bad_parameters(arguments: tuple[int, int], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        HermiteFeatures(*arguments)


def test_wrong_shapes_are_named() -> None:
    features = HermiteFeatures(2, 3)
    X = np.zeros((4, 3))
    with pytest.raises(InvalidData, match=r"X has shape \(4, 2\); allowed: \(n, 3\)"):
        features.transform(X[:, :2])
    with pytest.raises(InvalidData, match=r"U has shape \(5, 1\)"):
        features.project(X, np.zeros((5, 1)))
    with pytest.raises(InvalidData, match="W has shape"):
        features.adjoint(X, np.zeros((3, 1)))
    with pytest.raises(InvalidData, match="weights have shape"):
        features.weighted_product(X, np.zeros(3), np.zeros((6, 1)))


class Signs(FeatureMap):
    """Feature map of a user with the four required products."""

    dimension = 3

    @property
    def n_features(self) -> int:
        return 3

    def transform(self, X: Any) -> Any:
        return np.sign(X)

    def project(self, X: Any, U: Any) -> Any:
        return np.sign(X) @ U

    def adjoint(self, X: Any, W: Any) -> Any:
        return np.sign(X).T @ W

    def squared_norm(self, X: Any) -> Any:
        return np.full(len(X), 3.0)


def test_a_map_of_the_user_gets_the_other_products() -> None:
    rng = np.random.default_rng(8)
    X, w, U = rng.standard_normal((9, 3)), rng.standard_normal(9), rng.standard_normal((3, 2))
    features, F = Signs(), np.sign(X)
    np.testing.assert_allclose(features.kernel(X), F @ F.T)
    np.testing.assert_allclose(features.kernel(X, X[:2]), F @ F[:2].T)
    np.testing.assert_allclose(features.weighted_product(X, w, U), F.T @ (w[:, None] * (F @ U)))
    blocks = [(X[:4], w[:4]), (X[4:], w[4:])]
    np.testing.assert_allclose(features.weighted_sum(blocks, U), F.T @ (w[:, None] * (F @ U)))


def test_triangular_forms_and_rank_updates() -> None:
    rng = np.random.default_rng(9)
    for d in (1, 5, 600):
        X = rng.standard_normal((11, d))
        V = rng.standard_normal((1, d, d))
        V = V + V.transpose(0, 2, 1)
        forms = quadratic_forms(X, triangles(V, X.dtype)[0])
        np.testing.assert_allclose(forms, np.einsum("ni,ij,nj->n", X, V[0], X), rtol=1e-9)
        # A row with zero weight must not contribute.
        w = np.append(rng.standard_normal(10), 0.0)
        np.testing.assert_allclose(mirror(weighted_gram(X, w)), (X.T * w) @ X, atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_updates_add_to_what_is_there(order: Any, dtype: Any) -> None:
    rng = np.random.default_rng(10)
    Z, total = rng.standard_normal((7, 5)), np.asfortranarray(np.eye(5))
    rank_update(total, np.array(Z, dtype=dtype, order=order), -1.0)
    atol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.triu(total), np.triu(np.eye(5) - Z.T @ Z), atol=atol)


@pytest.mark.parametrize("n", [0, 1, 1488, 1489, 1601, 4096, 9001])
def test_thin_products_in_parts_are_the_products(n: int) -> None:
    """Parts of up to a million multiplications (84 by 8 by 1488), with any remainder."""
    rng = np.random.default_rng(n)
    table, pairs = rng.standard_normal((8, 84)), rng.standard_normal((105, n))[:84]
    np.testing.assert_allclose(thin_product(table, pairs), table @ pairs, rtol=0, atol=1e-12)
    weighted = rng.standard_normal((8, n))
    found, expected = sum_of_products(pairs, weighted), pairs @ weighted.T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dimension", [13, 17])
def test_weighted_products_of_degree_three_are_the_same_in_small_parts(dimension: int) -> None:
    """Compare one block of thousands of rows, multiplied in parts, with many blocks."""
    rng = np.random.default_rng(dimension)
    X, weights = rng.standard_normal((4_001, dimension)), rng.standard_normal(4_001)
    features = HermiteFeatures(3, dimension)
    U = rng.standard_normal((features.n_features, 1))
    whole = features.weighted_sum([(X, weights)], U)
    parts = features.weighted_sum(
        [(X[k : k + 50], weights[k : k + 50]) for k in range(0, 4_001, 50)], U
    )
    np.testing.assert_allclose(whole, parts, rtol=0, atol=1e-9 * np.abs(whole).max())
