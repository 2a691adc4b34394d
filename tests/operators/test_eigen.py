"""Leading eigenpairs: every route against numpy's eigh, and correct marks of convergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded, NotConverged
from solvable.operators import HermiteFeatures, MomentOperator, leading_eigenpairs
from solvable.operators._lanczos import RitzPairs, lanczos
from solvable.operators.eigen import Eigenpairs


def operator_of(
    degree: int, dimension: int, n: int, correction: Any = "none", seed: int = 0
) -> MomentOperator:
    rng = np.random.default_rng(seed)
    X, T = rng.standard_normal((n, dimension)), rng.standard_normal(n)
    return MomentOperator(X, T, HermiteFeatures(degree, dimension), correction=correction)


def check(pairs: Eigenpairs, matrix: np.ndarray, n_upper: int, n_lower: int, atol: float) -> None:
    values = np.linalg.eigvalsh(matrix)[::-1]
    expected = np.concatenate([values[:n_upper], values[len(values) - n_lower :]])
    np.testing.assert_allclose(pairs.values, expected, atol=atol)
    gram = pairs.vectors.T @ pairs.vectors
    np.testing.assert_allclose(gram, np.eye(n_upper + n_lower), atol=1e-9)
    residuals = np.linalg.norm(matrix @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, residuals, atol=1e-11 * pairs.scale)
    assert pairs.n_upper == n_upper


PROBLEMS = [
    (1, 40, 25, "none"),
    (1, 40, 300, "none"),
    (2, 9, 30, "none"),
    (2, 9, 300, "wick"),
    (3, 5, 20, "none"),
    (3, 5, 200, "wick"),
]


@pytest.mark.parametrize("route", ["lanczos", "dense", "gram"])
@pytest.mark.parametrize(("degree", "dimension", "n", "correction"), PROBLEMS)
def test_routes_agree_with_numpy(
    degree: int, dimension: int, n: int, correction: str, route: Any
) -> None:
    operator = operator_of(degree, dimension, n, correction)
    if route == "gram" and n > 30:
        with pytest.raises(InvalidParameter, match="route 'gram' needs"):
            leading_eigenpairs(operator, 1, 1, route=route, rng=0)
        return
    matrix = operator.dense()
    scale = np.abs(np.linalg.eigvalsh(matrix)).max()
    for n_upper, n_lower in ((3, 2), (0, 2), (2, 0), (12, 9)):
        before = operator.products
        pairs = leading_eigenpairs(operator, n_upper, n_lower, route=route, tolerance=1e-7, rng=1)
        check(pairs, matrix, n_upper, n_lower, 1e-10 * scale)
        assert pairs.route == route
        assert pairs.converged.all()
        assert pairs.products == operator.products - before
    if route == "dense":
        assert operator.products == 0


@pytest.mark.parametrize("route", ["lanczos", "dense", "gram"])
def test_all_eigenpairs_can_be_asked_for(route: Any) -> None:
    operator = operator_of(2, 4, 6)
    pairs = leading_eigenpairs(operator, 7, 3, route=route, rng=0)
    check(pairs, operator.dense(), 7, 3, 1e-10)


def test_dual_form_fills_up_with_its_null_space() -> None:
    """Weights of one sign: the other end of the spectrum is the eigenvalue -mean(T)."""
    rng = np.random.default_rng(2)
    X, T = rng.standard_normal((6, 5)), 0.5 + rng.random(6)
    operator = MomentOperator(X, T, HermiteFeatures(2, 5))
    pairs = leading_eigenpairs(operator, 2, 4, route="gram", rng=0)
    check(pairs, operator.dense(), 2, 4, 1e-10)
    np.testing.assert_allclose(pairs.values[2:], -T.mean(), atol=1e-12)
    check(leading_eigenpairs(operator, 9, 1, route="gram", rng=0), operator.dense(), 9, 1, 1e-10)


def test_dual_form_of_repeated_opposite_and_unweighted_samples() -> None:
    """A kernel matrix of deficient rank, and weights that cancel on a pair of equal features."""
    rng = np.random.default_rng(3)
    half = rng.standard_normal((4, 5))
    X = np.concatenate([half, half[:2], -half[:2], half[3:]])
    T = np.array([1.0, -2.0, 0.0, 0.7, -1.0, 3.0, 0.5, 0.5, -0.7])
    operator = MomentOperator(X, T, HermiteFeatures(2, 5))
    for counts in ((3, 3), (1, 2), (5, 5)):
        pairs = leading_eigenpairs(operator, *counts, route="gram", rng=0)
        check(pairs, operator.dense(), *counts, 1e-10)
        assert pairs.converged.all()


def test_dual_form_of_vanishing_features() -> None:
    # (x² - 1) / sqrt(2) is zero at x = 1: the kernel has rank zero.
    operator = MomentOperator(np.ones((1, 1)), [2.0], HermiteFeatures(2, 1))
    assert leading_eigenpairs(operator, 1, 0, rng=0).values == pytest.approx([-2.0])
    X = np.zeros((2, 4))
    operator = MomentOperator(X, [1.0, 1.0], HermiteFeatures(1, 4))
    pairs = leading_eigenpairs(operator, 1, 1, route="gram", rng=0)
    np.testing.assert_allclose(pairs.values, -1.0)


def test_lanczos_of_the_zero_operator() -> None:
    operator = MomentOperator(np.ones((4, 3)), np.zeros(4), HermiteFeatures(2, 3))
    pairs = leading_eigenpairs(operator, 2, 1, route="lanczos", rng=0)
    np.testing.assert_allclose(pairs.values, 0.0)
    assert pairs.converged.all()


def spiked(size: int, heights: list[float], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((size, size))
    vectors, _ = np.linalg.qr(rng.standard_normal((size, len(heights))))
    noise = (noise + noise.T) / np.sqrt(2 * size)
    return noise + (vectors * heights) @ vectors.T


def solve(
    matrix: np.ndarray, n_upper: int, n_lower: int, tolerance: float = 1e-4, **options: Any
) -> RitzPairs:
    defaults: dict[str, Any] = {
        "enough": lambda pairs: (pairs.residuals <= tolerance * pairs.scale).all(),
        "max_products": 2000,
        "capacity": 200,
        "rng": np.random.default_rng(0),
    }
    return lanczos(lambda u: matrix @ u, len(matrix), n_upper, n_lower, **{**defaults, **options})


def test_both_ends_cost_fewer_products_than_arpack() -> None:
    from scipy.sparse.linalg import LinearOperator, eigsh

    matrix = spiked(800, [4.0, 3.4, 3.0, -3.2, -4.0])
    count = 0

    def product(u: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return matrix @ u

    eigsh(LinearOperator(matrix.shape, matvec=product, dtype=float), k=5, which="LM", tol=1e-4)
    pairs = solve(matrix, 3, 2)
    assert pairs.products <= count
    reference = np.linalg.eigvalsh(matrix)[[-1, -2, -3, 1, 0]]
    np.testing.assert_allclose(pairs.values, reference, atol=1e-6)


@pytest.mark.parametrize("capacity", [1, 24, 60])
def test_restarts_find_the_same_pairs_at_the_bulk_edge(capacity: int) -> None:
    matrix = spiked(300, [3.0, -3.0])
    values = np.linalg.eigvalsh(matrix)
    for n_upper, n_lower in ((4, 4), (6, 0), (0, 5)):
        pairs = solve(matrix, n_upper, n_lower, capacity=capacity, tolerance=1e-6)
        expected = np.concatenate([values[::-1][:n_upper], values[:n_lower][::-1]])
        np.testing.assert_allclose(pairs.values, expected, atol=1e-8)
        residuals = np.linalg.norm(matrix @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
        np.testing.assert_allclose(pairs.residuals, residuals, atol=1e-11)
        gram = pairs.vectors.T @ pairs.vectors
        np.testing.assert_allclose(gram, np.eye(n_upper + n_lower), atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 3), st.integers(0, 3), st.integers(8, 40))
def test_true_values_lie_within_the_residual(seed: int, upper: int, lower: int, most: int) -> None:
    """For any number of products, an eigenvalue lies within the residual of each Ritz value."""
    if upper + lower == 0:
        upper = 1
    matrix = spiked(60, [2.5, -2.5], seed)
    pairs = solve(matrix, upper, lower, max_products=most, rng=np.random.default_rng(seed))
    distance = np.abs(pairs.values[:, None] - np.linalg.eigvalsh(matrix)).min(axis=1)
    assert (distance <= pairs.residuals + 1e-10).all()
    assert pairs.products <= most


def test_pairs_that_did_not_converge_are_marked() -> None:
    operator = operator_of(2, 20, 400)
    pairs = leading_eigenpairs(operator, 3, 3, route="lanczos", max_products=8, rng=0)
    assert pairs.products == 8
    assert not pairs.converged.any()
    assert (pairs.residuals > 1e-4 * pairs.scale).all()
    some = leading_eigenpairs(operator, 3, 3, route="lanczos", max_products=30, rng=0)
    assert some.converged.any()
    assert not some.converged.all()
    exact = np.linalg.eigvalsh(operator.dense())[[-1, -2, -3, 2, 1, 0]]
    # The error of an eigenvalue is quadratic in the residual: 1e-8 over a gap of 0.01.
    assert np.abs(some.values - exact)[some.converged].max() < 1e-5 * some.scale


def test_unconverged_pairs_raise_when_asked() -> None:
    operator = operator_of(2, 20, 400)
    with pytest.raises(NotConverged, match="6 of 6 eigenpairs did not converge") as caught:
        leading_eigenpairs(
            operator, 3, 3, route="lanczos", max_products=8, rng=0, unconverged="raise"
        )
    assert caught.value.diagnostics["products"] == 8
    assert caught.value.diagnostics["residuals"].shape == (6,)
    with pytest.raises(NotConverged, match="max_products is 5 for 6"):
        leading_eigenpairs(operator, 3, 3, route="lanczos", max_products=5, rng=0)


def test_default_limit_of_products_holds() -> None:
    # Weights +-1 on Gaussian samples give a bulk only, whose edges converge slowest.
    rng = np.random.default_rng(5)
    T = rng.choice([-1.0, 1.0], 4000)
    operator = MomentOperator(rng.standard_normal((4000, 600)), T, HermiteFeatures(1, 600))
    pairs = leading_eigenpairs(operator, 2, 2, route="lanczos", rng=0)
    assert pairs.converged.all()
    assert pairs.products < 200 + 40 * 4


def test_a_known_bulk_spares_products_and_loses_no_outlier() -> None:
    matrix = spiked(1200, [3.0, 2.0, 1.4, -1.5, -2.5])
    values = np.linalg.eigvalsh(matrix)
    expected = np.concatenate([values[::-1][:6], values[:6][::-1]])
    full = solve(matrix, 6, 6)

    def enough(pairs: RitzPairs) -> bool:
        outside = np.abs(pairs.values) > 2.05
        return bool((pairs.residuals[outside] <= 1e-4 * pairs.scale).all() and outside.sum() == 5)

    short = solve(matrix, 6, 6, enough=enough)
    assert short.products < 0.7 * full.products
    outside = np.abs(expected) > 2.05
    assert outside.sum() == 5
    np.testing.assert_allclose(short.values[outside], expected[outside], atol=1e-6)
    assert (short.residuals[outside] <= 1e-4 * short.scale).all()
    assert (np.abs(short.values[~outside]) < 2.05).all()
    assert not (short.residuals <= 1e-4 * short.scale).all()


def test_a_tolerance_of_zero_spans_the_whole_space_and_stops() -> None:
    matrix = spiked(30, [2.5])
    pairs = solve(matrix, 2, 2, tolerance=0.0)
    assert pairs.products == 30
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(matrix)[[-1, -2, 1, 0]], atol=1e-12)


def test_pairs_that_will_do() -> None:
    operator = operator_of(2, 24, 900)
    values = np.linalg.eigvalsh(operator.dense())
    asked = []

    def enough(pairs: Eigenpairs) -> bool:
        asked.append(pairs.products)
        return bool(pairs.converged[:3].all())

    pairs = leading_eigenpairs(operator, 8, 8, route="lanczos", enough=enough, rng=0)
    whole = leading_eigenpairs(operator, 8, 8, route="lanczos", rng=0)
    assert pairs.products == asked[-1] < whole.products
    assert pairs.converged[:3].all()
    assert not pairs.converged.all()
    np.testing.assert_allclose(pairs.values[:3], values[::-1][:3], atol=1e-6 * pairs.scale)


def test_the_same_seed_gives_the_same_pairs() -> None:
    operator = operator_of(2, 12, 200)
    first = leading_eigenpairs(operator, 2, 2, route="lanczos", rng=7)
    again = leading_eigenpairs(operator, 2, 2, route="lanczos", rng=np.random.default_rng(7))
    np.testing.assert_array_equal(first.vectors, again.vectors)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_upper": 0, "n_lower": 0}, "whose sum is 1 to the 10 features"),
        ({"n_upper": -1, "n_lower": 2}, "n_upper is -1"),
        ({"n_upper": 6, "n_lower": 5}, "n_upper is 6 and n_lower is 5"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"max_products": 0}, "max_products is 0"),
        ({"route": "lanzcos"}, "Did you mean 'lanczos'"),
        ({"unconverged": "ignore"}, "unconverged is 'ignore'"),
    ],
)
def test_bad_parameters(change: dict[str, Any], message: str) -> None:
    operator = operator_of(2, 4, 30)
    arguments: dict[str, Any] = {"n_upper": 1, "n_lower": 1, "rng": 0}
    with pytest.raises(InvalidParameter, match=message):
        leading_eigenpairs(operator, **{**arguments, **change})


@pytest.mark.parametrize("route", ["lanczos", "dense", "gram"])
def test_nan_in_the_samples(route: Any) -> None:
    X = np.random.default_rng(0).standard_normal((8, 4))
    X[3, 2] = np.nan
    operator = MomentOperator(X, np.arange(8.0), HermiteFeatures(2, 4))
    with np.errstate(invalid="ignore"), pytest.raises(InvalidData, match="NaN or infinite"):
        leading_eigenpairs(operator, 1, 1, route=route, rng=0)


def test_memory_is_refused_before_it_is_taken() -> None:
    operator = operator_of(2, 20, 400)
    with pytest.raises(MemoryLimitExceeded, match=r"exceeds the 0\.1 MB available"):
        leading_eigenpairs(operator, 1, 1, route="dense", rng=0, available_memory=1e5)
    assert operator.products == 0
