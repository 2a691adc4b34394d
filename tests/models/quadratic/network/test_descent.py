"""Plain gradient descent over the weights of a quadratic network reaches the convex minimum."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.quadratic.network.descent import solve_by_descent
from solvable.models.quadratic.network.factorised import weight_gradient
from solvable.models.quadratic.network.measure import draw_measurements, draw_target, minimise
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.solvers import objective

SETTING = QuadraticParameters(dimension=12, sample_ratio=0.8, regularisation=0.3)


def problem():
    rng = random_stream(0, "descent")
    sensing, labels = draw_measurements(SETTING, draw_target(SETTING, rng), rng)
    return sensing, labels, SETTING.regularisation


def test_the_gradient_of_the_weights_equals_finite_differences():
    sensing, labels, penalty = problem()
    B = random_stream(1, "weights").standard_normal((12, 3)) / 3
    slope = weight_gradient(sensing, penalty, B, labels - sensing.forward(B))
    for place in ((0, 0), (5, 1), (11, 2)):
        step = np.zeros_like(B)
        step[place] = 1e-5
        values = [objective(sensing, B + s, labels, penalty) for s in (step, -step)]
        assert slope[place] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-6)


def test_descent_of_a_wide_network_reaches_the_minimum_of_the_convex_problem():
    sensing, labels, penalty = problem()
    best = minimise(sensing, labels, penalty)
    found = solve_by_descent(sensing, labels, penalty, width=12)
    low, value = (objective(sensing, s.factor, labels, penalty) for s in (best, found))
    assert found.solver == "gradient-descent"
    assert value == pytest.approx(low, rel=1e-7)
    np.testing.assert_allclose(found.matrix, best.matrix, atol=1e-4)


def test_a_narrow_network_stays_above_the_minimum():
    sensing, labels, penalty = problem()
    best = minimise(sensing, labels, penalty)
    rank = best.factor.shape[1]
    assert rank > 1
    found = solve_by_descent(sensing, labels, penalty, width=rank - 1)
    low, value = (objective(sensing, s.factor, labels, penalty) for s in (best, found))
    assert value > low * (1 + 1e-6)
