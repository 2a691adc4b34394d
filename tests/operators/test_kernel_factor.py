"""The filter on a kernel equals the filter on its features: equation 3 of docs/derivations/lofi.md."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData
from solvable.operators import RandomLift, dense_by_modulus
from solvable.operators.kernel_factor import factorise_kernel


def test_filter_on_the_kernel_is_the_filter_on_the_features():
    # n = 120, P = 4000, six directions
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 20)), np.sign(rng.standard_normal(120))
    Z = RandomLift(20, 4000, "relu", np.sqrt(20), seed=1).transform(X)
    V = np.linalg.svd(Z, full_matrices=False)[2].T
    # The signed operator acts in the span of the samples: compute its eigenpairs there.
    inner = V.T @ (Z.T @ (y[:, None] * (Z @ V))) / 120
    explicit = dense_by_modulus((inner + inner.T) / 2, 6)
    G = Z @ Z.T
    factor = factorise_kernel(G)
    matrix = factor.rows.T @ (y[:, None] * factor.rows) / 120
    dual = dense_by_modulus((matrix + matrix.T) / 2, 6)
    np.testing.assert_allclose(dual.values, explicit.values, atol=1e-10)
    A = factor.dual(dual.vectors)
    corner = G[np.ix_(factor.landmarks, factor.landmarks)]
    np.testing.assert_allclose(A.T @ corner @ A, np.eye(6), atol=1e-10)
    features = G[:, factor.landmarks] @ A
    np.testing.assert_allclose(features, factor.rows @ dual.vectors, atol=1e-9)
    np.testing.assert_allclose(np.abs(features), np.abs(Z @ V @ explicit.vectors), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 25), rank=st.integers(1, 25), seed=st.integers(0, 10_000))
def test_factor_has_the_numerical_rank_and_gives_back_the_kernel(n, rank, seed):
    R = np.random.default_rng(seed).standard_normal((n, rank))
    G = R @ R.T
    kept = G.copy()
    factor = factorise_kernel(G)
    np.testing.assert_array_equal(G, kept)
    assert factor.rows.shape[1] <= min(n, rank)
    np.testing.assert_allclose(factor.rows @ factor.rows.T, G, atol=1e-8 * np.diag(G).max())
    np.testing.assert_allclose(
        factor.corner @ factor.corner.T,
        G[np.ix_(factor.landmarks, factor.landmarks)],
        atol=1e-8 * np.diag(G).max(),
    )
    np.testing.assert_allclose(factor.rows[factor.landmarks], factor.corner, atol=1e-12)
    assert len(set(factor.landmarks)) == len(factor.landmarks)


def test_greedy_landmarks_are_the_nystrom_approximation():
    X = np.random.default_rng(1).standard_normal((60, 4))
    G = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2))
    factor = factorise_kernel(G, max_rank=20)
    p = factor.landmarks
    assert factor.rows.shape == (60, 20)
    nystrom = G[:, p] @ np.linalg.solve(G[np.ix_(p, p)], G[p])
    np.testing.assert_allclose(factor.rows @ factor.rows.T, nystrom, atol=1e-8)
    # The residual is positive and smaller than with fewer landmarks.
    errors = [
        np.trace(G) - np.sum(factorise_kernel(G, max_rank=m).rows ** 2) for m in (5, 10, 20, 60)
    ]
    assert all(a > b > -1e-9 for a, b in pairwise(errors))


def test_the_first_landmarks_of_a_factor_are_the_factor_on_fewer():
    X = np.random.default_rng(4).standard_normal((70, 5))
    G = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / 8)
    part, fewer = factorise_kernel(G).leading(13), factorise_kernel(G, max_rank=13)
    for name in ("rows", "landmarks", "corner"):
        np.testing.assert_array_equal(getattr(part, name), getattr(fewer, name))
    B = np.eye(13)[:, :3]
    np.testing.assert_allclose(G[:, part.landmarks] @ part.dual(B), part.rows @ B, atol=1e-9)


def test_noise_of_rounding_is_dropped_instead_of_inverted():
    # Duplicates and noise of 1e-13 must not add directions.
    rng = np.random.default_rng(2)
    X = np.repeat(rng.standard_normal((10, 3)), 3, axis=0)
    noise = rng.standard_normal((30, 30)) * 1e-13
    factor = factorise_kernel(X @ X.T + noise + noise.T)
    assert factor.rows.shape[1] == 3
    assert np.abs(factor.dual(np.eye(3))).max() < 1e2


def test_kernels_without_content_are_refused():
    with pytest.raises(InvalidData, match="zero"):
        factorise_kernel(np.zeros((3, 3)))
    with pytest.raises(InvalidData, match="NaN"):
        factorise_kernel(np.full((3, 3), np.nan))
