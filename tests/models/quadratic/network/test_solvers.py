"""Solvers of the convex problem against each other and against the optimality conditions."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.models.quadratic.network.amp import solve_amp
from solvable.models.quadratic.network.factorised import solve_factorised
from solvable.models.quadratic.network.sensing import SampleSensing
from solvable.models.quadratic.network.solvers import kkt_residual, solve_fista


def power_law(dimension, exponent=1.0):
    strengths = np.arange(1, dimension + 1) ** -exponent
    return strengths * np.sqrt(dimension / np.sum(strengths**2))


def problem(dimension, n_samples, seed, strengths=None, noise=0.5):
    rng = random_stream(seed, "problem")
    strengths = power_law(dimension) if strengths is None else strengths
    sensing = SampleSensing(ArraySource(rng.standard_normal((n_samples, dimension))))
    clean = sensing.forward(np.diag(np.sqrt(strengths)))
    return sensing, clean + np.sqrt(noise) * rng.standard_normal(n_samples), strengths


def distance(found, reference):
    return np.linalg.norm(found.matrix - reference.matrix) / np.linalg.norm(reference.matrix)


@pytest.mark.parametrize(("d", "n", "penalty"), [(20, 600, 1.0), (30, 900, 0.5)])
def test_three_solvers_agree(d, n, penalty):
    sensing, labels, _ = problem(d, n, seed=d)
    reference = solve_fista(sensing, labels, penalty, tolerance=1e-10)
    fast = solve_amp(sensing, labels, penalty, tolerance=1e-9)
    trained = solve_factorised(sensing, labels, penalty, tolerance=1e-7)
    assert reference.converged
    assert fast.converged
    assert distance(fast, reference) < 1e-6
    assert distance(trained, reference) < 1e-6
    assert trained.kkt_residual < 1e-6


def test_strong_penalty_leaves_nothing():
    sensing, labels, _ = problem(10, 200, seed=4)
    for solve in (solve_amp, solve_fista, solve_factorised):
        found = solve(sensing, labels, 1e3)
        assert found.converged
        assert np.sum(found.factor**2) < 1e-6


def test_kkt_residual_sees_both_conditions():
    factor = np.array([[1.0], [0.0]])
    assert kkt_residual(factor, np.diag([1.0, 1.5])) == pytest.approx(0.5)
    assert kkt_residual(factor, np.diag([0.8, 0.0])) == pytest.approx(0.2)
    assert kkt_residual(np.zeros((2, 0)), np.diag([0.8, 0.0])) == 0
