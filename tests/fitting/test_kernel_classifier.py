"""Kernel ridge with a kernel of the distance: formulas by SciPy, choices by leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.fitting.kernel_classifier import RbfClassifier, RbfRegressor


def test_the_kernel_of_the_regressor_interpolates():
    x = np.linspace(-1, 1, 50)[:, None]
    model = RbfRegressor().fit(x, np.sin(3 * x[:, 0]))
    assert np.abs(model.predict(x + 0.01) - np.sin(3 * (x[:, 0] + 0.01))).max() < 0.05


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "linear"])
def test_kernels_of_the_distance(kernel):
    rng = random_stream(0)
    X, Z = rng.standard_normal((2, 40, 3))
    model = RbfRegressor(kernels=(kernel,)).fit(X, X[:, 0])
    squares = cdist(Z, model._samples, "sqeuclidean")
    median = np.median(cdist(X, X, "sqeuclidean")[~np.eye(40, dtype=bool)])
    # Rounding errors of distances of a row to itself count as distances.
    assert model._median == pytest.approx(median, rel=0.01)
    unit = model.bandwidth_ * model._median
    expected = {
        "gaussian": np.exp(-squares / unit),
        "laplace": np.exp(-np.sqrt(squares / unit)),
        "linear": -squares / (2 * unit),
    }[kernel]
    np.testing.assert_allclose(model._kernel(Z), expected, atol=1e-12)


def test_the_linear_kernel_predicts_linear_functions():
    X = random_stream(1).standard_normal((60, 4))
    y = 2 + X @ [1.0, -1.0, 0.5, 0.0]
    model = RbfRegressor(kernels=("gaussian", "laplace", "linear")).fit(X, y)
    assert model.kernel_ == "linear"
    np.testing.assert_allclose(model.predict(3 * X), 2 + 3 * (y - 2), atol=1e-3)


def test_more_rows_than_are_tuned_are_all_fitted():
    rng = random_stream(2)
    X = rng.uniform(-1, 1, (900, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = RbfClassifier(seed=1).fit(X, y)
    assert len(model.readout_.coefficients) == 900
    assert model.score(*((Z := rng.uniform(-1, 1, (500, 2))), Z[:, 0] * Z[:, 1] > 0)) > 0.95
    again = RbfClassifier(seed=1).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_scale_is_fitted_to_the_training_rows():
    class Shift:
        def __init__(self, X):
            self.mean = X.mean(axis=0)

        def apply(self, X):
            return (X - self.mean) * [1, 0]

    X = random_stream(3).standard_normal((50, 2))
    model = RbfRegressor(Shift).fit(X, X[:, 0])
    np.testing.assert_allclose(model.predict(X * [1, 9]), model.predict(X), atol=1e-9)


def test_unknown_kernels():
    for kernels in ((), ("cubic",)):
        with pytest.raises(InvalidParameter, match=r"kernels .*allowed: .*gaussian"):
            RbfRegressor(kernels=kernels).fit(np.eye(3), np.arange(3))
