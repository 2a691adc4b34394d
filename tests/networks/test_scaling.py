"""Default choice of the columns that are standardised together, and its effect on the error."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
    make_classification,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from solvable.arrays import random_stream
from solvable.data import load
from solvable.learners import NeuralLoFiClassifier
from solvable.networks.base import share_bounds, standardise_columns

TABLES = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "diabetes unscaled": lambda return_X_y: load_diabetes(return_X_y=return_X_y, scaled=False),
    "linnerud": load_linnerud,
    "classification": lambda return_X_y: make_classification(300, random_state=1),
}


def rule(X):
    return share_bounds(X.min(axis=0), X.max(axis=0))


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_standardised_column_by_column(name):
    X = TABLES[name](return_X_y=True)[0]
    found, wanted = (standardise_columns(X, scaling) for scaling in ("auto", "columns"))
    np.testing.assert_array_equal(found.mean, wanted.mean)
    np.testing.assert_array_equal(found.scale, wanted.scale)


def pixels(n=300, seed=0):
    """Draw images of 7 x 7 pixels with a dark margin, in which few images have a speck."""
    rng = random_stream(seed, "pixels")
    X = np.zeros((n, 7, 7))
    X[:, 2:5, 1:6] = rng.integers(0, 256, (n, 3, 5))
    X[rng.random((n, 7, 7)) < 0.001] = 9
    return X.reshape(n, 49)


@pytest.mark.parametrize(
    ("X", "together"),
    [
        (pixels()[:, 14:35], True),
        (pixels() / 255 - 0.5, True),
        (np.hstack([pixels()[:, 14:35], np.full((300, 1), 1e6)]), True),  # one constant
        (pixels() * np.linspace(0.1, 1, 49) ** 4, False),  # of different units
        (pixels() + np.arange(49) * 20, False),  # of different origins
        (np.eye(3)[:, [0, 0, 1, 2]], True),  # indicators
        (np.arange(10.0)[:, None], False),  # a single column
        (np.ones((5, 4)), False),
        (random_stream(1).standard_normal((400, 6)), False),
    ],
)
def test_columns_that_share_their_bounds(X, together):
    assert rule(X) is together


def test_units_of_the_whole_do_not_matter():
    X = load_digits().data
    assert rule(X)
    assert rule(1e-9 * X)
    assert rule(X - 1e3)


@pytest.mark.slow
def test_default_on_images_is_as_good_as_the_best_kernel():
    # Other images than in the documentation, half as many for training. Each kernel has the parameters
    # that are best on its test images.
    data = load("mnist-5k")
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y).astype(int)
    order = random_stream(3, "default on images").permutation(len(X))
    train, test = order[:2000], order[2000:]
    wrong = [SVC(C=10, gamma=g).fit(X[train], y[train]).predict(X[test]) for g in (0.01, 0.02)]
    for width in (0.01, 0.02, 0.03):
        ridge = KernelRidge(kernel="rbf", gamma=width, alpha=0.1).fit(
            X[train], np.eye(10)[y[train]]
        )
        wrong.append(np.argmax(ridge.predict(X[test]), axis=1))
    kernels = min(np.mean(predicted != y[test]) for predicted in wrong)
    errors = {
        scaling: np.mean(
            NeuralLoFiClassifier(scaling=scaling, random_state=0)
            .fit(X[train], y[train])
            .predict(X[test])
            != y[test]
        )
        for scaling in ("auto", "columns")
    }
    assert errors["auto"] <= kernels + 0.005
    assert errors["auto"] <= 0.75 * errors["columns"]
