"""Convergence in width: predicted deviations against random features of many seeds.

Equation 28 of docs/derivations/lofi.md.
"""

import numpy as np
import pytest

from solvable.models.lofi.lift import fourth_moment_kernel, gram_deviation
from solvable.operators.activations import dual_kernel, evaluate
from solvable.operators.lift import RandomLift


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "erf", "step", "square"])
@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.6])
def test_fourth_moment_kernel_against_draws(activation, rho):
    rng = np.random.default_rng(3)
    u = rng.standard_normal(400_000)
    v = rho * u + np.sqrt(1 - rho**2) * rng.standard_normal(400_000)
    left, right = np.array([1.3]), np.array([0.8])
    inner = np.array([[rho * np.sqrt(1.3 * 0.8)]])
    draws = (
        evaluate(activation, np.sqrt(1.3) * u) ** 2 * evaluate(activation, np.sqrt(0.8) * v) ** 2
    )
    found = fourth_moment_kernel(activation, inner, left, right)[0, 0]
    # Five standard errors; 2e-3 for the jump of the step in a series of degree 48.
    error = 5 * draws.std() / np.sqrt(draws.size)
    assert found == pytest.approx(draws.mean(), abs=error + 2e-3)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_distance_of_random_features(activation):
    X = np.random.default_rng(0).standard_normal((30, 8))
    scale = float(np.sqrt(np.mean(np.sum(X**2, axis=1))))
    inner = X @ X.T / scale**2
    kernel = dual_kernel(activation, inner, np.diag(inner).copy(), np.diag(inner).copy())
    width, errors = 400, []
    for seed in range(300):
        Z = RandomLift(8, width, activation, scale, seed).transform(X)
        errors.append(np.sqrt(width) * (Z @ Z.T - kernel))
    total = np.sqrt(np.mean(np.sum(np.square(errors), axis=(1, 2))))
    assert gram_deviation(X, activation) == pytest.approx(total, rel=0.06)
