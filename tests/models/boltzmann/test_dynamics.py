"""Steps of gradient ascent and of message passing: mean-field theory, state evolution, simulations."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.boltzmann.dynamics import Moments, ascent_path, message_path, start_moments
from solvable.models.boltzmann.evolution import component_overlap, unit_state
from solvable.models.boltzmann.maximum import ascend, message_passing
from solvable.models.boltzmann.measure import draw_directions, draw_samples, start_weights
from solvable.models.boltzmann.parameters import BoltzmannParameters


def moments_of(W, directions):
    return np.concatenate([(W.T @ directions).ravel(), (W.T @ W).ravel()]) / len(W)


def one(m, q):
    return Moments(np.array([[m]]), np.array([[q]]))


@pytest.mark.parametrize(
    ("spikes", "ratio", "decay", "algorithm"),
    [
        ((2.5,), 3.0, 0.3, "gradient"),
        ((1.0,), 6.0, 0.0, "gradient"),
        ((3.0, 2.0), 3.0, 0.2, "gradient"),
        ((2.5,), 3.0, 0.3, "amp"),
        ((4.0, 2.0), 3.0, 0.2, "amp"),
    ],
)
def test_paths_are_those_of_the_algorithms(spikes, ratio, decay, algorithm):
    d, steps, rows = 600, 6, []
    start = start_moments(spikes, len(spikes))
    path = message_path if algorithm == "amp" else ascent_path
    end = path(spikes, ratio, steps, start, weight_decay=decay)[-1]
    parameters = BoltzmannParameters(dimension=d, spike=spikes, sample_ratio=ratio)
    for seed in range(8):
        rng = random_stream("dynamics", seed)
        directions = draw_directions(parameters, rng)
        X = draw_samples(parameters, directions, rng)
        W = start_weights(start, directions, rng)
        np.testing.assert_allclose(
            moments_of(W, directions),
            np.concatenate([start.M.ravel(), start.Q.ravel()]),
            atol=1e-12,
        )
        options = {"max_steps": steps, "tolerance": 0.0}
        if algorithm == "amp":
            W = message_passing(X, W, decay, **options).weights
        else:
            W = ascend(X, W, decay, rate=0.5, **options).weights
        rows.append(moments_of(W, directions))
    error = 3.5 * np.std(rows, axis=0, ddof=1) / np.sqrt(8)
    expected = np.concatenate([end.M.ravel(), end.Q.ravel()])
    assert np.all(np.abs(np.mean(rows, axis=0) - expected) < error + 0.015 * np.abs(end.Q).max())


@pytest.mark.parametrize("path", [ascent_path, message_path])
def test_dynamics_end_at_the_fixed_point(path):
    state = unit_state(3.0, 4.0)
    rate = {"rate": 1.0} if path is ascent_path else {}
    end = path((3.0,), 4.0, 30, one(0.5, 1.0), paths=8_000, **rate)[-1]
    assert end.cosines[0, 0] == pytest.approx(state.overlap, abs=0.003)
    assert end.span_cosines[0] == pytest.approx(state.overlap, abs=0.003)
    assert end.Q[0, 0] == pytest.approx(state.q, rel=0.01)


def test_two_units_on_a_spike_each_are_two_single_units():
    start = Moments(np.diag([0.3, 0.3]), np.eye(2))
    both = ascent_path((4.0, 2.5), 5.0, 12, start)[-1]
    for unit, spike in enumerate((4.0, 2.5)):
        alone = ascent_path((spike,), 5.0, 12, one(0.3, 1.0))[-1]
        assert both.Q[unit, unit] == pytest.approx(alone.Q[0, 0], rel=0.02)
        assert both.M[unit, unit] == pytest.approx(alone.M[0, 0], rel=0.02)
        assert abs(both.M[unit, 1 - unit]) < 0.02


@pytest.mark.parametrize("spike", [0.4, 0.69, 0.72, 1.5])
@pytest.mark.parametrize("decay", [2.0, 9.0])
def test_the_squared_overlap_of_small_weights(spike, decay):
    x, ratio = 0.01, 2.0
    path = message_path((spike,), ratio, 2, one(0.1 * 1e-4, 1e-8), weight_decay=decay)
    for step in path[1:]:
        x = spike**2 * ratio * x / (spike**2 * ratio * x + 1 + spike * x)
        assert step.cosines[0, 0] ** 2 == pytest.approx(x, rel=1e-3)
    # a small overlap grows above the threshold of principal components alone
    first, last = (
        step.cosines[0, 0]
        for step in message_path((spike,), ratio, 1, one(1e-7, 1e-8), weight_decay=decay)
    )
    assert (last > first) == (component_overlap(spike, ratio) > 0)
