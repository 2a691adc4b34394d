"""Column weights follow the gradient of the fit, and both members are kernel ridge regressions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from solvable.fitting.kernel_classifier import RbfRegressor
from solvable.fitting.ridge import kernel_ridge
from solvable.learn.competitors import methods
from solvable.learn.design import Design
from solvable.learn.kernels_of_columns import KERNELS, kernel_of, size_of, squared_gradients
from solvable.learn.metric_kernel import MetricKernelClassifier, MetricKernelRegressor
from solvable.networks.base import standardise_columns

SCALE = partial(standardise_columns, scaling="columns")


def two_of_twenty(rows, seed):
    """A smooth function of two of twenty columns of unequal scales, with noise of variance 0.01."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, 20))
    y = np.sin(2 * Z[:, 3]) + Z[:, 8] ** 2 / 2 + 0.1 * rng.standard_normal(rows)
    return Z * np.exp(np.linspace(-3, 3, 20)) + 5, y


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_finite_differences(kernel):
    rng = np.random.default_rng(0)
    Z, dual = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    size = size_of(kernel, 1.0, Z)
    step, total = 1e-5, np.zeros(3)
    for column in range(3):
        moved = [Z + sign * step * np.eye(3)[column] for sign in (1, -1)]
        # The derivative at a sample excludes the corner of its own term.
        up, down = (kernel_of(kernel, size, part, Z) for part in moved)
        slope = (up - down) / (2 * step)
        total[column] = np.mean(np.sum((slope @ dual) ** 2, axis=1))
    np.testing.assert_allclose(squared_gradients(kernel, size, Z, dual), total, rtol=1e-4)


def test_relevant_columns_get_the_weight_and_the_error_falls():
    X, y = two_of_twenty(200, 1)
    fresh, truth = two_of_twenty(1000, 2)
    model = MetricKernelRegressor(SCALE).fit(X, y)
    weights = model.column_weights_
    assert set(np.argsort(-weights)[:2]) == {3, 8}
    assert weights[[3, 8]].sum() > 0.8 * weights.sum()
    error, gaussian = (
        np.mean((one.predict(fresh) - truth) ** 2) for one in (model, RbfRegressor(SCALE).fit(X, y))
    )
    assert error < 0.5 * gaussian


def test_members_are_kernel_ridge_regressions_of_all_rows():
    X, y = two_of_twenty(330, 3)  # more rows than those that choose the settings
    model = MetricKernelRegressor(SCALE).fit(X, y)
    fresh, _ = two_of_twenty(50, 4)
    Z, new = (standardise_columns(X, "columns").apply(rows) for rows in (X, fresh))
    total = np.zeros(50)
    for member in model.members_:
        kernel = partial(kernel_of, member.kernel, member.size)
        K = kernel(Z * member.scales, Z * member.scales)
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        # residual = penalty x dual weights
        residual = (y - member.outputs(Z, Z)[:, 0]) / member.coefficients[:, 0]
        penalty = float(np.median(residual))
        relative = penalty / (np.trace(centred) / len(K))
        fit = kernel_ridge(K, y[:, None], regularisation=relative)
        part = kernel(new * member.scales, Z * member.scales) @ fit.coefficients + fit.intercept
        total += part[:, 0] / 2
    np.testing.assert_allclose(model.predict(fresh), total, rtol=1e-6)
    np.testing.assert_allclose(model.members_[0].scales, 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_separated_by_the_relevant_column(classes):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((600, 12))
    y = np.searchsorted(np.linspace(-0.5, 0.5, classes - 1), X[:, 4])
    model = MetricKernelClassifier(SCALE).fit(X[:200], y[:200])
    assert np.argmax(model.column_weights_) == 4
    assert np.mean(model.predict(X[200:]) != y[200:]) < 0.08
    outputs = model.decision_function(X[200:])
    assert outputs.shape == ((400,) if classes == 2 else (400, 3))


def test_constant_columns_a_rare_class_and_few_rows_are_no_error():
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.standard_normal((24, 2)), np.ones(24)])
    y = np.array([5] * 22 + [7, 9])
    model = MetricKernelClassifier(SCALE, seed=2**40).fit(X, y)
    assert set(model.predict(X)) <= {5, 7, 9}
    same = MetricKernelRegressor(SCALE).fit(np.ones((30, 2)), rng.standard_normal(30))
    assert np.ptp(same.predict(np.ones((3, 2)))) < 1e-9


def test_learn_compares_it():
    for regression in (True, False):
        keys = [one.key for one in methods(Design(regression, "columns"))]
        assert keys.count("metric-kernel") == 1
