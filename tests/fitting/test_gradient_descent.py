"""Gradient descent against closed forms, gradient flow and the mean error of online descent."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.fitting.gradient_descent import (
    checked_steps,
    descend,
    fresh_batches,
    full_batch,
    minibatches,
)


def least_squares(weights, X, y):
    """Gradient of half the mean squared error of a linear model."""
    (w,) = weights
    return (X.T @ (X @ w - y) / len(X),)


def linear_sample(n=40, d=5):
    rng = random_stream(0, "linear regression")
    X = rng.standard_normal((n, d))
    return X, X @ np.arange(1.0, d + 1) + rng.standard_normal(n)


def test_linear_regression_equals_its_closed_form_at_each_step():
    X, y = linear_sample()
    H, best = X.T @ X / len(X), np.linalg.lstsq(X, y, rcond=None)[0]
    start = np.ones(5)
    states = descend(least_squares, (start,), full_batch(X, y), learning_rate=0.3, at=range(31))
    for state in states:
        # w_t - w* = (I - eta H)^t (w_0 - w*)
        decay = np.linalg.matrix_power(np.eye(5) - 0.3 * H, state.step)
        np.testing.assert_allclose(state.weights[0], best + decay @ (start - best), atol=1e-12)
        assert state.time == pytest.approx(0.3 * state.step)
    assert state.step == 30
    np.testing.assert_allclose(start, np.ones(5), rtol=0, atol=0)  # the start is not overwritten


def test_small_learning_rates_approach_gradient_flow_at_first_order():
    # Factorised matrix: L(U, V) = |U V - M|² / 2, two arrays of weights.
    rng = random_stream(1, "gradient flow")
    M, start = rng.standard_normal((3, 3)), [rng.standard_normal((3, 3)) / 2 for _ in range(2)]

    def gradient(weights, M):
        U, V = weights
        return (U @ V - M) @ V.T, U.T @ (U @ V - M)

    def slope(_, flat):
        return -np.concatenate([g.ravel() for g in gradient(flat.reshape(2, 3, 3), M)])

    flow = solve_ivp(slope, (0, 1), np.concatenate([w.ravel() for w in start]), rtol=1e-10).y[:, -1]
    errors = []
    for steps in (100, 200, 400):
        (state,) = descend(
            gradient, tuple(start), full_batch(M), learning_rate=1 / steps, at=[steps]
        )
        errors.append(np.linalg.norm(np.stack(state.weights).ravel() - flow))
    # Euler's method: the error is c eta + O(eta²), so that halving eta halves the error up to O(eta).
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, atol=0.1)


def test_minibatches_use_each_row_once_per_pass():
    rows = np.arange(12)
    batches = minibatches(rows, 2 * rows, rows=4, rng=random_stream(0, "batches"))
    for _ in range(2):
        first, second = zip(*(next(batches) for _ in range(3)), strict=True)
        assert sorted(np.concatenate(first)) == list(rows)
        assert all((b == 2 * a).all() for a, b in zip(first, second, strict=True))


def test_online_descent_has_the_mean_error_of_fresh_gaussian_samples():
    # E|e_{t+1}|² = ((1 - eta)² + eta² (d + 1) / B) E|e_t|² + eta² d Delta / B for x ~ N(0, I), noise
    # of variance Delta and B rows per step.
    d, B, eta, noise, T = 6, 3, 0.2, 0.5, 15

    def sample(rows, rng):
        X = rng.standard_normal((rows, d))
        return X, np.sqrt(noise) * rng.standard_normal(rows)  # the true weights are 0

    rng = random_stream(2, "online")
    finals = [
        sum(
            float(state.weights[0] @ state.weights[0])
            for state in descend(
                least_squares,
                (np.ones(d),),
                fresh_batches(sample, rows=B, rng=rng),
                learning_rate=eta,
                at=[T],
            )
        )
        for _ in range(400)
    ]
    expected = float(d)
    for _ in range(T):
        expected = ((1 - eta) ** 2 + eta**2 * (d + 1) / B) * expected + eta**2 * d * noise / B
    error = np.std(finals, ddof=1) / np.sqrt(len(finals))
    assert abs(np.mean(finals) - expected) < 4 * error
    assert error < 0.1 * expected


def test_tensors_give_the_same_weights():
    torch = pytest.importorskip("torch")
    X, y = linear_sample()
    results = []
    for convert in (np.asarray, torch.tensor):
        batches = minibatches(convert(X), convert(y), rows=8, rng=random_stream(3, "rows"))
        (state,) = descend(
            least_squares, (convert(np.ones(5)),), batches, learning_rate=0.1, at=[20]
        )
        results.append(np.asarray(state.weights[0]))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)


def test_divergence_names_the_step():
    X, y = linear_sample()
    states = descend(least_squares, (np.ones(5),), full_batch(X, y), learning_rate=1e9, at=[100])
    with pytest.raises(NotConverged, match="overflowed at step") as caught:
        list(states)
    assert caught.value.diagnostics["step"] > 1


@pytest.mark.parametrize("steps", [(), (2, 2), (-1, 3), (0.5,)])
def test_steps_must_increase(steps):
    with pytest.raises(InvalidParameter, match="increasing sequence of integers of at least 0"):
        checked_steps(steps, least=0)


def test_bad_settings():
    X, y = linear_sample()
    with pytest.raises(InvalidParameter, match="learning_rate is 0"):
        descend(least_squares, (np.ones(5),), full_batch(X, y), learning_rate=0, at=3)
    with pytest.raises(InvalidParameter, match="rows is 41"):
        next(minibatches(X, y, rows=41, rng=random_stream(0)))
    with pytest.raises(InvalidParameter, match="rows is 0"):
        fresh_batches(lambda rows, rng: (), rows=0, rng=random_stream(0))
