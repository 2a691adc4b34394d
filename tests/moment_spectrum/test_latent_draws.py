"""Last layer on latent draws, against closed forms, explicit directions and fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.models.sequential.estimator.readout import fit_spline_readout
from solvable.models.sequential.estimator.second_layer import fit_least_squares
from solvable.moment_spectrum.latent_draws import (
    LatentDraws,
    fit_last_layer,
    plug_in_error,
    random_features,
)
from solvable.targets import HierarchicalTarget


def gaussian_draws(weights, draws=60_000, key="draws"):
    stream = random_stream(key, len(weights))
    u, z = stream.standard_normal((2, draws, len(weights)))
    return LatentDraws((u**2 - 1) @ np.asarray(weights) / np.sqrt(2), u, z)


def test_gaussian_features_have_the_closed_form_error_and_shrunk_eigenvalues():
    weights = np.array([0.8, -0.5, 0.33166248])
    draws = gaussian_draws(weights)
    overlap = np.array([0.9, 0.6, 0.0])
    fit = fit_last_layer(draws.learned(overlap), draws.labels, readout=False)
    expected = 1 - np.sum(weights**2 * overlap**2)
    # Relative error of a variance of a quadratic form over 30,000 draws is about 3 %.
    assert fit.normalised_mse == pytest.approx(expected, rel=0.06)
    np.testing.assert_allclose(fit.matrix, np.diag(weights * overlap) / np.sqrt(2), atol=0.03)


def test_a_readout_undoes_a_saturation():
    draws = gaussian_draws([0.8, 0.6])
    labels = np.tanh(3 * draws.labels)
    features = draws.learned(np.ones(2))
    line = fit_last_layer(features, labels, readout=False).normalised_mse
    curve = fit_last_layer(features, labels).normalised_mse
    assert curve < 0.02 < line


def test_a_constant_representation_predicts_the_mean():
    labels = random_stream("constant").standard_normal(4_000)
    assert fit_last_layer(np.zeros((4_000, 2)), labels).normalised_mse == pytest.approx(1, abs=0.01)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2))
@settings(max_examples=25, deadline=None)
def test_learned_features_have_unit_variance_and_the_given_overlap(overlap):
    draws = gaussian_draws([0.6, 0.8], draws=20_000)
    features = draws.learned(np.array(overlap))
    assert features.var(axis=0) == pytest.approx(1, abs=0.06)
    found = np.mean(features * draws.signal, axis=0)
    assert found == pytest.approx(np.sqrt(overlap), abs=0.04)


def true_draws(target, draws, key):
    """Labels, latent features, and features along explicit random orthogonal directions."""
    stream = random_stream(key, target.seed)
    X, labels = target.sample(draws, stream)
    A = target.directions
    Z = stream.standard_normal(A.shape)
    Z = np.linalg.qr(Z - A @ (A.T @ Z))[0]
    signal, noise = (target.feature_map.project(X, directions) for directions in (A, Z))
    return LatentDraws(labels, signal, noise), target.feature_map.squared_norm(X)


@pytest.mark.parametrize(("degree", "dimension"), [(1, 60), (2, 14), (2, 27), (3, 9)])
def test_random_directions_need_no_more_than_the_norm(degree, dimension):
    target = HierarchicalTarget(dimension, degree=degree, features=3, decay=0.5, signs="positive")
    real, squared_norm = true_draws(target, 60_000, "norm")
    stream = random_stream("norm", "conditional")
    noise = random_features(squared_norm, real.signal, target.n_features_total, stream)
    overlap = np.array([0.8, 0.5, 0.2])
    found, expected = (
        fit_last_layer(draws.learned(overlap), real.labels, readout=False).normalised_mse
        for draws in (LatentDraws(real.labels, real.signal, noise), real)
    )
    # 1 % for the noise; 4 % at d = 14 for one set of directions against the mean.
    assert found == pytest.approx(expected, rel=0.02 + 0.6 / dimension)
    if degree == 3:
        independent = stream.standard_normal(noise.shape)
        draws = LatentDraws(real.labels, real.signal, independent)
        apart = fit_last_layer(draws.learned(overlap), real.labels, readout=False)
        assert apart.normalised_mse < 0.8 * expected


@pytest.mark.parametrize("saturated", [False, True])
@pytest.mark.parametrize(("features", "rows"), [(4, 400), (8, 1_000), (20, 1_500)])
def test_few_rows_cost_what_fits_to_so_many_cost(features, rows, saturated):
    """Errors of least squares and splines fitted on disjoint rows, on all other rows."""
    draws = gaussian_draws(
        np.resize([0.9, 0.4], features) / features**0.5, draws=40_000, key="rows"
    )
    labels = np.tanh(draws.labels) if saturated else draws.labels
    latent = draws.learned(np.linspace(0.9, 0.3, features))
    cross = 10 * features * (features + 1) / 2 <= rows
    errors = []
    for start in range(0, len(labels), rows):
        part = slice(start, start + rows)
        chunk = [(latent[part], labels[part])]
        options = {"cross_terms": cross, "linear_terms": False, "regularisation": 1e-6}
        layer = fit_least_squares(chunk, features, **options)
        index = layer(latent)
        spline = fit_spline_readout(index[part], labels[part]) if saturated else None
        predicted = spline(index) if spline else index
        others = np.delete(np.arange(len(labels)), part)
        errors.append(np.mean((predicted - labels)[others] ** 2) / labels.var())
    found, best = (
        fit_last_layer(latent, labels, readout=saturated, rows=count).normalised_mse
        for count in (rows, None)
    )
    error = np.std(errors) / np.sqrt(len(errors))
    # The prediction neglects the degrees of freedom of the spline, about eight.
    assert found == pytest.approx(np.mean(errors), abs=4 * error + 8 / rows * saturated)
    assert found > best + 4 * error


def test_features_beyond_the_leading_ones_share_coefficients():
    weights = np.full(70, 70**-0.5)
    draws = gaussian_draws(weights, draws=20_000, key="many")
    overlap = np.linspace(0.9, 0.5, 70)
    fit = fit_last_layer(
        draws.learned(overlap), draws.labels, readout=False, rows=10**7, guess=weights * overlap
    )
    # sqrt(2 / 20,000) of the ratio of two variances of the same labels, at most.
    assert fit.normalised_mse == pytest.approx(1 - np.sum(weights**2 * overlap**2), abs=0.02)
    expected = weights * overlap / np.sqrt(2)
    # Coefficients of h², of variance 2, over 20,000 draws: 0.003 each.
    error = np.sqrt(fit.normalised_mse / 2 / 20_000)
    np.testing.assert_allclose(np.diag(fit.matrix), expected, atol=5 * error)


def test_an_index_that_is_not_fitted_has_its_own_error():
    draws = gaussian_draws([0.8, 0.6])
    own = plug_in_error(2 * draws.labels, draws.labels, readout=False)
    assert own == pytest.approx(1, abs=0.02)
    assert plug_in_error(2 * draws.labels, draws.labels, readout=True) < 1e-3
    assert plug_in_error(0 * draws.labels, draws.labels, readout=True) == pytest.approx(1)


@pytest.mark.parametrize("features", [5, 14])
def test_a_set_of_known_features_is_fitted_once(features):
    rng = np.random.default_rng(3)
    signal, noise = rng.standard_normal((2, 4_000, features))
    draws = LatentDraws(signal[:, 0] ** 2 + signal[:, 1] ** 2, signal, noise)
    guesses = np.ones(features), np.linspace(2, 1, features)
    found = np.arange(features) > 0
    errors = [draws.tail_error(found, guess, readout=False) for guess in guesses]
    # The guess matters only above PAIRS features.
    assert len(draws.tails) == (1 if features == 5 else 2)
    assert errors == pytest.approx([0.5, 0.5], abs=0.05)
    assert draws.tail_error(found[::-1], guesses[0], readout=False) == pytest.approx(0, abs=1e-9)
