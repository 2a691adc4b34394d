"""Boltzmann machines against state evolution and mean-field dynamics (arXiv:2505.18046)."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.boltzmann.dynamics import Moments, ascent_path
from solvable.models.boltzmann.evolution import bayes_overlap, component_overlap, unit_state
from solvable.models.boltzmann.maximum import ascend, message_passing, principal_directions
from solvable.models.boltzmann.measure import draw_directions, draw_samples, span_overlap
from solvable.models.boltzmann.parameters import BoltzmannParameters


def drawn(dimension, spike, seed, ratio=2.0):
    parameters = BoltzmannParameters(dimension=dimension, spike=spike, sample_ratio=ratio)
    rng = random_stream("paper", dimension, seed)
    directions = draw_directions(parameters, rng)
    return draw_samples(parameters, directions, rng), directions, rng


def overlap(weights, directions):
    return float(span_overlap(weights, directions)[0])


@pytest.mark.parametrize(
    ("spike", "zeta", "q", "replicon", "components", "bayes"),
    [
        (0.9, None, None, None, 0.4960, 0.5273),
        (1.0, 0.4948, 2.048, 5.9, 0.5774, 0.6243),
        (1.2, 0.6556, 2.113, 1.69, 0.6788, 0.7487),
        (1.5, 0.7663, 2.290, 0.73, 0.7638, 0.8518),
        (2.0, 0.8488, 2.680, 0.31, 0.8367, 0.9318),
        (3.0, 0.9117, 3.582, 0.10, 0.8997, 0.9828),
    ],
)
def test_table(spike, zeta, q, replicon, components, bayes):
    """Reference values (boltzmann 6, boltzmann 7, boltzmann 8, boltzmann 11)."""
    # at spike 1, V is 0.96, and a quadrature with 121 nodes gives the wrong overlap 0.4785
    state = unit_state(spike, 2.0)
    assert component_overlap(spike, 2.0) == pytest.approx(components, abs=1e-4)
    assert bayes_overlap(spike, 2.0) == pytest.approx(bayes, abs=1e-4)
    assert state.stable == (spike >= 1.5)
    if zeta is not None:
        assert state.overlap == pytest.approx(zeta, abs=1e-4)
        assert state.q == pytest.approx(q, abs=1e-3)
        assert state.replicon == pytest.approx(replicon, rel=0.01, abs=0.006)


def test_the_replicon_line_and_the_crossover_with_principal_components():
    """Replicon 1 at spike 1.37; overlap above PCA from spike 1.45 on (boltzmann 7, boltzmann 8)."""
    assert unit_state(1.36, 2.0).replicon > 1 > unit_state(1.39, 2.0).replicon
    leads = [unit_state(s, 2.0).overlap - component_overlap(s, 2.0) for s in (1.43, 1.47)]
    assert leads[0] < 0 < leads[1]
    # the replica-symmetric threshold (0.3780 and 0.558) exceeds that of PCA (0.3536 and 0.5)
    for ratio, threshold in ((8.0, 0.3780), (4.0, 0.558)):
        assert unit_state(0.99 * threshold, ratio).overlap < 0.05
        assert unit_state(1.02 * threshold, ratio).overlap > 0.1
        assert not unit_state(1.02 * threshold, ratio).stable


@pytest.mark.slow
def test_overlap_and_norm_at_spike_two():
    """Overlap 0.849 within 0.02 and norm 2.68 within 0.08 (boltzmann 6)."""
    ascents, passings = [], []
    for seed in range(3):
        X, directions, rng = drawn(1_000, 2.0, seed)
        found = ascend(X, 0.1 * rng.standard_normal((1_000, 1)), 0.0)
        ascents.append((overlap(found.weights, directions), found.norm))
        X, directions, rng = drawn(2_000, 2.0, seed)
        found = message_passing(X, principal_directions(X, 1, rng) * np.sqrt(2_000), 0.0)
        passings.append((overlap(found.weights, directions), found.norm))
    for rows in (ascents, passings):
        mean = np.mean(rows, axis=0)
        assert mean[0] == pytest.approx(0.849, abs=0.02)
        assert mean[1] == pytest.approx(2.68, abs=0.08)


@pytest.mark.parametrize(("spike", "ratio"), [(2.0, 2.0), (1.1, 5.0)])
def test_message_passing_ends_where_the_gradient_vanishes(spike, ratio):
    """Fixed points are stationary points of the likelihood (boltzmann 2, boltzmann 4)."""
    X, _, rng = drawn(1_000, spike, 0, ratio)
    start = principal_directions(X, 1, rng) * np.sqrt(1_000)
    found = message_passing(X, start, 0.0, max_steps=60, tolerance=1e-16)
    assert found.residual < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("spike", "m", "q"), [(1.5, 0.2, 1.0), (0.9, 0.3, 0.5)])
def test_gradient_ascent_follows_dynamical_mean_field(spike, m, q):
    """Overlap and norm after 4 and 20 steps within 2.5 % (boltzmann 14, boltzmann 15)."""
    path = ascent_path((spike,), 2.0, 20, Moments(np.array([[m]]), np.array([[q]])))
    overlaps, norms = [step.M[0, 0] for step in path], [step.Q[0, 0] for step in path]
    rows = []
    for seed in range(6):
        X, directions, rng = drawn(2_000, spike, seed)
        w = directions[:, 0]
        # an exact start, because a random initial overlap scatters by d^(-1/2) and is amplified
        free = rng.standard_normal(2_000)
        free -= w * (w @ free) / 2_000
        free *= np.sqrt((q - m**2) * 2_000 / (free @ free))
        W, row = (m * w + free)[:, None], []
        for steps in (4, 16):
            W = ascend(X, W, 0.0, rate=0.5, max_steps=steps, tolerance=0.0).weights
            row += [float(W[:, 0] @ w) / 2_000, float(np.sum(W**2)) / 2_000]
        rows.append(row)
    expected = [overlaps[4], norms[4], overlaps[20], norms[20]]
    errors = np.std(rows, axis=0, ddof=1) / np.sqrt(6)
    # 2.5 %, in addition to two standard errors of six samples
    assert np.all(np.abs(np.mean(rows, axis=0) - expected) < 0.025 * np.abs(expected) + 2 * errors)


@pytest.mark.slow
def test_principal_components_and_weight_decay():
    """PCA overlaps, and weight decay restores them for the machine (boltzmann 8)."""
    found = {}
    for spike in (0.4, 1.2, 2.0):
        rows = []
        # below threshold an overlap of 0.06 scatters by 0.04, so 12 samples are used
        for seed in range(12 if spike < 1 else 3):
            X, directions, rng = drawn(1_000, spike, seed)
            rows.append(overlap(principal_directions(X, 1, rng), directions))
        found[spike] = np.mean(rows)
    assert found[0.4] < 0.1
    assert found[1.2] == pytest.approx(0.6788, abs=0.02)
    assert found[2.0] == pytest.approx(0.8367, abs=0.02)
    deficits = []
    for spike in (0.9, 1.1):
        rows = []
        for seed in range(12):
            X, directions, rng = drawn(800, spike, seed)
            start = 0.1 * rng.standard_normal((800, 1))
            rows.append(
                [
                    overlap(ascend(X, start, decay, max_steps=400).weights, directions)
                    for decay in (0.0, 1.5)
                ]
                + [overlap(principal_directions(X, 1, rng), directions)]
            )
        plain, decayed, components = np.transpose(rows)
        assert decayed.mean() == pytest.approx(components.mean(), abs=0.06)
        deficits += list(components - plain)
    # without decay the mean deficit is about 0.1; it is large in a third of the samples and small in
    # others
    error = np.std(deficits, ddof=1) / np.sqrt(24)
    assert np.mean(deficits) > max(0.1 - 2 * error, 2.5 * error)
    assert np.mean(np.array(deficits) > 0.1) > 0.2


def test_the_linear_phase_is_power_iteration():
    """First steps from small weights are power iteration and reach the PCA overlap."""
    X, directions, rng = drawn(600, 1.5, 1)
    start = 1e-40 * rng.standard_normal((600, 1))
    steps = ascend(X, start, 0.0, max_steps=70, tolerance=0.0)
    component = principal_directions(X, 1, rng)
    assert steps.norm < 1e-3
    assert overlap(steps.weights, directions) == pytest.approx(
        overlap(component, directions), abs=0.02
    )
