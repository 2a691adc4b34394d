"""Measurements of a matrix against their definition, and the Gaussian control's covariance."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.sensing import CHUNK_ROWS, GaussianSensing, SampleSensing


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
    # Five standard errors of a Gaussian's variance, sqrt(2/n) each.
    assert np.mean(values**2) == pytest.approx(expected, rel=5 * np.sqrt(2 / n))


def test_refusals():
    with pytest.raises(InvalidData, match="centre has shape"):
        SampleSensing(ArraySource(np.ones((3, 2))), np.eye(3))
    with pytest.raises(InvalidParameter, match="n_samples is 0"):
        GaussianSensing(0, 3, seed=0)
