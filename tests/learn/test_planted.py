"""Planted directions are found, and the form chosen for few rows is good on unseen rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from solvable.errors import NoFeatureFound
from solvable.learn import Request
from solvable.learn.competitors import methods
from solvable.learn.design import Design
from solvable.learners import Block, NeuralLoFiRegressor


def three(d, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(0, 1, d)) + rng.normal(0, 3, d)
    z = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :3]
    y = np.tanh(2 * z[:, 0]) * z[:, 1] + (z[:, 2] ** 2 - 1) / 2 + 0.1 * rng.standard_normal(n)
    return X, y, z


def network():
    return next(one for one in methods(Design(True, "columns")) if one.key == "learned-features")


@pytest.mark.parametrize(("d", "n"), [(40, 1200), pytest.param(80, 2400, marks=pytest.mark.slow)])
def test_three_directions_in_forty_and_eighty_columns_are_found(d, n):
    X, y, z = three(d, n + 1000, 0)
    model = network().fit(X[:n], y[:n])
    report = model.filters_[0]
    assert report.n_told == 3
    assert (report.null_ratios[0, :3] > 1.4).all()
    left = np.mean((model.predict(X[n:]) - y[n:]) ** 2) / np.var(y[n:])
    assert left < 0.12  # the best rival leaves 22 %
    # Without centred features, as published, the constant part hides the directions.
    published = NeuralLoFiRegressor([Block(None), Block(3, None)], random_state=0).fit(X[:n], y[:n])
    centred = NeuralLoFiRegressor(
        [Block(None), Block(3, None, centre_features=True)], random_state=0
    ).fit(X[:n], y[:n])
    seen = [explained(z[n:], one.transform(X[n:])) for one in (published, centred)]
    assert min(seen[1]) > 0.7
    assert min(seen[0]) < 0.5


def explained(coordinates, features):
    """Share of the variance of each coordinate that a linear function of the features explains."""
    A = np.column_stack([np.ones(len(features)), features])
    left = coordinates - A @ np.linalg.lstsq(A, coordinates, rcond=None)[0]
    return 1 - left.var(axis=0) / coordinates.var(axis=0)


def test_directions_that_mislead_are_left_out_of_few_rows():
    # The target is linear; with 90 columns and 133 rows the directions overfit.
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1133, 90))
    y = np.tanh(X @ np.ones(90) / 90**0.5) + 0.1 * rng.standard_normal(1133)
    chosen = network().fit(X[:133], y[:133])
    assert "without directions" in chosen.remark_
    plain = Design(True, "columns", request=Request())
    always = plain.network(plain.blocks).fit(X[:133], y[:133])
    errors = [np.mean((model.predict(X[133:]) - y[133:]) ** 2) for model in (chosen, always)]
    assert errors[0] < 0.9 * errors[1]


def test_labels_of_noise_leave_the_constant():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((300, 20)), rng.standard_normal(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoFeatureFound)
        model = network().fit(X[:200], y[:200])
    assert np.std(model.predict(X[200:])) < 1e-3 * y.std()
    assert "constant" in model.remark_


def test_correlations_of_columns_are_taken_away_where_they_hide_directions():
    rng = np.random.default_rng(0)
    d, n = 24, 500
    root = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    X = rng.standard_normal((n + 1000, d)) @ root.T
    W = np.linalg.qr(rng.standard_normal((d, 2)))[0]
    z = X @ W / np.sqrt(np.einsum("ij,ij->j", root.T @ W, root.T @ W))
    y = np.tanh(2 * z[:, 0]) * z[:, 1] + 0.1 * rng.standard_normal(len(z))
    chosen = network().fit(X[:n], y[:n])
    assert "columns whitened first" in chosen.remark_
    kept = network().make().fit(X[:n], y[:n])
    left = [np.mean((one.predict(X[n:]) - y[n:]) ** 2) / np.var(y) for one in (chosen, kept)]
    assert left[0] < 0.7 * left[1]
    assert min(explained(z[n:], chosen.transform(X[n:]))) > 0.8
