"""Gradient descent on the first layer of a quadratic network, and its limit of small learning rates."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.frame.points import NO_PREDICTION
from solvable.models.multi_index.hierarchical.learner import first_layer_directions
from solvable.models.multi_index.hierarchical.measure import measure
from solvable.models.multi_index.hierarchical.parameters import HierarchicalParameters
from solvable.models.multi_index.hierarchical.predict import predict


def sample(n=900, d=30):
    rng = random_stream(0, "first layer test")
    X = rng.standard_normal((n, d))
    T = np.tanh(X[:, 0] ** 2 - X[:, 1] ** 2 + 0.5 * rng.standard_normal(n))
    return X, T - T.mean()


def test_small_learning_rates_give_the_eigenvectors_of_largest_modulus():
    X, T = sample()
    values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / len(X))
    leading = vectors[:, np.argsort(-np.abs(values))[:2]]
    missed = []
    for rate in (1e-2, 1e-3, 1e-4):
        found = first_layer_directions(X, T, 2, learning_rate=rate, seed=1)
        np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-12)
        missed.append(2 - np.sum((leading.T @ found) ** 2))
    # Directions move at first order in the learning rate, their squared overlaps at second order.
    assert missed[-1] < 1e-5
    np.testing.assert_allclose(np.divide(missed[:-1], missed[1:]), 100, rtol=0.3)


def test_directions_of_both_signs_are_found():
    X, T = sample(6_000)
    found = first_layer_directions(X, T, 2, learning_rate=0.01, seed=1)
    # The eigenvalues of x_1 and x_2 have opposite signs; 30 dimensions over 6,000 samples blur them.
    assert np.sum(found[:2] ** 2) > 1.9


def test_tensors_give_the_same_directions():
    torch = pytest.importorskip("torch")
    X, T = sample()
    host = first_layer_directions(X, T, 2, learning_rate=0.01, seed=1)
    found = first_layer_directions(torch.tensor(X), T, 2, learning_rate=0.01, seed=1)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(np.sum((host.T @ found) ** 2), 2, rtol=1e-10)


def test_a_diverged_network_has_no_directions():
    X, T = sample(60)
    assert first_layer_directions(X, T, 2, learning_rate=1e3, seed=1) is None


@pytest.mark.slow
def test_one_replicate_compares_gradient_descent_with_the_estimator():
    parameters = HierarchicalParameters(
        dimension=60, features=3, sample_ratio=40, readout="none", learning_rate=0.01
    )
    found = measure(parameters, random_stream(0, "replicate"))
    expected = predict(parameters)
    assert found["estimator_overlap"] > 0.99
    # Where all features are detected, both find the same directions on the same samples.
    np.testing.assert_allclose(found["gradient_overlap"], found["squared_overlap"], atol=0.02)
    np.testing.assert_allclose(
        expected["gradient_overlap"], expected["squared_overlap"], atol=0.003
    )


@pytest.mark.parametrize(("ratio", "seed"), [(5, 31), (20, 32)])
def test_gradient_descent_takes_the_longer_end_of_a_skewed_bulk(ratio, seed):
    """With label_map=square the upper edge is far from 0, and most eigenvectors come from there."""
    parameters = HierarchicalParameters(
        dimension=60, features=4, sample_ratio=ratio, readout="none", learning_rate=0.01,
        link="abs", label_map="square", decay=0.7,
    )  # fmt: skip
    found = [measure(parameters, random_stream(seed, "replicate", k)) for k in range(40)]
    overlaps = np.array([metrics["gradient_overlap"] for metrics in found])
    error = overlaps.std(axis=0, ddof=1) / np.sqrt(len(overlaps))
    expected = predict(parameters)
    predicted = np.array(expected["gradient_overlap"])
    assert (np.abs(predicted - overlaps.mean(axis=0)) < 0.01 + 3 * error).all()
    # The estimator's ranking gives smaller overlaps.
    assert predicted[1] > expected["squared_overlap"][1] + 0.04
    assert expected["estimator_overlap"] is None
    assert "ranks by modulus" in expected[NO_PREDICTION]


@pytest.mark.parametrize(
    "values", [{"learning_rate": 0.0}, {"deflation": 1}, {"trained_samples": 100}]
)
def test_no_network_is_trained(values):
    settings = {"dimension": 20, "features": 2, "sample_ratio": 10, "learning_rate": 0.01}
    parameters = HierarchicalParameters(**{**settings, **values})
    for found in (measure(parameters, random_stream(0, "replicate")), predict(parameters)):
        assert found["gradient_overlap"] is None
        assert found["estimator_overlap"] is None
