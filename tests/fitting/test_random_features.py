"""Ridge regression on random polynomial features, against scikit-learn's ridge on the same features."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from solvable.arrays import random_stream
from solvable.fitting.random_features import RIDGES, random_feature_error


def test_the_error_is_that_of_a_ridge_chosen_on_a_quarter_of_the_rows():
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((400, 6)), rng.standard_normal((300, 6))
    y, z = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(400), Z[:, 0] * Z[:, 1]
    W = random_stream(0, "random features").standard_normal((6, 50))
    W /= np.linalg.norm(W, axis=0)
    scaler = StandardScaler().fit(((1 + X @ W) ** 3)[:300])
    train, test = (scaler.transform((1 + rows @ W) ** 3) for rows in (X, Z))
    models = [
        Ridge(alpha=300 * ridge, fit_intercept=False, solver="cholesky").fit(
            train[:300], y[:300] - y[:300].mean()
        )
        for ridge in RIDGES
    ]
    held = [np.mean((m.predict(train[300:]) + y[:300].mean() - y[300:]) ** 2) for m in models]
    best = models[int(np.argmin(held))].predict(test) + y[:300].mean()
    expected = np.mean((best - z) ** 2) / z.var()
    assert expected < 0.5
    assert random_feature_error(X, y, (Z, z), degree=3, width=50) == pytest.approx(
        expected, rel=1e-8
    )
