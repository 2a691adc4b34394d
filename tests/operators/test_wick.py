"""The correction keeps only the highest chaos of a product of features."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import hermite_e
from scipy.special import factorial

from solvable.errors import InvalidParameter
from solvable.operators import HermiteFeatures, MomentOperator
from solvable.operators.feature_map import FeatureMap


def highest_chaos(X: np.ndarray, T: np.ndarray, degree: int) -> np.ndarray:
    r"""(1/n) sum T He_{alpha + beta}(x) / sqrt(alpha! beta!), entry by entry.

    The leading monomial of F_alpha F_beta is x^(alpha + beta) / sqrt(alpha! beta!), which fixes its
    projection on the polynomials of degree 2 q orthogonal to all of lower degree. No product
    formula and no contraction enters.
    """
    n, d = X.shape
    powers = np.array(
        [
            np.bincount(indices, minlength=d)
            for indices in combinations_with_replacement(range(d), degree)
        ]
    )
    table = np.stack(
        [hermite_e.hermeval(X, np.eye(2 * degree + 1)[k]) for k in range(2 * degree + 1)]
    )
    scale = 1 / np.sqrt(factorial(powers).prod(axis=1))
    total = np.empty((len(powers), len(powers)))
    for row, alpha in enumerate(powers):
        values = np.ones((len(powers), n))
        for j in range(d):
            values *= table[(alpha + powers)[:, j], :, j]
        total[row] = values @ T / n * scale[row] * scale
    return total


@pytest.mark.parametrize(("degree", "dimension"), [(1, 12), (2, 12), (2, 1), (3, 1), (3, 12)])
def test_corrected_operator_is_the_highest_chaos(degree: int, dimension: int) -> None:
    # Corrected operator against the projection above, which uses no product formula
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((25, dimension)), rng.standard_normal(25)
    features = HermiteFeatures(degree, dimension)
    operator = MomentOperator(X, T, features, correction="wick")
    expected = highest_chaos(X, T, degree)
    tolerance = 1e-12 * np.abs(expected).max()
    if degree == 1:
        # For degree 1, x x^T - I is already of the highest chaos.
        np.testing.assert_allclose(
            operator.dense(), MomentOperator(X, T, features).dense(), atol=1e-15
        )
    np.testing.assert_allclose(operator.dense(), expected, atol=tolerance)
    np.testing.assert_allclose(
        operator.matmat(np.eye(features.n_features)), expected, atol=tolerance
    )


@pytest.mark.parametrize("degree", [2, 3])
def test_product_equals_matrix_at_dimension_twelve(degree: int) -> None:
    rng = np.random.default_rng(2)
    X, T = rng.standard_normal((60, 12)), rng.standard_normal(60)
    operator = MomentOperator(X, T, HermiteFeatures(degree, 12), correction="wick")
    matrix = operator.dense()
    U = rng.standard_normal((len(matrix), 3))
    scale = np.abs(matrix @ U).max()
    np.testing.assert_allclose(operator.matmat(U), matrix @ U, atol=1e-8 * scale)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12 * np.abs(matrix).max())


def test_quadratic_correction_is_the_anticommutator_with_the_second_moment() -> None:
    rng = np.random.default_rng(3)
    X, T = rng.standard_normal((60, 12)), rng.standard_normal(60)
    features = HermiteFeatures(2, 12)
    U = rng.standard_normal((78, 2))
    first = (X.T * T) @ X / 60 - T.mean() * np.eye(12)
    V = features.to_symmetric(U)
    expected = MomentOperator(X, T, features).matmat(U) - features.from_symmetric(
        first @ V + V @ first
    )
    corrected = MomentOperator(X, T, features, correction="wick").matmat(U)
    np.testing.assert_allclose(corrected, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("degree", [2, 3])
def test_labels_of_low_degree_are_invisible(degree: int) -> None:
    """A label of degree 2 has no part in the highest chaos; its uncorrected matrix is not noise."""
    rng = np.random.default_rng(4)
    n, d = 20_000, 5
    X = rng.standard_normal((n, d))
    y = (X[:, 0] ** 2 - 1) / sqrt(2)
    features = HermiteFeatures(degree, d)
    plain = MomentOperator(X, y, features)
    corrected = MomentOperator(X, y, features, correction="wick")
    # Pure noise has operator norm of about 2 s, or less without the low chaoses.
    edge = 2 * plain.statistics.noise_scale
    assert np.abs(np.linalg.eigvalsh(plain.dense())).max() > 3 * edge
    assert np.abs(np.linalg.eigvalsh(corrected.dense())).max() < 1.7 * edge


def test_shift_of_the_bulk_is_removed() -> None:
    # Weights of one sign shift the bulk of the uncorrected operator.
    rng = np.random.default_rng(5)
    d, n = 16, 60_000
    X = rng.standard_normal((n, d))
    features = HermiteFeatures(2, d)
    A, _ = np.linalg.qr(rng.standard_normal((features.n_features, 2)))
    h = features.project(X, A)
    y = ((h**2 - 1) / 2).sum(axis=1)
    centre = [
        np.median(np.linalg.eigvalsh(MomentOperator(X, y, features, correction=name).dense()))
        for name in ("none", "wick")
    ]
    assert centre[0] > 5 * abs(centre[1])


class Identity(FeatureMap):
    dimension = 2

    @property
    def n_features(self) -> int:
        return 2

    def transform(self, X: Any) -> Any:
        return X

    def project(self, X: Any, U: Any) -> Any:
        return X @ U

    def adjoint(self, X: Any, W: Any) -> Any:
        return X.T @ W

    def squared_norm(self, X: Any) -> Any:
        return (X**2).sum(axis=1)


def test_other_features_have_no_correction() -> None:
    X = np.random.default_rng(0).standard_normal((5, 2))
    T = np.arange(5.0)
    np.testing.assert_allclose(
        MomentOperator(X, T, Identity()).dense(),
        MomentOperator(X, T, HermiteFeatures(1, 2)).dense(),
        atol=1e-14,
    )
    with pytest.raises(InvalidParameter, match="HermiteFeatures only; got Identity"):
        MomentOperator(X, T, Identity(), correction="wick")
