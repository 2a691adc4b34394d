"""Kernel ridge regression against independent computations."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from solvable.arrays import random_stream
from solvable.errors import MemoryLimitExceeded
from solvable.fitting.kernel_errors import KernelRidge as OurRidge
from solvable.fitting.kernel_system import KernelMatrix, RidgePath
from solvable.targets import HierarchicalTarget


@pytest.mark.parametrize("kind", ["rbf", "polynomial"])
def test_equals_scikit_learn_on_standardised_inputs(kind):
    rng = random_stream(1)
    X = 3 + 2 * rng.standard_normal((300, 4))
    y = X[:, 0] * X[:, 1] + 5
    model = OurRidge(kind=kind, degree=3, ridge=0.5).fit(X, y)
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
    quiet = OurRidge("polynomial", degree=2).fit(X, clean)
    loud = OurRidge("polynomial", degree=2).fit(X, clean + 20 * rng.standard_normal(600))
    assert quiet.ridge_ == pytest.approx(0.01)
    assert loud.ridge_ >= 1
    assert np.mean((quiet.predict(X) - clean) ** 2) < 0.001 * clean.var()


def cholesky_route(model, X, y, ridge):
    """Solution of scikit-learn in float64, with the standardisation of the model."""
    gamma = 1 / (2 * model.bandwidth_**2) if model.kind == "rbf" else 1 / X.shape[1]
    options = {"kernel": model.kind, "gamma": gamma, "degree": model.degree, "coef0": 1}
    return KernelRidge(alpha=ridge, **options).fit(X.astype(float), y)


@pytest.mark.parametrize("kind", ["rbf", "polynomial"])
@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_errors_and_ridge_are_those_of_the_cholesky_route(kind, noise):
    """The Krylov route against the factors of scikit-learn, ridge by ridge."""
    rng = random_stream(20)
    X = rng.standard_normal((1700, 12))
    label = X[:, 0] * X[:, 1] + X[:, 2] ** 2 + X[:, 3]
    y = label + noise * rng.standard_normal(len(X))
    train, test = slice(0, 1400), slice(1400, None)
    model = OurRidge(kind, 3).fit(X[train], y[train])
    Z = (X[train] - X[train].mean(axis=0)) / X[train].std(axis=0)
    np.testing.assert_allclose(np.sort(model.rows_[:, 0]), np.sort(Z[:, 0]), atol=1e-5)
    rows, order = model.rows_, random_stream(0, "kernel ridge").permutation(1400)
    residual = (y[train] - y[train].mean())[order]
    fitted = 1400 - 1400 // 4
    assert fitted > 1000  # up to this size the solver uses a Cholesky factor
    errors = {}
    for ridge in model.validation_errors_:
        other = cholesky_route(model, rows[:fitted], residual[:fitted], ridge)
        errors[ridge] = np.mean((other.predict(rows[fitted:]) - residual[fitted:]) ** 2)
    np.testing.assert_allclose(
        list(model.validation_errors_.values()), list(errors.values()), rtol=1e-4
    )
    # The minimum is inside the grid, and the smaller ridges that were not tried are worse.
    assert model.ridge_ == min(errors, key=errors.get)
    assert 0.01 < model.ridge_ < 1e6
    smallest = cholesky_route(model, rows[:fitted], residual[:fitted], min(errors) / 10)
    assert np.mean((smallest.predict(rows[fitted:]) - residual[fitted:]) ** 2) > min(
        errors.values()
    )
    other = cholesky_route(model, rows, residual, model.ridge_)
    tested = other.predict(((X[test] - model.centre_) / model.scale_).astype(float))
    expected = np.mean((tested + model.offset_ - label[test]) ** 2)
    assert np.mean((model.predict(X[test]) - label[test]) ** 2) == pytest.approx(expected, rel=1e-6)
    # The same in float32, up to its rounding in the kernel matrix
    single = OurRidge(kind, 3).fit(X[train].astype(np.float32), y[train])
    assert single.ridge_ == model.ridge_
    error = np.mean((single.predict(X[test].astype(np.float32)) - label[test]) ** 2)
    assert error == pytest.approx(expected, rel=1e-4)


def test_noise_alone_is_predicted_by_the_mean():
    rng = random_stream(21)
    X, y = rng.standard_normal((1500, 30)), rng.standard_normal(1500)
    model = OurRidge("polynomial", 4).fit(X, y)
    assert model.ridge_ >= 1e4
    assert np.var(model.predict(rng.standard_normal((500, 30)))) < 0.01


@pytest.mark.parametrize("ridge", [1e-5, 1e-3, 10.0, 1e3])
def test_half_a_matrix_solves_what_the_whole_one_does(ridge):
    """A small ridge needs the Cholesky factor, a larger one the Krylov space; both match NumPy."""
    Z = random_stream(22).standard_normal((1100, 4))
    y = random_stream(23).standard_normal(1100)
    whole = np.exp(-0.3 * np.sum((Z[:, None] - Z[None]) ** 2, axis=2))
    half = KernelMatrix(lambda a, b: np.exp(-0.3 * np.sum((a[:, None] - b) ** 2, axis=2)), Z)
    np.testing.assert_allclose(half.product(y), whole @ y, atol=1e-10)
    np.testing.assert_allclose(half.product(y[:700]), whole[:700, :700] @ y[:700], atol=1e-10)
    path = RidgePath(half, y)
    x = path.solve(ridge, 1e-9)
    assert (path.count == path.limit) == (ridge < 1)
    assert np.linalg.norm(whole @ x + ridge * x - y) <= 1e-6 * np.linalg.norm(y)
    np.testing.assert_array_equal(RidgePath(half, 0 * y).solve(ridge, 1e-9), 0)


def test_a_singular_matrix_has_the_solution_of_least_norm():
    Z = np.ones((5, 1))
    x = KernelMatrix(lambda a, b: a @ b.T, Z).solve(np.ones(5), 0.0)
    np.testing.assert_allclose(x, 0.2)


def test_single_precision_stays_single():
    X = random_stream(3).standard_normal((200, 5)).astype(np.float32)
    model = OurRidge("rbf", ridge=1.0).fit(X, X[:, 0])
    assert model.dual_coef_.dtype == np.float32
    assert model.predict(X).dtype == np.float64


def test_the_limit_is_the_kernel_matrix(monkeypatch):
    X = random_stream(6).standard_normal((100, 3))
    y = X[:, 0]
    monkeypatch.setattr("solvable.fitting.kernel_errors.available_bytes", lambda: 8 * 100**2)
    OurRidge("rbf", ridge=1.0).fit(X, y)
    monkeypatch.setattr("solvable.fitting.kernel_errors.available_bytes", lambda: 8 * 100**2 - 1)
    with pytest.raises(MemoryLimitExceeded, match=r"100 samples and its factor need 0\.08 MB"):
        OurRidge("rbf", ridge=1.0).fit(X, y)
    OurRidge("rbf", ridge=1.0).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("kind", ["rbf", "polynomial"])
def test_predictions_do_not_depend_on_units_or_shifts_or_constant_columns(kind):
    rng = random_stream(7)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] ** 2 + X[:, 1]
    model = OurRidge(kind, 2)
    plain = model.fit(X, y).predict(X)
    # The median distance and the kernels do not depend on the sign.
    moved = 7 - 1000.0 * X
    np.testing.assert_allclose(model.fit(moved, y).predict(moved), plain, atol=1e-7)
    wide = np.column_stack([X, np.full(len(X), 3.0)])
    assert np.isfinite(model.fit(wide, y).predict(wide)).all()


def test_median_heuristic_is_the_median_over_all_pairs():
    X = random_stream(8).standard_normal((400, 6))
    model = OurRidge("rbf", ridge=1.0).fit(X, X[:, 0])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    squares = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)[np.triu_indices(400, 1)]
    assert model.bandwidth_**2 == pytest.approx(np.median(squares), rel=1e-9)


@pytest.mark.slow
def test_a_kernel_stops_at_the_energy_of_degree_two():
    """Between d² and d⁴/24 samples the best error is the energy of degrees above 2."""
    # With fewer than d⁴/24 samples a kernel learns no degree-4 component (arXiv:2605.14567, Section 3).
    target = HierarchicalTarget(40, features=6, decay=0.4, signs="positive")
    # 6 D samples, the fewest that learn degree 2 well; degree 4 has 123,410 coordinates.
    X, y = target.sample(5000, random_stream(12), dtype=np.float32)
    Z, truth = target.sample(4000, random_stream(13), dtype=np.float32)
    best = 1 - target.degree_two_energy / target.index_variance
    assert best < 0.75
    model = OurRidge("polynomial", 4).fit(X, y)
    error = np.mean((model.predict(Z) - truth) ** 2) / truth.var()
    # Standard error of the error: 0.03, as the labels have heavy tails.
    assert best - 0.09 < error < 1
