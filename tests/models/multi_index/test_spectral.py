"""Spectral estimators against dense matrices, numpy's eigh and closed-form laws."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from solvable.arrays import GeneratedSource, as_source
from solvable.errors import InvalidData
from solvable.models.multi_index.overlaps import optimal_map
from solvable.models.multi_index.preprocessing import Lamp, scalar_directions
from solvable.models.multi_index.spectral import (
    InputMoment,
    permuted_edges,
    spectral_directions,
)
from solvable.models.multi_index.whitening import Scaling, fit_scaling
from solvable.operators import apply_label_map
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum


def table(n, d, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    y = X[:, 0] ** 2 - 1.5 * X[:, 1] ** 2 + 0.3 * rng.standard_normal(n)
    return X, y


def orthonormal(d, k, seed=5):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0]


def coloured(n, d, seed=3):
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((d, d)) * np.logspace(0, -1, d)
    return rng.standard_normal((n, d)) @ mixing.T + 50.0


@pytest.mark.parametrize("held", [True, False])
def test_the_operator_is_the_explicit_matrix(held, monkeypatch):
    X, y = coloured(300, 12), table(300, 12)[1]
    T = apply_label_map(y, "tanh")
    scaling = fit_scaling(as_source(X), "shrunk")
    known = orthonormal(12, 2)
    operator = InputMoment(as_source(X), T, scaling=scaling, known=known)
    if not held:
        operator._held = None
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Z = np.linalg.solve(scaling.factor, Z.T).T
    Z -= Z @ known @ known.T
    expected = (Z * T[:, None]).T @ Z / 300
    U = orthonormal(12, 5, seed=8)
    np.testing.assert_allclose(operator.matmat(U), expected @ U, atol=1e-12)
    np.testing.assert_allclose(operator.dense(), expected, atol=1e-12)


def test_shrunk_whitening_leaves_white_inputs_alone():
    # With 400 rows in 200 dimensions full whitening would distort the spectrum.
    X, _ = table(400, 200)
    scaling = fit_scaling(as_source(X), "shrunk")
    assert scaling.shrinkage > 0.98
    turned = scaling.turn(np.eye(200))
    assert np.abs(np.linalg.svd(turned, compute_uv=False) - 1).max() < 0.02


def test_shrunk_whitening_makes_many_coloured_rows_white():
    X = coloured(20_000, 10)
    scaling = fit_scaling(as_source(X), "shrunk")
    Z = (X - scaling.mean) @ scaling.components(np.eye(10))
    assert scaling.shrinkage < 0.01
    # Shrunk whitening leaves a direction of variance l the variance l / ((1 - delta) l + delta).
    power, delta = np.linalg.eigvalsh(np.corrcoef(X.T)), scaling.shrinkage
    white = np.linalg.eigvalsh(Z.T @ Z / len(X))
    np.testing.assert_allclose(white, power / ((1 - delta) * power + delta), rtol=1e-8)
    assert white.min() > 0.9


def test_scaling_does_not_depend_on_type_or_order_of_the_rows():
    X = np.sort(coloured(9_000, 4), axis=0) + 1e4
    wide = fit_scaling(as_source(X), "shrunk")
    other = fit_scaling(as_source(X[::-1]), "shrunk")
    np.testing.assert_allclose(wide.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(wide.scale, X.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(wide.factor, other.factor, atol=1e-9)


def test_constant_columns_are_kept_without_a_scale():
    X = np.column_stack([np.full(50, 7.0), np.random.default_rng(0).standard_normal(50)])
    scaling = fit_scaling(as_source(X), "shrunk")
    assert np.isfinite(scaling.components(np.eye(2))).all()
    assert scaling.scale[0] == pytest.approx(1)


@pytest.mark.parametrize("d", [30, 450])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_directions_are_those_of_eigh_ranked_from_the_bulk(d, dtype):
    # Above 400 dimensions a partial eigendecomposition is used.
    X, y = table(20 * d, d, dtype=dtype)
    T = apply_label_map(y, "tanh")
    found = spectral_directions(partial(InputMoment, as_source(X)), T, None, seed=1)
    values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / len(X))
    # The second coordinate has the larger coefficient; its eigenvalue is below the lower edge.
    np.testing.assert_allclose(found.eigenvalues, [values[0], values[-1]], rtol=2e-3)
    overlaps = np.abs(np.sum(vectors[:, [0, -1]] * found.directions, axis=0))
    np.testing.assert_allclose(overlaps, 1, atol=1e-3)
    assert found.outliers.all()
    assert "permuted labels" in found.rejected[0]


def test_a_number_of_directions_is_filled_by_distance_from_the_bulk():
    X, y = table(1_000, 20)
    T = apply_label_map(y, "tanh")
    found = spectral_directions(partial(InputMoment, as_source(X)), T, 20, seed=1)
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(20), atol=1e-9)
    lower, upper = found.edges
    distance = np.maximum(found.eigenvalues - upper, lower - found.eigenvalues)
    assert (np.diff(distance) <= 1e-12).all()
    assert found.outliers.tolist() == [True] * 2 + [False] * 18
    assert len(found.rejected) == 18
    assert "kept" in found.rejected[0]


def test_known_directions_are_not_found_again():
    X, y = table(4_000, 25)
    operator_of = partial(InputMoment, as_source(X), known=np.eye(25)[:, 1:2])
    found = spectral_directions(operator_of, apply_label_map(y, "tanh"), None, seed=0)
    assert found.directions.shape == (25, 1)
    assert abs(found.directions[0, 0]) > 0.9
    assert abs(found.directions[1, 0]) < 1e-10
    every = spectral_directions(operator_of, apply_label_map(y, "tanh"), 24, seed=0)
    np.testing.assert_allclose(every.directions[1], 0, atol=1e-10)


def test_noise_alone_has_an_outlier_in_at_most_one_of_ten_samples():
    # Nineteen permutations give false outliers in 5 % of samples at each end; the margin lowers this.
    rng, false = np.random.default_rng(2), 0
    for seed in range(40):
        X, T = rng.standard_normal((200, 15)), apply_label_map(rng.standard_normal(200), "tanh")
        found = spectral_directions(partial(InputMoment, as_source(X)), T, None, seed=seed)
        false += found.eigenvalues.size > 0
    assert false <= 4 + 3 * np.sqrt(3.6)


@pytest.mark.parametrize("ratio", [3.0, 12.0])
def test_permuted_edges_are_those_of_the_law(ratio):
    d = 700
    rng = np.random.default_rng(4)
    n = round(ratio * d)
    X = rng.standard_normal((n, d))
    T = apply_label_map(rng.chisquare(2, size=n), "tanh")
    edges = permuted_edges(partial(InputMoment, as_source(X)), T, 2, seed=0)
    law = LabelLaw(
        weights=np.sort(T), probabilities=np.full(n, 1 / n), second_moments=np.ones((n, 1))
    )
    spectrum = label_weighted_spectrum(law, ratio=ratio)
    # The edge of a finite matrix lies inside the bulk by a relative d^(-2/3), less for the larger of two.
    width = spectrum.upper.edge - spectrum.lower.edge
    np.testing.assert_allclose(edges, [spectrum.lower.edge, spectrum.upper.edge], atol=0.02 * width)


def test_sources_drawn_again_give_the_directions_of_arrays():
    source = GeneratedSource(lambda rows, rng: rng.standard_normal((rows, 18)), 6_000, 18, seed=4)
    X = np.concatenate([block for _, block in source.chunks(1_000)])
    T = apply_label_map(X[:, 3] ** 2, "tanh")
    found = [
        spectral_directions(partial(InputMoment, samples), T, None, seed=0)
        for samples in (source, as_source(X))
    ]
    np.testing.assert_allclose(found[0].eigenvalues, found[1].eigenvalues, rtol=1e-10)


# Estimators for a known channel


def test_scalar_directions_are_those_of_the_dense_matrix():
    X, _ = table(500, 30)
    T = optimal_map(X[:, 0] ** 2 - 1)
    values, vectors = scalar_directions(X, T, 2, rng=np.random.default_rng(0))
    dense = np.linalg.eigh((X * T[:, None]).T @ X / 30)
    np.testing.assert_allclose(values, dense[0][:-3:-1], rtol=1e-9)
    np.testing.assert_allclose(np.abs(vectors.T @ dense[1][:, :-3:-1]), np.eye(2), atol=1e-6)


def test_lamp_is_that_of_the_dense_matrix():
    rng = np.random.default_rng(3)
    n, d = 240, 30
    X = rng.standard_normal((n, d))
    G = X[:, 0] ** 2 - 1
    lamp = Lamp(X, G, rng)
    values, vectors = np.linalg.eig((X @ X.T / d - np.eye(n)) * G)
    leading = np.argmax(values.real)
    eigenvalue, W = lamp.leading()
    assert eigenvalue == pytest.approx(values[leading].real, rel=1e-4)
    expected = X.T @ (G * vectors[:, leading].real)
    assert abs(W @ expected) > 0.999 * np.linalg.norm(W) * np.linalg.norm(expected)
    moduli = np.sort(np.abs(values))[::-1][:3]
    np.testing.assert_allclose(lamp.moduli(3), moduli, rtol=2e-3)


def test_lamp_corresponds_to_a_preprocessing():
    # L w = theta w if and only if X^T diag(G / (theta + G)) X W / d = W   (multi-index 10)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 60))
    G = X[:, 0] ** 2 - 1
    theta, W = Lamp(X, G, rng).leading()
    image = X.T @ (G / (theta + G) * (X @ W)) / 60
    np.testing.assert_allclose(image, W, atol=1e-3 * np.linalg.norm(W))


def test_inputs_that_are_not_finite_are_refused():
    X, _ = table(30, 4)
    X[3, 2] = np.nan
    with pytest.raises(InvalidData, match="column 2 holds NaN"):
        fit_scaling(as_source(X), "scale")
    assert fit_scaling(as_source(X), "none") == Scaling()


def test_products_without_a_matrix_find_the_same(monkeypatch):
    X, y = table(2_000, 60)
    T = apply_label_map(y, "tanh")
    held = spectral_directions(partial(InputMoment, as_source(X)), T, None, seed=0)
    monkeypatch.setattr("solvable.models.multi_index.spectral.FULL_SPECTRUM", 0)

    def free(weights):
        operator = InputMoment(as_source(X), weights, scaling=fit_scaling(as_source(X), "none"))
        operator._held = None
        return operator

    found = spectral_directions(free, T, None, seed=0)
    np.testing.assert_allclose(found.eigenvalues, held.eigenvalues, rtol=2e-3)
    np.testing.assert_allclose(found.edges, held.edges, rtol=5e-3)


def test_few_rows_of_many_columns_need_no_matrix():
    X, y = table(60, 3_000)
    operator = InputMoment(as_source(X), apply_label_map(y, "tanh"))
    assert operator._held is None
