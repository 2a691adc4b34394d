"""State evolution in two directions: independent directions, the scalar theory, message passing."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter, NotConverged
from solvable.links import make_link
from solvable.message_passing import AdditiveChannel, Start, message_passing
from solvable.message_passing.channels import additive_output
from solvable.message_passing.evolution import StateEvolution
from solvable.message_passing.loop import GaussianSensors
from solvable.message_passing.matrix_state import matrix_evolution
from solvable.message_passing.outputs import GaussianOutput
from solvable.message_passing.posterior import messages_of, posterior_given

PAIR = GaussianOutput(lambda z: np.sign(z[..., 0] * z[..., 1]), 0.0, 2, (0.0,))


def test_a_direction_that_labels_ignore_stays_unknown():
    noise, ratio = 0.5, 1.5
    link = make_link("abs")
    wide = GaussianOutput(lambda z: link(z[..., 0]), noise, 2, (0.0,))
    found = matrix_evolution(wide, ratio, np.diag([0.3, 0.1]), points=2**7, tolerance=1e-3)
    alone = additive_output(AdditiveChannel((link,), (1.0,), noise))
    exact = StateEvolution(alone).overlap(ratio)
    assert found.overlap[0, 0] == pytest.approx(exact, abs=0.04)
    assert abs(found.overlap[1, 1]) < 0.02
    assert abs(found.overlap[0, 1]) < 0.02


@pytest.mark.slow
def test_the_sign_of_a_product_appears_at_the_threshold():
    # pi^2 / 4 = 2.467: below, a small overlap shrinks, above it grows
    small = 0.05 * np.eye(2)
    below = matrix_evolution(PAIR, 2.2, small, points=2**8, tolerance=3e-3)
    above = matrix_evolution(PAIR, 3.2, small, points=2**8, tolerance=3e-3)
    # It ends where a step moves less than the tolerance, well on the way to 0.
    assert np.trace(below.overlap) < 0.75 * np.trace(small)
    assert np.trace(above.overlap) > 0.4


@pytest.mark.slow
def test_message_passing_in_two_directions_follows():
    d, ratio = 150, 8.0
    expected = matrix_evolution(PAIR, ratio, 0.3 * np.eye(2), points=2**9, tolerance=1e-3).overlap
    rng = np.random.default_rng(1)
    found = []
    for _ in range(3):
        X, w = rng.standard_normal((round(ratio * d), d)), rng.standard_normal((d, 2))
        sensors = GaussianSensors(X)
        y = np.sign(np.prod(sensors.forward(w), axis=1))
        q = 0.3
        h = q * w + np.sqrt(q * (1 - q)) * rng.standard_normal((d, 2))
        start = Start(h, (1 - q) * np.eye(2), np.zeros((len(y), 2)))
        result = message_passing(
            sensors, messages_of(posterior_given(PAIR, y)), start, tolerance=1e-3
        )
        found.append(np.trace(result.estimate.T @ w) / d / 2)
    assert np.mean(found) == pytest.approx(np.trace(expected) / 2, abs=0.06)


def test_three_directions_of_one_sum_are_found_together():
    linear = GaussianOutput(lambda z: z.sum(axis=-1), 3.0, 3)
    found = matrix_evolution(linear, 2.0, 0.05 * np.eye(3), points=64, tolerance=1e-3).overlap
    sums = found.sum() / 3
    # z_1 + z_2 + z_3 = 3^(1/2) u: one direction at noise 1
    exact = StateEvolution(GaussianOutput(lambda z: z[..., 0], 1.0)).overlap(2.0)
    assert sums == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize(
    "start", [np.eye(2), -0.1 * np.eye(2), np.eye(3) / 2, [[0.1, 0.2], [0, 0.1]]]
)
def test_starts_that_are_no_overlaps_are_refused(start):
    with pytest.raises(InvalidParameter, match="eigenvalues in"):
        matrix_evolution(PAIR, 1.0, start)


def test_an_iteration_cut_short_says_so():
    with pytest.raises(NotConverged, match="still changes"):
        matrix_evolution(PAIR, 6.0, 0.1 * np.eye(2), points=64, max_steps=2, tolerance=1e-9)
