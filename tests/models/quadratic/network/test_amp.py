"""Message passing against the reference minimiser, its degrees of freedom, and divergence."""

import numpy as np
import pytest

from solvable.arrays import ArraySource, random_stream
from solvable.models.quadratic.network.amp import degrees_of_freedom, solve_amp
from solvable.models.quadratic.network.sensing import GaussianSensing, SampleSensing
from solvable.models.quadratic.network.solvers import positive_part, solve_fista


def problem(dimension, n_samples, seed, scales=1.0):
    rng = random_stream(seed, "problem")
    strengths = 1 / np.arange(1, dimension + 1)
    strengths *= np.sqrt(dimension / np.sum(strengths**2))
    samples = rng.standard_normal((n_samples, dimension)) * scales
    sensing = SampleSensing(ArraySource(samples))
    clean = sensing.forward(np.diag(np.sqrt(strengths)))
    return sensing, clean + np.sqrt(0.5) * rng.standard_normal(n_samples)


def distance(found, reference):
    return np.linalg.norm(found.matrix - reference.matrix) / np.linalg.norm(reference.matrix)


@pytest.mark.parametrize("penalty", [0.05, 1.0])
def test_extrapolation_takes_fewer_iterations_to_the_same_minimiser(penalty):
    sensing, labels = problem(40, 800, seed=1)
    reference = solve_fista(sensing, labels, penalty, tolerance=1e-9)
    plain = solve_amp(sensing, labels, penalty, memory=0)
    fast = solve_amp(sensing, labels, penalty)
    assert plain.converged
    assert fast.converged
    assert fast.iterations < min(0.8 * plain.iterations, reference.iterations)
    assert distance(fast, reference) < 2e-6
    assert distance(plain, reference) < 2e-6


def test_extrapolation_converges_where_message_passing_alone_does_not():
    # Below about ten samples per coordinate plain message passing does not converge.
    sensing, labels = problem(40, 160, seed=5)
    assert not solve_amp(sensing, labels, 0.5, memory=0).converged
    found = solve_amp(sensing, labels, 0.5)
    assert found.converged
    assert distance(found, solve_fista(sensing, labels, 0.5, tolerance=1e-9)) < 1e-5


def test_gaussian_control_too():
    sensing = GaussianSensing(450, 15, seed=0)
    rng = random_stream(7)
    labels = sensing.forward(rng.standard_normal((15, 2))) + rng.standard_normal(450)
    found = solve_amp(sensing, labels, 0.5)
    assert found.converged
    assert distance(found, solve_fista(sensing, labels, 0.5, tolerance=1e-9)) < 1e-5


def test_reports_where_it_does_not_converge():
    sensing, labels = problem(12, 400, seed=2, scales=np.linspace(1, 6, 12))
    found = solve_amp(sensing, labels, 0.5)
    assert not found.converged
    assert found.iterations < 300
    # The reported residual belongs to the returned matrix.
    residual = labels - sensing.forward(found.factor)
    np.testing.assert_array_equal(found.residual, residual)
    assert found.kkt_residual > 1e-6


def test_degrees_of_freedom_are_a_divergence():
    rng = random_stream(6)
    draw = rng.standard_normal((6, 6))
    matrix, threshold, step = draw + draw.T, 0.7, 1e-6

    def shrunk(M):
        factor, _ = positive_part(M, threshold)
        return factor @ factor.T

    total = 0.0
    for i in range(6):
        for j in range(i, 6):
            E = np.zeros((6, 6))
            E[i, j] = E[j, i] = 1 if i == j else np.sqrt(0.5)
            total += np.sum(E * (shrunk(matrix + step * E) - shrunk(matrix - step * E))) / step / 2
    factor, values = positive_part(matrix, threshold)
    assert degrees_of_freedom(values, np.sum(factor**2, axis=0)) == pytest.approx(total, rel=1e-6)
