"""Ridge readouts against explicit refits, explicit smoothers and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting import ridge as ridge_module
from solvable.fitting.ridge import GRID, LEAST_FREEDOM, ReadoutMoments, kernel_ridge

N, P = 40, 6


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    Z = 1.5 + rng.standard_normal((N, P)) * np.linspace(0.3, 2, P)
    Y = Z @ rng.standard_normal((P, 2)) + 3 + 0.7 * rng.standard_normal((N, 2))
    return Z, Y


def power(Z):
    """Mean squared norm of the centred features, the unit of the penalty."""
    return float(np.sum((Z - Z.mean(axis=0)) ** 2) / len(Z))


def smoother(Z, penalty):
    """Smoother of ridge with a free constant, from least squares with a column of ones."""
    design = np.hstack([Z, np.ones((len(Z), 1))])
    ridge = np.diag([penalty] * Z.shape[1] + [0.0])
    return design @ np.linalg.solve(design.T @ design + ridge, design.T)


@pytest.mark.parametrize("relative", [1e-3, 0.1, 10.0])
def test_both_routes_are_ridge_with_a_free_constant(table, relative):
    Z, Y = table
    dual = kernel_ridge(Z @ Z.T, Y, regularisation=relative)
    primal = ReadoutMoments(P, 2).add(Z, Y).solve(regularisation=relative)
    expected = Ridge(alpha=relative * power(Z)).fit(Z, Y)
    assert dual.penalty == pytest.approx(relative * power(Z))
    assert primal.penalty == pytest.approx(relative * power(Z))
    np.testing.assert_allclose(Z.T @ dual.coefficients, expected.coef_.T, atol=1e-9)
    np.testing.assert_allclose(dual.intercept, expected.intercept_, atol=1e-8)
    np.testing.assert_allclose(primal.coefficients, expected.coef_.T, atol=1e-9)
    np.testing.assert_allclose(primal.intercept, expected.intercept_, atol=1e-8)
    freedom = np.trace(smoother(Z, relative * power(Z)))
    assert dual.degrees_of_freedom == pytest.approx(freedom)
    assert primal.degrees_of_freedom == pytest.approx(freedom)


@pytest.mark.parametrize("relative", [1e-4, 0.03, 3.0])
def test_leave_one_out_is_that_of_refits_without_each_sample(table, relative):
    Z, Y = table
    found = kernel_ridge(Z @ Z.T, Y, regularisation=relative)
    errors = []
    for i in range(N):
        rest = np.arange(N) != i
        # The same penalty in absolute terms.
        refit = Ridge(alpha=found.penalty).fit(Z[rest], Y[rest])
        errors.append(np.sum((Y[i] - refit.predict(Z[i : i + 1])[0]) ** 2))
    assert found.criterion == pytest.approx(np.mean(errors), rel=1e-9)


@pytest.mark.parametrize("noise", [0.05, 0.5, 3.0])
def test_a_large_kernel_has_the_penalty_of_a_part_and_the_fit_of_all(monkeypatch, noise):
    rng = random_stream(11, "large kernel")
    Z = rng.standard_normal((500, 40))
    Y = Z[:, :2] + noise * rng.standard_normal((500, 2))
    kernel = Z @ Z.T
    whole = kernel_ridge(kernel, Y)
    monkeypatch.setattr("solvable.fitting.ridge.TUNING_ROWS", 250)
    found = kernel_ridge(kernel, Y)
    power = np.trace(kernel - kernel.mean(axis=0)) / 500
    same = kernel_ridge(kernel, Y, regularisation=found.penalty / power)
    assert found.penalty == pytest.approx(same.penalty)
    np.testing.assert_allclose(found.coefficients, same.coefficients, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.intercept, same.intercept, atol=1e-9)
    assert found.criterion == pytest.approx(same.criterion, rel=1e-9)
    assert found.degrees_of_freedom == pytest.approx(same.degrees_of_freedom, rel=1e-9)
    # The penalty from a part of the rows raises the criterion by a fraction of its noise only.
    assert whole.criterion <= found.criterion <= 1.01 * whole.criterion


@pytest.mark.parametrize("relative", [1e-4, 0.03, 3.0])
def test_generalised_criterion_is_that_of_the_explicit_smoother(table, relative):
    Z, Y = table
    found = ReadoutMoments(P, 2).add(Z, Y).solve(regularisation=relative)
    S = smoother(Z, found.penalty)
    residual = np.sum((Y - S @ Y) ** 2)
    assert found.criterion == pytest.approx(N * residual / (N - np.trace(S)) ** 2, rel=1e-9)


def test_chosen_penalty_is_the_best_of_a_fine_search(table):
    Z, Y = table
    for found, value in (
        (
            kernel_ridge(Z @ Z.T, Y),
            lambda a: kernel_ridge(Z @ Z.T, Y, regularisation=a).criterion,
        ),
        (
            ReadoutMoments(P, 2).add(Z, Y).solve(),
            lambda a: ReadoutMoments(P, 2).add(Z, Y).solve(regularisation=a).criterion,
        ),
    ):
        best = min(value(a) for a in np.logspace(-7, 6, 400))
        assert found.criterion <= best * (1 + 1e-3)


@pytest.mark.parametrize("n_features", [39, 40, 200])
def test_interpolation_is_not_chosen_for_its_spurious_minimum(n_features):
    # With n <= P and labels of pure noise the criteria have a minimum at interpolation.
    rng = np.random.default_rng(1)
    Z, Y = rng.standard_normal((N, n_features)), rng.standard_normal((N, 1))
    for found in (
        kernel_ridge(Z @ Z.T, Y),
        ReadoutMoments(n_features, 1).add(Z, Y).solve(),
    ):
        assert N - found.degrees_of_freedom >= LEAST_FREEDOM * N
        assert found.criterion > 0.5


def test_guard_allows_what_a_given_penalty_asks_for(table):
    Y = table[1]
    found = kernel_ridge(np.eye(N), Y, regularisation=0.0)
    np.testing.assert_allclose(found.coefficients + found.intercept, Y, atol=1e-10)
    assert found.degrees_of_freedom == pytest.approx(N)


def test_features_that_do_not_vary_predict_the_mean(table):
    Y = table[1]
    Z = np.full((N, 3), 2.0)
    for found in (
        kernel_ridge(Z @ Z.T, Y),
        ReadoutMoments(3, 2).add(Z, Y).solve(),
    ):
        outputs = found.intercept + (
            Z @ found.coefficients if len(found.coefficients) == 3 else Z @ Z.T @ found.coefficients
        )
        np.testing.assert_allclose(outputs, np.broadcast_to(Y.mean(axis=0), Y.shape), atol=1e-8)


def test_labels_of_noise_are_shrunk_to_the_mean():
    rng = np.random.default_rng(2)
    Z, Y = rng.standard_normal((400, 50)), rng.standard_normal((400, 1))
    found = ReadoutMoments(50, 1).add(Z, Y).solve()
    assert np.linalg.norm(found.coefficients) < 0.2
    assert found.penalty <= GRID[-1] * power(Z) * 2


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=10), shift=st.floats(-50, 50))
def test_chunks_and_constants_do_not_matter(table, cuts, shift):
    Z, Y = table
    whole = ReadoutMoments(P, 2).add(Z, Y).solve()
    merged = ReadoutMoments(P, 2)
    for rows in np.split(np.arange(N), sorted(set(cuts))):
        merged.merge(ReadoutMoments(P, 2).add(Z[rows], Y[rows]))
    np.testing.assert_allclose(merged.solve().coefficients, whole.coefficients, atol=1e-10)
    moved = ReadoutMoments(P, 2).add(Z + shift, Y - shift).solve()
    np.testing.assert_allclose(moved.coefficients, whole.coefficients, atol=1e-7)
    np.testing.assert_allclose(
        (Z[:1] + shift) @ moved.coefficients + moved.intercept,
        Z[:1] @ whole.coefficients + whole.intercept - shift,
        atol=1e-5,
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
def test_order_and_scale_of_the_samples_do_not_matter(table, seed, scale):
    Z, Y = table
    order = np.random.default_rng(seed).permutation(N)
    base = kernel_ridge(Z @ Z.T, Y)
    Z2 = scale * Z[order]
    found = kernel_ridge(Z2 @ Z2.T, Y[order])
    # The minimum is flat: one step of the fine grid changes the predictions only slightly.
    np.testing.assert_allclose(
        (Z2 @ Z2.T @ found.coefficients + found.intercept),
        (Z @ Z.T @ base.coefficients + base.intercept)[order],
        atol=1e-3,
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_features_are_no_special_case(size):
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((15, size))
    Y = Z.sum(axis=1, keepdims=True)
    found = ReadoutMoments(size, 1).add(Z, Y).solve(regularisation=1e-12)
    np.testing.assert_allclose(found.coefficients, 1, atol=1e-6)


def test_stored_sums_are_read_back_bit_by_bit(table):
    Z, Y = table
    sums = ReadoutMoments(P, 2).add(Z[:20], Y[:20])
    again = ReadoutMoments.from_arrays({k: np.array(v) for k, v in sums.to_arrays().items()})
    found = [one.add(Z[20:], Y[20:]).solve() for one in (sums, again)]
    np.testing.assert_array_equal(found[0].coefficients, found[1].coefficients)
    with pytest.raises(InvalidData, match="lack gram"):
        ReadoutMoments.from_arrays({k: v for k, v in sums.to_arrays().items() if k != "gram"})
    with pytest.raises(InvalidData, match="cannot be added"):
        sums.merge(ReadoutMoments(P, 3))


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "gcv"])
def test_penalties_out_of_range_are_refused(table, value):
    Z, Y = table
    with pytest.raises(InvalidParameter, match="leave-one-out"):
        kernel_ridge(Z @ Z.T, Y, regularisation=value)
    with pytest.raises(InvalidParameter, match="leave-one-out"):
        ReadoutMoments(P, 2).add(Z, Y).solve(regularisation=value)


@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
def test_penalties_that_are_left_out_are_not_the_best(noise):
    rng = np.random.default_rng(11)
    Z = rng.standard_normal((70, 40)) * np.arange(1, 41) ** -0.7
    Y = Z @ rng.standard_normal((40, 3)) + noise * rng.standard_normal((70, 3))
    fit = kernel_ridge(Z @ Z.T, Y)
    one_by_one = [kernel_ridge(Z @ Z.T, Y, regularisation=float(g)) for g in GRID]
    allowed = [f for f in one_by_one if 70 - f.degrees_of_freedom >= LEAST_FREEDOM * 70]
    best = min(allowed, key=lambda f: f.criterion)
    assert fit.criterion <= best.criterion
    assert abs(np.log10(fit.penalty / best.penalty)) <= 0.25 + 1e-9


def test_a_large_kernel_takes_the_penalty_of_a_part_of_its_rows(monkeypatch):
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((300, 60)) * np.arange(1, 61) ** -0.8
    Y = Z @ rng.standard_normal((60, 2)) + 0.5 * rng.standard_normal((300, 2))
    whole = kernel_ridge(Z @ Z.T, Y)
    monkeypatch.setattr(ridge_module, "TUNING_ROWS", 150)
    part = kernel_ridge(Z @ Z.T, Y)
    # The solution at the chosen penalty is exact; the penalty is close to the best.
    relative = part.penalty / whole.penalty
    power = np.sum((Z - Z.mean(axis=0)) ** 2) / 300
    same = kernel_ridge(Z @ Z.T, Y, regularisation=part.penalty / power)
    np.testing.assert_allclose(part.coefficients, same.coefficients, rtol=1e-8, atol=1e-10)
    assert part.criterion == pytest.approx(same.criterion)
    assert part.degrees_of_freedom == pytest.approx(same.degrees_of_freedom)
    assert 0.1 < relative < 10
    assert part.criterion < 1.02 * whole.criterion
