"""The quadratic network as an estimator."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.learners.quadratic import QuadraticNetRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        QuadraticNetRegressor(max_iterations=50),
        QuadraticNetRegressor("gcv", solver="fista", max_iterations=50),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def samples(n=600, d=12, seed=0):
    rng = random_stream(seed)
    X = rng.standard_normal((n, d))
    return X, 3 + X[:, 0] ** 2 + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("solver", ["amp", "fista", "factorised"])
def test_solvers_learn_the_same(solver):
    X, y = samples()
    model = QuadraticNetRegressor(0.05, solver=solver).fit(X[:400], y[:400])
    reference = QuadraticNetRegressor(0.05, solver="fista", tolerance=1e-9).fit(X[:400], y[:400])
    assert model.solver_ == solver
    assert model.kkt_residual_ <= 1e-6
    np.testing.assert_allclose(model.predict(X), reference.predict(X), atol=1e-4)
    assert model.score(X[400:], y[400:]) > 0.99


def test_intercept_is_the_free_minimum():
    X, y = samples(seed=1)
    model = QuadraticNetRegressor(0.5, tolerance=1e-8).fit(X, y)
    # At the minimum over a free intercept the residuals sum to zero.
    assert abs(np.mean(y - model.predict(X))) < 1e-10
    np.testing.assert_allclose(y - model.predict(X), model.solution_.residual, atol=1e-10)
    moved = QuadraticNetRegressor(0.5, tolerance=1e-8).fit(X, y + 7)
    np.testing.assert_allclose(moved.predict(X), model.predict(X) + 7, atol=1e-6)
    assert QuadraticNetRegressor(0.5, fit_intercept=False).fit(X, y).intercept_ == 0


def test_falls_back_with_a_warning():
    X, y = samples()
    with pytest.warns(ConvergenceWarning, match="amp stopped after .* FISTA takes over"):
        model = QuadraticNetRegressor(1.0).fit(X * np.linspace(1, 6, 12), y)
    assert model.solver_ == "fista"
    assert model.kkt_residual_ <= 1e-6


def test_narrow_network_falls_back():
    X, y = samples()
    with pytest.warns(ConvergenceWarning, match="factorised stopped"):
        model = QuadraticNetRegressor(0.05, solver="factorised", width=1).fit(X, y)
    assert model.solver_ == "fista"


def test_file_and_array_give_the_same(tmp_path):
    X, y = samples()
    np.save(tmp_path / "x.npy", X)
    read = QuadraticNetRegressor(0.5).fit(tmp_path / "x.npy", y)
    np.testing.assert_array_equal(read.matrix_, QuadraticNetRegressor(0.5).fit(X, y).matrix_)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"regularisation": 0}, "regularisation is 0"),
        ({"regularisation": "cv"}, "regularisation is 'cv'"),
        ({"solver": "ampp"}, "Did you mean 'amp'"),
        ({"tolerance": 1.0}, "tolerance is 1.0"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"width": True}, "width is True"),
    ],
)
def test_bad_settings(setting, words):
    with pytest.raises(InvalidParameter, match=words):
        QuadraticNetRegressor(**setting).fit(*samples(50, 3))


def test_bad_samples():
    X, y = samples(50, 3)
    X[3, 1] = np.nan
    with pytest.raises(InvalidData, match="NaN"):
        QuadraticNetRegressor().fit(X, y)
