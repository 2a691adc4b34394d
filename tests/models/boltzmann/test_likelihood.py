"""Likelihood of a machine with few hidden units: exact sums, derivatives, closed forms."""

from itertools import product

import numpy as np
import pytest

from solvable.models.boltzmann.evolution import UnitState
from solvable.models.boltzmann.likelihood import (
    UNITS,
    coupling_energy,
    coupling_moment,
    couplings_given,
    field_energy,
    field_mean,
    field_variance,
    gradient,
    sample_scores,
)
from solvable.models.boltzmann.partition import partition_gap, predicted_gap
from solvable.models.boltzmann.phase import Phase


@pytest.mark.parametrize("units", UNITS)
def test_fields_are_derivatives(units):
    z = np.array([[0.3, -1.2], [4.0, 0.0], [-0.7, 0.01]])
    step = 1e-5
    for unit in range(2):
        move = step * np.eye(2)[unit]
        slope = (field_energy(z + move, units) - field_energy(z - move, units)) / (2 * step)
        np.testing.assert_allclose(field_mean(z, units)[:, unit], slope, atol=1e-8)
        bend = (field_mean(z + move, units) - field_mean(z - move, units))[:, unit] / (2 * step)
        np.testing.assert_allclose(field_variance(z, units)[:, unit], bend, atol=1e-8)


def test_energies_do_not_overflow():
    assert field_energy(np.array([[800.0]]), "rademacher")[0] == pytest.approx(800 - np.log(2))
    big = 2_000.0 * np.array([[1.0, 0.5], [0.5, 1.0]])
    assert np.isfinite(coupling_energy(big, "rademacher"))
    assert coupling_moment(big, "rademacher")[0, 1] == pytest.approx(1.0)


def test_two_signs_have_a_closed_form():
    Q = np.array([[1.3, 0.4], [0.4, 0.7]])
    # eta_2 = tr Q / 2 + log cosh Q_12 and H_12 = tanh Q_12
    assert coupling_energy(Q, "rademacher") == pytest.approx(1.0 + np.log(np.cosh(0.4)))
    H = coupling_moment(Q, "rademacher")
    np.testing.assert_allclose(H, [[1, np.tanh(0.4)], [np.tanh(0.4), 1]], atol=1e-14)


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_the_moment_is_the_derivative_of_the_energy(units, hidden):
    rng = np.random.default_rng(hidden)
    A = rng.standard_normal((hidden, hidden))
    Q = A @ A.T
    Q *= 0.6 / np.linalg.eigvalsh(Q).max()
    step = 1e-6
    for a, b in product(range(hidden), repeat=2):
        move = np.zeros((hidden, hidden))
        move[a, b] += step / 2
        move[b, a] += step / 2
        slope = (coupling_energy(Q + move, units) - coupling_energy(Q - move, units)) / (2 * step)
        assert coupling_moment(Q, units)[a, b] / 2 == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("hidden", [1, 2])
def test_the_partition_function_of_binary_visible_units(hidden):
    # exact log partition function log E_h prod_i cosh((W h)_i / sqrt(d)) = eta_2 + O(1/d)   (boltzmann 1)
    gaps = []
    for d in (100, 1_000):
        W = np.random.default_rng(0).standard_normal((d, hidden))
        states = np.array(list(product((1, -1), repeat=hidden)))
        logs = np.log(np.cosh(W @ states.T / np.sqrt(d))).sum(axis=0)
        exact = np.log(np.mean(np.exp(logs)))
        gaps.append(abs(exact - coupling_energy(W.T @ W / d, "rademacher")))
    assert gaps[0] < 0.15
    assert 4 < gaps[0] / gaps[1] < 25


@pytest.mark.parametrize("phase", ["one", "apart", "shared"])
def test_the_first_order_of_the_partition_function(phase):
    # the gap of weights m w* + Gaussian noise, times d, extrapolated to an infinite dimension
    rng = np.random.default_rng(3)
    unit = UnitState(2.0, 0.9, 1.4, 0.1, 1.0, 1.0, 1.0, 0.1)
    other = UnitState(1.0, 0.5, 0.8, 0.1, 1.0, 1.0, 1.0, 0.1)
    units = (unit, other) if phase == "apart" else (unit,)
    expected = predicted_gap(Phase(units, (1, 0)[: len(units)], 1.0, shared=phase == "shared"), 1)
    gaps = []
    for d in (2_000, 4_000):
        rows = []
        for _ in range(20):
            signs = rng.choice([-1.0, 1.0], (d, len(units)))
            noise = rng.standard_normal((d, len(units)))
            noise -= signs @ (signs.T @ noise) / d
            noise /= np.sqrt(np.mean(noise**2, axis=0))
            W = np.column_stack([
                state.m * signs[:, k] + np.sqrt(state.q - state.m**2) * noise[:, k]
                for k, state in enumerate(units)
            ])  # fmt: skip
            rows.append(d * partition_gap(W[:, [0, 0]] if phase == "shared" else W))
        gaps.append(np.mean(rows))
    assert 2 * gaps[1] - gaps[0] == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("units", UNITS)
def test_the_gradient_is_that_of_the_scores(units):
    rng = np.random.default_rng(5)
    (n, d), decay = (40, 12), 0.3
    X, W = rng.standard_normal((n, d)), 0.4 * rng.standard_normal((d, 2))

    def objective(weights):
        return sample_scores(X, weights, units).sum() - n * decay * np.sum(weights**2) / (2 * d)

    slope = gradient(X, W, units, decay) * n / d
    for place in ((0, 0), (7, 1), (11, 0)):
        move = np.zeros_like(W)
        move[place] = 1e-6
        numeric = (objective(W + move) - objective(W - move)) / 2e-6
        assert slope[place] == pytest.approx(numeric, abs=1e-6)


def test_normal_units_of_a_norm_of_one_have_no_likelihood():
    assert coupling_energy(np.eye(2), "gaussian") == np.inf


@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_couplings_solve_their_equation(hidden):
    rng = np.random.default_rng(hidden)
    A = rng.standard_normal((hidden, hidden))
    G, b = 4 * (A @ A.T + np.eye(hidden)), 0.3 * np.eye(hidden)
    V = couplings_given(G, b, 3.0, 0.2, np.eye(hidden))
    H = coupling_moment(V @ G @ V, "rademacher")
    np.testing.assert_allclose(
        V @ (3.0 * (H + 0.2 * np.eye(hidden)) - b), np.eye(hidden), atol=1e-8
    )
