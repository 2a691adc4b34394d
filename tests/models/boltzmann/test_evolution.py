"""State evolution, pairs of units, principal components, dynamics: simulations and limits."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.boltzmann.at_dimension import drawn_components
from solvable.models.boltzmann.evolution import (
    bayes_overlap,
    bulk_edge,
    component_overlap,
    outlier,
    unit_state,
)
from solvable.models.boltzmann.maximum import (
    ascend,
    message_passing,
    principal_directions,
    replicon_of,
)
from solvable.models.boltzmann.measure import draw_directions, draw_samples, span_overlap
from solvable.models.boltzmann.parameters import BoltzmannParameters
from solvable.models.boltzmann.shared_directions import apart_growth, shared_state


def drawn(dimension, spike, ratio, seed):
    parameters = BoltzmannParameters(dimension=dimension, spike=spike, sample_ratio=ratio)
    rng = random_stream("evolution", seed)
    directions = draw_directions(parameters, rng)
    return draw_samples(parameters, directions, rng), directions, rng


@pytest.mark.parametrize(
    ("spike", "ratio", "decay"), [(1.3, 4.0, 0.0), (3.0, 1.0, 1.2), (0.9, 6.0, 0.4)]
)
def test_a_unit_is_where_message_passing_ends(spike, ratio, decay):
    state, rows = unit_state(spike, ratio, decay), []
    for seed in range(6):
        X, directions, rng = drawn(500, spike, ratio, seed)
        start = principal_directions(X, 1, rng) * np.sqrt(500)
        found = message_passing(X, start, decay)
        rows.append([float(span_overlap(found.weights, directions)[0]), found.norm, found.replicon])
    error = 3 * np.std(rows, axis=0, ddof=1) / np.sqrt(6)
    expected = np.array([state.overlap, state.q, state.replicon])
    assert np.all(np.abs(np.mean(rows, axis=0) - expected) < error + np.array([0.005, 0.01, 0.02]))


def test_weight_decay_makes_a_machine_principal_components():
    # for 1 + l just below the outlier the norm is small and the problem is linear
    for spike, ratio in ((1.1, 2.0), (0.6, 8.0), (3.0, 0.5)):
        state = unit_state(spike, ratio, outlier(spike, ratio) - 1 - 1e-3)
        assert 0 < state.q < 0.01
        assert state.overlap == pytest.approx(component_overlap(spike, ratio), abs=2e-3)
        nothing = unit_state(spike, ratio, outlier(spike, ratio) - 1 + 1e-3)
        assert (nothing.q, nothing.overlap) == (0, 0)


def test_a_unit_without_weights_is_stable_beyond_the_edge_alone():
    for ratio in (0.5, 2.0, 10.0):
        edge = bulk_edge(ratio)
        just, far = (unit_state(0.0, ratio, factor * edge - 1) for factor in (1.0001, 3.0))
        # the replicon of noise is 1 at the edge of its covariance
        assert just.replicon == pytest.approx(1, abs=0.05)
        assert far.replicon < 0.2
        assert unit_state(0.0, ratio, 0.7 * edge - 1).replicon > 1


def test_a_large_spike_is_found_and_its_sign_known():
    state = unit_state(400.0, 3.0)
    # limit of a large spike: m = sqrt(lambda), q = m² + 1 / alpha
    assert state.m == pytest.approx(20.0, rel=1e-6)
    assert state.q == pytest.approx(400 + 1 / 3, rel=1e-6)


@pytest.mark.parametrize(("spikes", "far"), [((4.0, 2.0), 1.5), ((3.0, 1.0), 0.9)])
def test_units_part_where_theory_says_so(spikes, far):
    ratio = 6.0
    together = {}
    for decay in (0.1, far):
        one, two = (unit_state(spike, ratio, decay) for spike in spikes)
        shared = shared_state(spikes[0], ratio, decay, spikes[1])
        sharing = apart_growth(one, two, ratio)[0]
        X, _, rng = drawn(300, spikes, ratio, 0)
        for found in (
            message_passing(X, principal_directions(X, 2, rng) * np.sqrt(300), decay),
            ascend(X, 0.1 * rng.standard_normal((300, 2)), decay),
        ):
            W = found.weights
            cosine = abs(W[:, 0] @ W[:, 1]) / np.linalg.norm(W[:, 0]) / np.linalg.norm(W[:, 1])
            assert cosine > 0.999 if decay > 0.5 else cosine < 0.2
        together[decay] = (sharing > 1, shared.stable)
    assert together == {0.1: (False, False), far: (True, True)}


@pytest.mark.slow
def test_the_growth_of_two_units_is_that_of_the_algorithm():
    # an added mixture of both units changes by the predicted factor per step   (boltzmann 12)
    ratio, decay, spikes, d = 6.0, 0.25, (3.0, 1.0), 1_500
    one, two = (unit_state(spike, ratio, decay) for spike in spikes)
    growth = apart_growth(one, two, ratio)[0]
    assert 0.6 < growth < 1
    X, _, rng = drawn(d, spikes, ratio, 1)
    start = principal_directions(X, 2, rng) * np.sqrt(d)
    rest = message_passing(X, start, decay, max_steps=100, tolerance=1e-9).weights
    sizes = []
    for steps in (6, 8, 10):
        moved = rest + 0.03 * rest[:, ::-1]
        W = message_passing(X, moved, decay, max_steps=steps, tolerance=0.0).weights
        sizes.append(float(np.linalg.norm(W - rest)))
    measured = np.sqrt(sizes[2] / sizes[1])
    assert measured == pytest.approx(growth, abs=0.06)


def test_two_units_of_equal_weights():
    ratio, decay = 3.0, 1.0
    state, rows = shared_state(4.0, ratio, decay), []
    for seed in range(4):
        X, directions, rng = drawn(400, 4.0, ratio, seed)
        found = ascend(X, 0.1 * rng.standard_normal((400, 2)), decay)
        rows.append([found.norm, found.replicon, *span_overlap(found.weights, directions)])
    error = 3 * np.std(rows, axis=0, ddof=1) / 2
    expected = np.array([2 * state.unit.q, state.replicon, state.unit.overlap])
    assert state.stable
    assert np.all(np.abs(np.mean(rows, axis=0) - expected) < error + np.array([0.01, 0.005, 0.003]))


@pytest.mark.parametrize(
    ("spikes", "ratio", "count"),
    [((0.9,), 2.0, 1), ((3.0,), 0.3, 1), ((1.0, 1.0), 2.0, 2), ((1.5, 0.7, 0.5), 4.0, 2)],
)
def test_drawn_components_are_those_of_samples(spikes, ratio, count):
    d, rows = 100, []
    for seed in range(120):
        X, directions, rng = drawn(d, spikes, ratio, seed)
        rows.append(span_overlap(principal_directions(X, count, rng), directions))
    law = drawn_components(spikes, round(ratio * d), d, count, 400)
    error = np.sqrt(np.var(rows, axis=0) / 120 + np.var(law, axis=0) / 400)
    assert np.all(np.abs(np.mean(rows, axis=0) - law.mean(axis=0)) < 3.5 * error + 0.005)
    np.testing.assert_allclose(np.std(rows, axis=0), law.std(axis=0), rtol=0.3)


def test_drawn_components_reach_their_limit():
    for spike, ratio in ((2.0, 2.0), (0.8, 5.0)):
        law = drawn_components((spike,), round(ratio * 20_000), 20_000, 1)
        assert law.mean() == pytest.approx(component_overlap(spike, ratio), abs=3e-3)


def test_bayes_bounds_everything():
    for spike, ratio in ((0.8, 3.0), (1.5, 2.0), (5.0, 1.0)):
        best = bayes_overlap(spike, ratio)
        assert best > component_overlap(spike, ratio)
        assert best > unit_state(spike, ratio).overlap
    assert bayes_overlap(0.4, 2.0) == 0
    assert bayes_overlap(900.0, 50.0) == pytest.approx(1)


def test_the_replicon_is_the_rate_of_message_passing():
    # distances to the fixed point shrink by replicon^(1/2) per step   (boltzmann 7)
    X, _, rng = drawn(800, 1.6, 3.0, 5)
    start = principal_directions(X, 1, rng) * np.sqrt(800)
    rest = message_passing(X, start, 0.0, max_steps=120, tolerance=1e-15)
    sizes = []
    for steps in (10, 20):
        noise = 0.01 * rng.standard_normal((800, 1))
        W = message_passing(X, rest.weights + noise, 0.0, max_steps=steps, tolerance=0.0).weights
        sizes.append(float(np.linalg.norm(W - rest.weights)))
    rate = (sizes[1] / sizes[0]) ** (1 / 10)
    assert rate == pytest.approx(np.sqrt(rest.replicon), abs=0.08)
    assert replicon_of(X, rest.weights, "rademacher", 0.0) == pytest.approx(rest.replicon)
