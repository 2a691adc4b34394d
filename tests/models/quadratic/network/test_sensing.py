"""Measurements of a matrix, whitening and the Gaussian control against their definitions."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.errors import InvalidData
from solvable.models.quadratic.network.sensing import (
    CHUNK_ROWS,
    SYMMETRIC_COLUMNS,
    GaussianSensing,
    SampleSensing,
    condition_number,
    second_moment,
    weighted_gram,
    whitening_of,
)


def test_products_equal_explicit_matrices_across_chunks():
    rng = random_stream(0)
    X = rng.standard_normal((CHUNK_ROWS + 7, 4))
    factor, residual = rng.standard_normal((4, 2)), rng.standard_normal(len(X))
    matrices = (X[:, :, None] * X[:, None, :] - np.eye(4)) / 2
    sensing = SampleSensing(ArraySource(X))
    expected = np.einsum("nij,ij->n", matrices, factor @ factor.T)
    np.testing.assert_allclose(sensing.forward(factor), expected, atol=1e-12)
    expected = np.einsum("nij,n->ij", matrices, residual)
    np.testing.assert_allclose(sensing.adjoint(residual), expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["samples", "samples, centred", "gaussian"])
def test_adjoint(kind):
    rng = random_stream(1)
    X = rng.standard_normal((50, 6))
    sensing = {
        "samples": SampleSensing(ArraySource(X)),
        "samples, centred": SampleSensing(ArraySource(X), X.T @ X / 50),
        "gaussian": GaussianSensing(50, 6, seed=0),
    }[kind]
    factor, residual = rng.standard_normal((6, 3)), rng.standard_normal(50)
    dual = sensing.adjoint(residual)
    np.testing.assert_array_equal(dual, dual.T)
    assert residual @ sensing.forward(factor) == pytest.approx(np.sum(dual * (factor @ factor.T)))


def test_sample_centre_leaves_no_mean():
    X = random_stream(2).standard_normal((50, 6))
    sensing = SampleSensing(ArraySource(X), X.T @ X / 50)
    assert abs(np.mean(sensing.forward(np.eye(6)[:, :2]))) < 1e-12


def test_control_has_the_variance_of_samples():
    n, d = 4000, 5
    factor = random_stream(3).standard_normal((d, 2))
    expected = 2 * np.sum((factor @ factor.T) ** 2) / d
    values = GaussianSensing(n, d, seed=1).forward(factor)
    # Five standard errors sqrt(2/n) of the variance of a Gaussian.
    assert np.mean(values**2) == pytest.approx(expected, rel=5 * np.sqrt(2 / n))


def features(n=CHUNK_ROWS + 100, d=5, seed=0):
    rng = random_stream(seed, "features")
    return 3 + rng.standard_normal((n, d)) @ rng.standard_normal((d, d))


def test_moments_across_blocks():
    X = features()
    np.testing.assert_allclose(second_moment(ArraySource(X)), X.T @ X / len(X))
    centred = second_moment(ArraySource(X), X.mean(axis=0))
    np.testing.assert_allclose(centred, np.cov(X.T, bias=True))


def test_whitened_features_have_mean_zero_and_unit_covariance():
    X = features()
    whitening = whitening_of(ArraySource(X))
    Z = (X - whitening.mean) @ whitening.directions
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(5), atol=1e-10)


def test_directions_without_variance_are_left_out():
    X = features()
    repeated = np.hstack([X, X[:, :2], np.full((len(X), 1), 1e3)])
    assert whitening_of(ArraySource(repeated)).directions.shape == (8, 5)
    assert whitening_of(ArraySource(X[:3])).directions.shape == (5, 2)
    with pytest.raises(InvalidData, match="all 4 samples are equal"):
        whitening_of(ArraySource(np.full((4, 2), 0.1)))


def test_measurements_of_whitened_samples_are_those_of_samples_whitened_before():
    X = features()
    whitening = whitening_of(ArraySource(X))
    Z = (X - whitening.mean) @ whitening.directions
    rng = random_stream(1)
    factor, residual = rng.standard_normal((5, 2)), rng.standard_normal(len(X))
    inside = SampleSensing(ArraySource(X), whitening=whitening)
    before = SampleSensing(ArraySource(Z))
    np.testing.assert_allclose(inside.forward(factor), before.forward(factor), atol=1e-10)
    np.testing.assert_allclose(inside.adjoint(residual), before.adjoint(residual), atol=1e-8)


@pytest.mark.parametrize("columns", [3, SYMMETRIC_COLUMNS])
def test_weighted_gram_either_way(columns):
    rng = random_stream(2)
    X, weights = rng.standard_normal((300, columns)), rng.standard_normal(300)
    weights[5] = 0
    found = weighted_gram(X, weights)
    np.testing.assert_allclose(found, X.T @ np.diag(weights) @ X, atol=1e-11)
    np.testing.assert_allclose(
        weighted_gram(X, -np.abs(weights)), X.T @ (-np.abs(weights)[:, None] * X)
    )


def test_condition_number():
    assert condition_number(np.diag([9.0, 3.0, 1.0])) == pytest.approx(9)
    assert condition_number(np.diag([1.0, 0.0])) == np.inf
    assert condition_number(np.zeros((2, 2))) == np.inf
