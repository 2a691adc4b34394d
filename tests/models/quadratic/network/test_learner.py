"""The quadratic network as an estimator."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvable.arrays import GeneratedSource, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.network.learner import QuadraticNetRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the second moment of the features:UserWarning")
@parametrize_with_checks(
    [
        QuadraticNetRegressor(max_iterations=50),
        QuadraticNetRegressor("gcv", solver="fista", max_iterations=20, whiten=True),
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
    with pytest.warns(ConvergenceWarning, match="amp stopped after .* FISTA continues"):
        model = QuadraticNetRegressor(1.0).fit(X * np.linspace(1, 6, 12), y)
    assert model.solver_ == "fista"
    assert model.kkt_residual_ <= 1e-6


def test_narrow_network_falls_back():
    X, y = samples()
    with pytest.warns(ConvergenceWarning, match="factorised stopped"):
        model = QuadraticNetRegressor(0.05, solver="factorised", width=1).fit(X, y)
    assert model.solver_ == "fista"


def test_file_array_and_stream_give_the_same(tmp_path):
    def draw(rows, rng):
        return rng.standard_normal((rows, 6))

    stream = GeneratedSource(draw, 5000, 6, seed=3)
    X = np.concatenate([block for _, block in stream.chunks(1000)])
    y = X[:, 0] ** 2 + random_stream(4).standard_normal(5000)
    np.save(tmp_path / "x.npy", X)
    held = QuadraticNetRegressor(0.5, whiten=True).fit(X, y)
    read = QuadraticNetRegressor(0.5, whiten=True).fit(tmp_path / "x.npy", y)
    np.testing.assert_array_equal(read.matrix_, held.matrix_)
    streamed = QuadraticNetRegressor(0.5, whiten=True).fit(stream, y)
    # The stream has blocks of other sizes, so that sums round differently.
    np.testing.assert_allclose(streamed.matrix_, held.matrix_, atol=1e-10)
    np.testing.assert_allclose(streamed.predict(stream), held.predict(X), atol=1e-9)


def test_single_precision_and_order_of_samples():
    X, y = samples()
    model = QuadraticNetRegressor(0.5, tolerance=1e-9).fit(X, y)
    again = QuadraticNetRegressor(0.5, tolerance=1e-9).fit(X, y)
    np.testing.assert_array_equal(again.matrix_, model.matrix_)
    shuffled = random_stream(9).permutation(len(X))
    other = QuadraticNetRegressor(0.5, tolerance=1e-9).fit(X[shuffled], y[shuffled])
    np.testing.assert_allclose(other.matrix_, model.matrix_, atol=1e-7)
    # Products are in double precision: only the samples are rounded.
    single = QuadraticNetRegressor(0.5, tolerance=1e-9).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.matrix_, model.matrix_, atol=1e-5)
    assert single.predict(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("whiten", [False, True])
def test_memory_is_that_of_blocks_of_rows(whiten):
    X, y = samples(6000, 50)
    model = QuadraticNetRegressor(0.5, whiten=whiten, tolerance=1e-3)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Two blocks of 2048 rows, and nine states of 2n + d² numbers for extrapolation. One matrix per
    # sample would take 120 MB, a second copy of the samples 2.4 MB.
    blocks, states = 3 * 2048 * 50 * 8, 2 * 9 * (2 * 6000 + 50**2) * 8
    assert peak < blocks + states


def test_whitening_undoes_any_affine_map_of_the_features():
    X, y = samples()
    rng = random_stream(5)
    mixed = X @ rng.standard_normal((12, 12)) * np.linspace(1, 50, 12) + rng.standard_normal(12)
    model = QuadraticNetRegressor(0.1, whiten=True, tolerance=1e-9).fit(X[:400], y[:400])
    other = QuadraticNetRegressor(0.1, whiten=True, tolerance=1e-9).fit(mixed[:400], y[:400])
    np.testing.assert_allclose(other.predict(mixed), model.predict(X), atol=1e-6)
    assert other.gcv_score_ == pytest.approx(model.gcv_score_, rel=1e-6)
    assert other.condition_number_ > 100 > model.condition_number_
    # The same features, whitened before the fit.
    white = (X - X[:400].mean(axis=0)) @ np.linalg.inv(
        np.linalg.cholesky(np.cov(X[:400].T, bias=True)).T
    )
    by_hand = QuadraticNetRegressor(0.1, tolerance=1e-9).fit(white[:400], y[:400])
    np.testing.assert_allclose(by_hand.predict(white), model.predict(X), atol=1e-6)


def test_says_that_features_are_far_from_whitened():
    X, y = samples()
    with pytest.warns(UserWarning, match=r"condition number .* whiten=True"):
        model = QuadraticNetRegressor(1.0, solver="fista").fit(X * np.linspace(1, 12, 12), y)
    assert model.condition_number_ == pytest.approx(144, rel=0.3)
    constant = np.hstack([X, np.zeros((len(X), 1))])
    with pytest.warns(UserWarning, match="condition number inf"):
        QuadraticNetRegressor(1.0).fit(constant, y)
    assert QuadraticNetRegressor(1.0, whiten=True).fit(constant, y).matrix_.shape == (12, 12)
    with pytest.raises(InvalidData, match="all 600 samples are equal"):
        QuadraticNetRegressor(whiten=True).fit(np.ones((600, 3)), y)


@settings(max_examples=40, deadline=None)
@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 4)),
        elements=st.floats(-1e3, 1e3, width=32),
    ),
    penalty=st.floats(1e-3, 1e3),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the second moment of the features:UserWarning")
def test_any_finite_samples_give_a_finite_positive_form(X, penalty):
    y = np.sign(X[:, 0]) + np.arange(len(X))
    model = QuadraticNetRegressor(penalty, max_iterations=30).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.kkt_residual_)
    assert np.linalg.eigvalsh(model.matrix_)[0] >= -1e-9 * max(np.trace(model.matrix_), 1)
    # The training error is at most that of the mean, which has no penalty.
    assert np.mean((model.predict(X) - y) ** 2) <= np.var(y) * (1 + 1e-6) + 1e-6


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
