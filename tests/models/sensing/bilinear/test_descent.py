"""Gradient descent over both factors, and the average over random starts (sensing 27)."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.models.sensing.bilinear.measure import descended


def drawn(d, L, r, ratio, seed):
    rng = random_stream("descent", seed)
    S = rng.standard_normal((d, r)) @ rng.standard_normal((r, L)) / r**0.5 / (d * L) ** 0.25
    X = rng.standard_normal((round(ratio * d * L), d * L))
    return S, X, X @ S.reshape(-1, 1) / (d * L) ** 0.25, rng


def test_a_step_follows_the_gradient_of_the_loss():
    S, X, y, _ = drawn(4, 6, 2, 0.5, 0)

    def loss(matrix):
        return float(np.sum((X @ matrix.reshape(-1, 1) / 24**0.25 - y) ** 2)) / 4

    def after(steps, rate):
        return descended(
            X, S.shape, y, 2, starts=3, learning_rate=rate, rng=random_stream("s", 0), steps=steps
        )

    # dL = -rate |grad|², with the gradient by finite differences over the factors
    rng = random_stream("s", 0)
    U = rng.standard_normal((3, 4, 2), dtype=np.float32).astype(float)
    V = rng.standard_normal((3, 2, 6), dtype=np.float32).astype(float)
    square = np.zeros(3)
    for k in range(3):
        for matrix in (U[k], V[k]):
            for place in np.ndindex(matrix.shape):
                values = []
                for shift in (1e-4, -1e-4):
                    matrix[place] += shift
                    values.append(loss(U[k] @ V[k] / 2**0.5 / 24**0.25))
                    matrix[place] -= shift
                square[k] += ((values[0] - values[1]) / 2e-4) ** 2
    before, rate = after(0, 0.1), 1e-3
    fall = np.array([loss(a) - loss(b) for a, b in zip(before, after(1, rate), strict=True)])
    np.testing.assert_allclose(fall / rate, square, rtol=0.03)


def test_the_labels_are_fitted():
    S, X, y, rng = drawn(12, 12, 3, 0.2, 1)
    found = descended(X, S.shape, y, 3, starts=2, learning_rate=0.2, rng=rng)
    for matrix in found:
        fit = X @ matrix.reshape(-1, 1) / 12**0.5
        assert np.sqrt(np.mean((fit - y) ** 2)) < 0.01


def test_full_rank_starts_are_draws_of_the_posterior():
    """At large rank the factors hardly move, so the model is linear and E = 1 - alpha."""
    single, mean = [], []
    for seed in range(6):
        S, X, y, rng = drawn(10, 10, 200, 0.4, seed)
        found = descended(X, S.shape, y, 200, starts=8, learning_rate=0.25, rng=rng, steps=400)
        single.append(np.mean([np.sum((one - S) ** 2) for one in found]) / 10)
        mean.append(np.sum((found.mean(axis=0) - S) ** 2) / 10)
    assert np.mean(single) == pytest.approx(2 * 0.6, rel=0.1)
    assert np.mean(mean) == pytest.approx(0.6 * (1 + 1 / 8), rel=0.15)


def test_a_rate_that_is_too_large_is_reported():
    S, X, y, rng = drawn(10, 10, 2, 0.5, 2)
    with pytest.raises(NotConverged, match="lower learning_rate"):
        descended(X, S.shape, y, 2, starts=2, learning_rate=9.0, rng=rng, steps=50)
