"""Kernel ridge, random features and power iteration against independent results."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, MemoryLimitExceeded, NotConverged
from solvable.learners import KernelRidgeBaseline, RandomFeatureRidge, block_power_iteration
from solvable.operators import HermiteFeatures, MomentOperator


@parametrize_with_checks([KernelRidgeBaseline(), RandomFeatureRidge(width=30)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["rbf", "polynomial"])
def test_equals_scikit_learn_on_standardised_inputs(kind):
    rng = random_stream(1)
    X = 3 + 2 * rng.standard_normal((300, 4))
    y = X[:, 0] * X[:, 1] + 5
    model = KernelRidgeBaseline(kind=kind, degree=3, ridge=0.5).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    gamma = 1 / (2 * model.bandwidth_**2) if kind == "rbf" else 1 / 4
    # Half the median squared distance of 4 standardised coordinates is near 4.
    assert model.bandwidth_**2 == pytest.approx(7.0, rel=0.25)
    other = KernelRidge(alpha=0.5, kernel=kind, gamma=gamma, degree=3, coef0=1).fit(Z, y - y.mean())
    np.testing.assert_allclose(model.predict(X), other.predict(Z) + y.mean(), rtol=1e-8)


def test_ridge_is_chosen_by_the_noise():
    rng = random_stream(2)
    X = rng.standard_normal((600, 3))
    clean = X[:, 0] ** 2 - X[:, 1]
    quiet = KernelRidgeBaseline("polynomial", degree=2).fit(X, clean)
    loud = KernelRidgeBaseline("polynomial", degree=2).fit(X, clean + 20 * rng.standard_normal(600))
    assert quiet.ridge_ == 0.01
    assert loud.ridge_ >= 1
    assert quiet.score(X, clean) > 0.999


def test_single_precision_stays_single():
    X = random_stream(3).standard_normal((200, 5)).astype(np.float32)
    model = KernelRidgeBaseline(ridge=1.0).fit(X, X[:, 0])
    assert model.model_.dual_coef_.dtype == np.float32
    assert model.predict(X).dtype == np.float64


@pytest.mark.parametrize(
    ("setting", "words"),
    [({"kind": "rbff"}, "rbf"), ({"degree": 0}, "degree is 0"), ({"ridge": -1}, "ridge is -1")],
)
def test_bad_parameters(setting, words):
    with pytest.raises(InvalidParameter, match=words):
        KernelRidgeBaseline(**setting).fit(np.eye(4), np.arange(4.0))


def test_too_many_samples_are_refused_before_the_matrix_is_made():
    with pytest.raises(MemoryLimitExceeded, match=r"0\.0 GB; allowed: at most max_samples = 10"):
        KernelRidgeBaseline(max_samples=10).fit(np.eye(12), np.arange(12.0))


@pytest.mark.parametrize("setting", [{"width": 0}, {"ridge": -1.0}, {"ridge": np.nan}])
def test_bad_random_features(setting):
    with pytest.raises(InvalidParameter, match="allowed"):
        RandomFeatureRidge(**setting).fit(np.eye(4), np.arange(4.0))


def test_random_features_approach_a_smooth_function():
    rng = random_stream(4)
    X, X_test = rng.standard_normal((2, 3000, 3))
    label = np.tanh(X @ [1, -1, 0.5])
    narrow, wide = (
        RandomFeatureRidge(width=w, ridge=1e-3)
        .fit(X, label)
        .score(X_test, np.tanh(X_test @ [1, -1, 0.5]))
        for w in (5, 300)
    )
    assert wide > 0.99 > narrow


def operator_with_spikes(n=4000):
    rng = random_stream(5)
    X = rng.standard_normal((n, 30))
    weights = X[:, 0] ** 2 - X[:, 1] ** 2
    return MomentOperator(X, weights, HermiteFeatures(1, 30))


def test_power_iteration_converges_with_enough_passes():
    operator = operator_with_spikes()
    exact = np.linalg.eigh(operator.dense())
    order = np.argsort(-np.abs(exact.eigenvalues))[:2]
    found = block_power_iteration(operator, 2, passes=60, extra=4, rng=random_stream(0))
    overlap = np.linalg.norm(exact.eigenvectors[:, order].T @ found) ** 2
    assert overlap == pytest.approx(2, abs=1e-6)
    early = block_power_iteration(operator, 2, passes=1, extra=4, rng=random_stream(0))
    assert np.linalg.norm(exact.eigenvectors[:, order].T @ early) ** 2 < overlap
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-10)


def test_power_iteration_says_when_it_cannot():
    operator = operator_with_spikes(50)
    with pytest.raises(InvalidParameter, match="at most 30 vectors"):
        block_power_iteration(operator, 25, rng=random_stream(0))
    flat = MomentOperator(np.ones((4, 30)), np.zeros(4), HermiteFeatures(1, 30))
    with pytest.raises(NotConverged, match="rank"):
        block_power_iteration(flat, 2, extra=1, rng=random_stream(0))
