"""Moment operator (arXiv:2605.14567, Equation 2.6) against its matrix, for every source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, eigsh

from solvable.arrays import GENERATION_ROWS, GeneratedSource
from solvable.errors import InvalidData, InvalidParameter
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map


def problem(degree: int, dimension: int, n: int, seed: int = 0) -> tuple[Any, Any, HermiteFeatures]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dimension))
    X.setflags(write=False)
    return X, rng.standard_normal(n), HermiteFeatures(degree, dimension)


def by_definition(X: np.ndarray, T: np.ndarray, features: HermiteFeatures) -> np.ndarray:
    F = features.transform(X)
    return (F.T * T) @ F / len(X) - T.mean() * np.eye(F.shape[1])


@pytest.mark.parametrize(("degree", "dimension"), [(1, 12), (2, 12), (3, 12), (2, 1), (3, 1)])
def test_products_and_matrix_equal_the_definition(degree: int, dimension: int) -> None:
    # arXiv:2605.14567, Equation 2.6, uncorrected
    X, T, features = problem(degree, dimension, 90)
    operator = MomentOperator(X, T, features)
    expected = by_definition(X, T, features)
    scale = np.abs(expected).max()
    eye = np.eye(features.n_features)
    np.testing.assert_allclose(operator.matmat(eye), expected, atol=1e-12 * scale)
    np.testing.assert_allclose(operator.dense(), expected, atol=1e-12 * scale)
    np.testing.assert_array_equal(operator.dense(), operator.dense().T)


def test_in_sample_second_layer_is_diagonal() -> None:
    # The moment operator of the projections on the eigenvectors is diagonal, with the eigenvalues.
    X, T, features = problem(2, 8, 200)
    T = T - T.mean()
    values, vectors = np.linalg.eigh(MomentOperator(X, T, features).dense())
    leading = vectors[:, [-1, -2, 0]]
    h = features.project(X, leading)
    second = (h.T * T) @ h / len(X) - T.mean() * np.eye(3)
    np.testing.assert_allclose(second, np.diag(values[[-1, -2, 0]]), atol=1e-10)


def test_population_matrix_has_the_predicted_eigenvalue() -> None:
    # E[C] = sqrt(2) lambda u u^T for y = lambda (h² - 1)/sqrt(2), features of degree 1, lambda=1.
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200_000, 3))
    y = (X[:, 0] ** 2 - 1) / np.sqrt(2)
    matrix = MomentOperator(X, y, HermiteFeatures(1, 3)).dense()
    # The variance of y x_0² is 53; that of the other entries is at most 5.
    expected = np.diag([np.sqrt(2), 0, 0])
    assert abs(matrix[0, 0] - np.sqrt(2)) < 4 * np.sqrt(53 / len(X))
    assert np.abs(matrix - expected)[1:].max() < 4 * np.sqrt(5 / len(X))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), st.integers(1, 40), st.sampled_from(["none", "wick"]))
def test_chunk_size_does_not_matter(degree: int, rows: int, correction: Any) -> None:
    X, T, features = problem(degree, 4, 37)
    U = np.random.default_rng(1).standard_normal((features.n_features, 2))
    whole = MomentOperator(X, T, features, correction=correction)
    parts = MomentOperator(X, T, features, correction=correction, chunk_rows=rows)
    scale = np.abs(whole.matmat(U)).max()
    np.testing.assert_allclose(parts.matmat(U), whole.matmat(U), atol=1e-12 * scale)
    np.testing.assert_allclose(parts.dense(), whole.dense(), atol=1e-12 * scale)
    assert parts.statistics.weighted_norm_fourth == pytest.approx(
        whole.statistics.weighted_norm_fourth, rel=1e-12
    )


@settings(max_examples=15, deadline=None)
@given(st.floats(-5, 5), st.integers(0, 2**31))
def test_linear_in_weights_and_blind_to_order(factor: float, seed: int) -> None:
    X, T, features = problem(2, 4, 30)
    order = np.random.default_rng(seed).permutation(30)
    matrix = MomentOperator(X, T, features).dense()
    scaled = MomentOperator(X[order], factor * T[order], features).dense()
    np.testing.assert_allclose(scaled, factor * matrix, atol=1e-11)


def test_memory_mapped_and_regenerated_sources_equal_arrays(tmp_path: Path) -> None:
    n = GENERATION_ROWS + 123
    source = GeneratedSource(lambda rows, rng: rng.standard_normal((rows, 5)), n, 5, seed=3)
    X = np.concatenate([block for _, block in source.chunks(700)])
    T = np.tanh(X[:, 0] * X[:, 1])
    np.save(tmp_path / "x.npy", X)
    features = HermiteFeatures(2, 5)
    U = np.random.default_rng(0).standard_normal((15, 2))
    for correction in ("none", "wick"):
        expected = MomentOperator(X, T, features, correction=correction)
        for samples in (source, tmp_path / "x.npy", str(tmp_path / "x.npy")):
            operator = MomentOperator(samples, T, features, correction=correction)
            np.testing.assert_allclose(operator.matmat(U), expected.matmat(U), atol=1e-12)
            np.testing.assert_allclose(
                operator.weighted_norms, expected.weighted_norms, rtol=1e-13, atol=1e-15
            )


def test_file_that_is_no_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"not an array")
    with pytest.raises(InvalidData, match=r"no NumPy array|Python objects|damaged"):
        MomentOperator(tmp_path / "x.npy", np.zeros(3), HermiteFeatures(1, 2))


def test_single_precision_adds_up_in_double() -> None:
    # A running float32 sum over this many blocks would lose about 1e-4 of the total.
    rng = np.random.default_rng(0)
    X = (1 + 0.1 * rng.standard_normal((60_000, 3))).astype(np.float32)
    T = 1 + 0.01 * rng.standard_normal(60_000)
    features = HermiteFeatures(2, 3)
    single = MomentOperator(X, T, features, chunk_rows=64)
    exact = MomentOperator(X.astype(np.float64), T, features)
    assert single.itemsize == 4
    assert exact.itemsize == 8
    np.testing.assert_allclose(single.matmat(np.eye(6)), exact.matmat(np.eye(6)), atol=1e-6)
    assert single.statistics.weighted_norm_fourth == pytest.approx(
        exact.statistics.weighted_norm_fourth, rel=1e-5
    )


def test_statistics_equal_explicit_averages() -> None:
    X, T, features = problem(2, 6, 50)
    operator = MomentOperator(X, T, features)
    norms = (features.transform(X) ** 2).sum(axis=1) / features.n_features
    statistics = operator.statistics
    assert statistics.mean_weight == pytest.approx(T.mean())
    assert statistics.weight_second_moment == pytest.approx(np.mean(T**2))
    assert statistics.weighted_norm_mean == pytest.approx(np.mean(T * norms))
    assert statistics.weighted_norm_second == pytest.approx(np.mean(T**2 * norms))
    assert statistics.weighted_norm_fourth == pytest.approx(np.mean(T**2 * norms**2))
    assert statistics.largest_weighted_norm == pytest.approx(np.max(np.abs(T) * norms))
    np.testing.assert_allclose(operator.weighted_norms, T * norms)
    # The mean eigenvalue equals the shift exactly.
    assert np.trace(operator.dense()) / features.n_features == pytest.approx(statistics.shift)


def test_noise_scale_is_the_edge_of_pure_noise() -> None:
    # Bounded weights independent of Gaussian features: the bulk is the semicircle of radius 2 s up
    # to O(sqrt(D / n)) = 0.05 and edge fluctuations D^(-2/3) = 0.03.
    rng = np.random.default_rng(7)
    D, n = 200, 80_000
    T = rng.choice([-1.0, 1.0], n)
    operator = MomentOperator(rng.standard_normal((n, D)), T - T.mean(), HermiteFeatures(1, D))
    values = np.linalg.eigvalsh(operator.dense())
    assert values[-1] / (2 * operator.statistics.noise_scale) == pytest.approx(1, abs=0.08)
    assert values[0] / (2 * operator.statistics.noise_scale) == pytest.approx(-1, abs=0.08)


def test_one_pass_gives_statistics_and_correction() -> None:
    passes = []

    class Counting:
        n_samples, n_columns, dtype = 40, 4, np.float64
        X = np.random.default_rng(0).standard_normal((40, 4))

        def chunks(self, rows: int) -> Any:
            passes.append(rows)
            yield slice(0, 40), self.X

    T = np.random.default_rng(1).standard_normal(40)
    operator = MomentOperator(Counting(), T, HermiteFeatures(2, 4), correction="wick")
    assert operator.statistics.n_samples == 40
    assert operator.weighted_norms.shape == (40,)
    assert len(passes) == 1
    operator.matmat(np.eye(10))
    assert len(passes) == 2


def test_products_are_counted_per_vector() -> None:
    X, T, features = problem(2, 4, 20)
    operator = MomentOperator(X, T, features)
    operator.matmat(np.ones((10, 3)))
    operator.matvec(np.ones(10))
    assert operator.matvec(np.ones((10, 1))).shape == (10, 1)
    assert operator.matmat(np.ones((10, 0))).shape == (10, 0)
    assert operator.products == 5


def test_interchange_with_scipy() -> None:
    X, T, features = problem(2, 6, 60)
    operator = MomentOperator(X, T, features)
    linear = operator.as_linear_operator()
    assert isinstance(linear, LinearOperator)
    assert (linear.shape, linear.dtype) == ((21, 21), np.float64)
    values = np.sort(eigsh(linear, k=2, which="BE", return_eigenvectors=False))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(operator.dense())[[0, -1]], atol=1e-10)
    np.testing.assert_allclose(linear.T @ np.ones(21), linear @ np.ones(21), atol=1e-12)


def test_a_single_sample_works() -> None:
    X, features = np.ones((1, 3)), HermiteFeatures(2, 3)
    operator = MomentOperator(X, [2.0], features)
    np.testing.assert_allclose(
        operator.dense(), by_definition(X, np.array([2.0]), features), atol=1e-14
    )


def test_gaussian_equivalent_samples_are_features_of_degree_one() -> None:
    X, T, features = problem(2, 5, 40)
    explicit = MomentOperator(features.transform(X), T, HermiteFeatures(1, 15)).dense()
    np.testing.assert_allclose(explicit, MomentOperator(X, T, features).dense(), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.zeros(9)}, r"weights have shape \(9,\); allowed: \(10,\)"),
        ({"weights": np.full(10, np.nan)}, "weights are NaN or infinite"),
        ({"source": np.zeros((0, 3)), "weights": np.zeros(0)}, "no samples"),
        ({"source": np.zeros((10, 4))}, "4 columns and the features are of dimension 3"),
        ({"source": np.zeros(10)}, "two-dimensional"),
    ],
)
def test_bad_data(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "source": np.zeros((10, 3)),
        "weights": np.zeros(10),
        "features": HermiteFeatures(2, 3),
    }
    with pytest.raises(InvalidData, match=message):
        MomentOperator(**{**arguments, **change})


def test_bad_parameters() -> None:
    X, T, features = problem(2, 3, 10)
    with pytest.raises(InvalidParameter, match="chunk_rows is 0"):
        MomentOperator(X, T, features, chunk_rows=0)
    with pytest.raises(InvalidParameter, match="Did you mean 'wick'"):
        MomentOperator(X, T, features, correction="wik")  # type: ignore[arg-type]
    with pytest.raises(InvalidData, match=r"U has shape \(5, 1\); allowed: \(6, k\)"):
        MomentOperator(X, T, features).matmat(np.ones((5, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_bad_entries_are_found_on_every_way(degree: int, bad: float) -> None:
    X, T, features = problem(degree, 3, 10)
    X = X.copy()
    X[7, 1] = bad
    with np.errstate(invalid="ignore", over="ignore"):
        for way in (
            lambda operator: operator.statistics,
            lambda operator: operator.dense(),
            lambda operator: operator.matvec(np.ones(features.n_features)),
        ):
            with pytest.raises(InvalidData, match="NaN or infinite"):
                way(MomentOperator(X, T, features))
        with pytest.raises(InvalidData, match="first: row 7"):
            MomentOperator(X, T, features, correction="wick").statistics  # noqa: B018


def test_nan_in_a_row_of_zero_weight_is_found_by_the_statistics() -> None:
    X, T, features = problem(2, 3, 10)
    X = X.copy()
    X[2, 0], T[2] = np.nan, 0.0
    with pytest.raises(InvalidData, match="first: row 2"):
        MomentOperator(X, T, features).statistics  # noqa: B018


def test_mapped_labels_are_weights() -> None:
    X, y, features = problem(2, 3, 10)
    weights = apply_label_map(y, "clip")
    assert abs(MomentOperator(X, weights, features).statistics.mean_weight) < 1e-16
