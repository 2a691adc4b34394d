"""Second layers: least squares on fresh rows, and layers made of eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.errors import InvalidData
from solvable.learners import LayerwiseSpectralRegressor
from solvable.models.sequential.estimator.second_layer import (
    SecondLayer,
    fit_least_squares,
    layer_from_spectrum,
)
from solvable.moment_spectrum.cross_terms import count_columns, wants_cross_terms


def quadratic_data(n_rows, n_latent, *, linear=False, noise=0.0, seed=0):
    rng = random_stream("second layer", n_rows, n_latent, seed)
    latent = rng.standard_normal((n_rows, n_latent))
    matrix = rng.standard_normal((n_latent, n_latent))
    matrix = (matrix + matrix.T) / 2
    slope = rng.standard_normal(n_latent) if linear else np.zeros(n_latent)
    labels = 3.0 + np.einsum("ni,ij,nj->n", latent, matrix, latent) + latent @ slope
    return latent, labels + noise * rng.standard_normal(n_rows), matrix, slope


@pytest.mark.parametrize("linear", [False, True])
def test_recovers_a_quadratic_function_exactly(linear):
    latent, labels, matrix, slope = quadratic_data(400, 5, linear=linear)
    layer = fit_least_squares(
        [(latent, labels)], 5, cross_terms=True, linear_terms=linear, regularisation=0.0
    )
    np.testing.assert_allclose(layer.quadratic, matrix, atol=1e-9)
    np.testing.assert_allclose(layer.linear, slope, atol=1e-9)
    assert layer.intercept == pytest.approx(3.0, abs=1e-9)
    np.testing.assert_allclose(layer(latent), labels, atol=1e-9)


def test_agrees_with_numpy_least_squares_on_noisy_data():
    latent, labels, _, _ = quadratic_data(300, 4, noise=1.0)
    layer = fit_least_squares(
        [(latent, labels)], 4, cross_terms=False, linear_terms=False, regularisation=0.0
    )
    design = np.column_stack([np.ones(300), latent**2])
    expected, *_ = np.linalg.lstsq(design, labels, rcond=None)
    assert layer.intercept == pytest.approx(expected[0])
    np.testing.assert_allclose(np.diag(layer.quadratic), expected[1:], rtol=1e-8)
    assert np.count_nonzero(layer.quadratic - np.diag(np.diag(layer.quadratic))) == 0


@given(st.integers(1, 199), st.floats(-1e6, 1e6))
def test_chunks_and_offsets_do_not_matter(cut, offset):
    latent, labels, _, _ = quadratic_data(200, 3, noise=0.5)
    options = {"cross_terms": True, "linear_terms": True, "regularisation": 1e-6}
    whole = fit_least_squares([(latent, labels)], 3, **options)
    parts = [(latent[:cut], labels[:cut] + offset), (latent[cut:], labels[cut:] + offset)]
    split = fit_least_squares(parts, 3, **options)
    np.testing.assert_allclose(split.quadratic, whole.quadratic, atol=1e-7)
    assert split.intercept == pytest.approx(whole.intercept + offset, abs=1e-6)


def test_ridge_shrinks_and_undetermined_columns_get_nothing():
    latent, labels, _, _ = quadratic_data(100, 3)
    loose = fit_least_squares(
        [(latent, labels)], 3, cross_terms=True, linear_terms=False, regularisation=1e-8
    )
    tight = fit_least_squares(
        [(latent, labels)], 3, cross_terms=True, linear_terms=False, regularisation=10.0
    )
    assert np.linalg.norm(tight.quadratic) < 0.3 * np.linalg.norm(loose.quadratic)
    constant = np.column_stack([latent, np.ones(100)])
    layer = fit_least_squares(
        [(constant, labels)], 4, cross_terms=False, linear_terms=False, regularisation=0.0
    )
    assert layer.quadratic[3, 3] == 0.0
    assert np.isfinite(layer.quadratic).all()


def test_fewer_rows_than_columns_stays_finite():
    latent, labels, _, _ = quadratic_data(4, 6)
    layer = fit_least_squares(
        [(latent, labels)], 6, cross_terms=True, linear_terms=True, regularisation=1e-6
    )
    assert np.isfinite(layer.quadratic).all()
    assert np.abs(layer(latent) - labels).max() < 1e-3 * np.abs(labels).max()


def test_no_rows_is_an_error():
    with pytest.raises(InvalidData, match="at least one"):
        fit_least_squares([], 2, cross_terms=True, linear_terms=False, regularisation=0.0)


def test_cross_terms_by_the_number_of_rows():
    # 10 latent features have 55 products.
    assert wants_cross_terms("auto", 10, 550, linear_terms=False)
    assert not wants_cross_terms("auto", 10, 549, linear_terms=False)
    assert not wants_cross_terms("auto", 10, 550, linear_terms=True)
    assert wants_cross_terms(True, 10, 1, linear_terms=False)


@pytest.fixture(scope="module")
def fitted():
    """Spectral layer fitted to Gaussian features, two of them in the label."""
    rng = random_stream("in sample")
    X = rng.standard_normal((4000, 40))
    y = 5.0 + 2.0 * (0.8 * (X[:, 0] ** 2 - 1) - 0.6 * (X[:, 1] ** 2 - 1)) / np.sqrt(2)
    learner = LayerwiseSpectralRegressor(
        degree=1,
        n_directions=3,
        selection="forced",
        label_map="identity",
        second_layer="in-sample",
        held_back=0,
        readout="none",
        random_state=0,
    )
    return X, y, learner.fit(X, y)


def test_in_sample_layer_is_the_moment_on_the_same_rows(fitted):
    """arXiv:2605.14567, Equations 2.12 and 2.13, by explicit sums (sequential 2) (sequential 14)."""
    X, y, learner = fitted
    latent = learner.transform(X)
    labels = (y - y.mean()) / y.std()
    moment = (latent.T * labels) @ latent / len(y) - labels.mean() * np.eye(3)
    np.testing.assert_allclose(moment, np.diag(learner.eigenvalues_), atol=1e-10)
    index = np.einsum("ni,ij,nj->n", latent, moment, latent) - np.trace(moment)
    np.testing.assert_allclose(
        learner.predict(X), y.mean() + y.std() * index / 2, rtol=1e-10, atol=1e-10
    )


def test_shrinkage_removes_the_inflation(fitted):
    X, y, learner = fitted
    shrunk = LayerwiseSpectralRegressor(**learner.get_params())
    shrunk.set_params(second_layer="shrinkage").fit(X, y)
    layer = shrunk.layers_[0]
    moved = layer.eigenvalues - layer.noise_centre
    expected = np.sign(moved) * np.sqrt(np.maximum(moved**2 - 4 * layer.noise_scale**2, 0))
    np.testing.assert_allclose(2 * np.diag(shrunk.second_layer_.quadratic) / y.std(), expected)
    # theta_i = sqrt(2) lambda_i on standardised labels; the fluctuation of an eigenvalue is
    # sqrt(E[T² (h² - 1)²] / n), at most sqrt(60 / 4000) = 0.12.
    strongest = 2 * np.diag(shrunk.second_layer_.quadratic)[:2] / y.std()
    assert sorted(strongest) == pytest.approx([-0.6 * np.sqrt(2), 0.8 * np.sqrt(2)], abs=0.25)


def test_spectrum_layer_in_units_of_the_labels(fitted):
    _, _, learner = fitted
    layer = learner.layers_[0]
    one = layer_from_spectrum(layer, "in-sample", mean=1.0, scale=1.0)
    two = layer_from_spectrum(layer, "in-sample", mean=3.0, scale=2.0)
    latent = random_stream("units").standard_normal((10, 3))
    np.testing.assert_allclose(two(latent) - 3.0, 2 * (one(latent) - 1.0))


def test_call_is_the_formula():
    layer = SecondLayer(0.5, np.array([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 0.0]]), "x")
    # 0.5 + 1 * 3 + (1 * 9 + 2 * 2 * 3 * -1) = 0.5.
    assert layer(np.array([[3.0, -1.0]])) == pytest.approx([0.5])


def test_columns_are_counted_as_they_are_fitted():
    assert count_columns(4, cross_terms=True, linear_terms=False) == 10
    assert count_columns(4, cross_terms=False, linear_terms=True) == 8
