"""Solvers of the quadratic network against each other and against the optimality conditions."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.learners.quadratic_amp import solve_amp
from solvable.learners.quadratic_factor import solve_factorised
from solvable.learners.quadratic_sensing import GaussianSensing, SampleSensing
from solvable.learners.quadratic_solvers import (
    kkt_residual,
    objective,
    solve_fista,
)


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


def test_network_is_the_convex_problem_from_the_rank_on():
    # Acceptance check 17.
    sensing, labels, _ = problem(40, 800, seed=3)
    reference = solve_fista(sensing, labels, 0.5, tolerance=1e-8)
    rank = reference.factor.shape[1]
    least = objective(sensing, reference.factor, labels, 0.5)
    for width in (40, rank):
        found = solve_factorised(sensing, labels, 0.5, width=width, tolerance=1e-7)
        assert objective(sensing, found.factor, labels, 0.5) == pytest.approx(least, rel=1e-6)
    narrow = solve_factorised(sensing, labels, 0.5, width=rank // 2)
    assert objective(sensing, narrow.factor, labels, 0.5) > least * (1 + 1e-4)
    assert not narrow.converged


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


def test_power_law_against_theory():
    # Acceptance check 8; theory: R = .0948, rank 17.1, top three 5.55, 2.53, 1.53. Over 4 seeds the
    # standard error of the first is .035, more than half the tolerance; over 16 it is .018.
    errors, ranks, tops = [], [], []
    for seed in range(16):
        sensing, labels, strengths = problem(60, 7200, seed=seed)
        found = solve_amp(sensing, labels, 4.0)
        assert found.converged
        errors.append(np.sum((found.matrix - np.diag(strengths)) ** 2) / 60)
        ranks.append(found.factor.shape[1])
        tops.append(np.sum(found.factor**2, axis=0)[:3])
    assert abs(np.mean(errors) - 0.0948) < 0.004
    assert abs(np.mean(ranks) - 17) <= 2
    np.testing.assert_allclose(np.mean(tops, axis=0), [5.55, 2.53, 1.53], atol=0.06)


def marchenko_pastur(dimension, ratio, seed):
    W = random_stream(seed, "target").standard_normal((dimension, round(ratio * dimension)))
    return W / (W.shape[1] * dimension) ** 0.25


@pytest.mark.slow
def test_gaussian_control_against_theory():
    # Acceptance check 7: theory .685, without the bias of rank-one measurements.
    d, n, errors = 40, 320, []
    for seed in range(6):
        sensing = GaussianSensing(n, d, seed=seed)
        target = marchenko_pastur(d, 0.2, seed)
        noise = np.sqrt(0.5) * random_stream(seed, "noise").standard_normal(n)
        found = solve_fista(sensing, sensing.forward(target) + noise, 0.02, tolerance=1e-4)
        errors.append(np.sum((found.matrix - target @ target.T) ** 2) / d)
    assert abs(np.mean(errors) - 0.685) < 0.06


@pytest.mark.slow
def test_marchenko_pastur_against_theory():
    # Acceptance check 6.
    d, n, errors, trains, ranks = 100, 5000, [], [], []
    for seed in range(4):
        rng = random_stream(seed, "mp")
        sensing = SampleSensing(ArraySource(rng.standard_normal((n, d))))
        target = marchenko_pastur(d, 0.2, seed)
        labels = sensing.forward(target) + np.sqrt(0.5) * rng.standard_normal(n)
        found = solve_fista(sensing, labels, 0.02, tolerance=1e-6)
        assert found.kkt_residual < 1e-5
        errors.append(np.sum((found.matrix - target @ target.T) ** 2) / d)
        trains.append(np.sum(found.residual**2) / d**2)
        ranks.append(found.factor.shape[1] / d)
    assert 0.345 < np.mean(errors) < 0.395
    assert abs(np.mean(trains) - 0.0912) < 0.004
    assert abs(np.mean(ranks) - 0.567) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "recovered"), [(0.2, False), (0.28, True)])
def test_perfect_recovery(ratio, recovered):
    # Acceptance check 10: the threshold is at .2556.
    d = 60
    X = random_stream(0, "recovery").standard_normal((round(ratio * d**2), d))
    sensing, target = SampleSensing(ArraySource(X)), marchenko_pastur(d, 0.2, 0)
    found = solve_fista(sensing, sensing.forward(target), 1e-3, tolerance=1e-3)
    error = np.sum((found.matrix - target @ target.T) ** 2) / d
    assert error < 1e-3 if recovered else error > 0.04
