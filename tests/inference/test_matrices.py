"""State evolution of matrices with any output: closed channels, message passing on data, refusals."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.inference import (
    Output,
    RectangularSignal,
    SymmetricSignal,
    state_evolution,
    thresholds,
)
from solvable.message_passing.attention_channels import SignOfIndex
from solvable.message_passing.loop import Start, settle
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import signal_denoiser
from solvable.operators.sensors import goe_sensors
from solvable.spectra import marchenko_pastur

HALF = SymmetricSignal(marchenko_pastur(0.5))
RATIOS = np.array([0.1896, 0.4411, 2.0])


def test_closed_channels_of_symmetric_matrices():
    law = state_evolution(HALF, Output("z", noise=0.25), [0.1895984, 0.441063])
    assert law.error == pytest.approx([0.541486, 0.196819], abs=5e-6)  # arXiv:2408.03733
    assert law.overlap == pytest.approx(1 - law.error / HALF.second_moment)
    noise = 0.2
    expected = signal_evolution(HALF, SignOfIndex(noise, HALF.second_moment), RATIOS)
    found = state_evolution(HALF, Output("probit", noise=noise), RATIOS)
    assert found.error == pytest.approx(expected.error, rel=2e-5)
    assert found.precision == pytest.approx(1 / expected.noise, rel=2e-5)


def test_linear_labels_of_rectangular_matrices():
    signal = RectangularSignal(2.0, 0.3)
    expected = signal_evolution(signal, GaussianIndices(np.ones(1), np.array([0.1])), RATIOS)
    found = state_evolution(signal, Output("z", noise=0.1), RATIOS)
    assert found.error == pytest.approx(expected.error, rel=2e-5)


def test_without_noise_the_matrix_is_recovered():
    threshold = 0.4 - 0.08
    signal = SymmetricSignal(marchenko_pastur(0.4))
    law = state_evolution(signal, Output("z"), [0.9 * threshold, 1.01 * threshold])
    assert law.error[0] > 0.01
    assert law.error[1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("output", [Output("relu", noise=0.1), Output("sign", flips=0.1)], ids=str)
def test_message_passing_has_the_error_of_state_evolution(output):
    d, ratio, errors = 60, 0.6, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, W = round(ratio * d * d), rng.standard_normal((d, d // 2))
        S = W @ W.T / np.sqrt(d * d / 2)
        sensors = goe_sensors(n, d, rng)
        y = output.draw(sensors.forward(S)[:, 0], rng)
        start = Start(HALF.prior_mean(d), np.array([[HALF.variance]]), np.zeros((n, 1)))
        found = settle(
            sensors, output.messages(y, 2 * HALF.second_moment), start,
            denoiser=signal_denoiser(HALF), tolerance=2.5e-3, least_variance=1e-6,
        )  # fmt: skip
        errors.append(float(np.sum((found.estimate - S) ** 2)) / d)
    scatter = np.std(errors, ddof=1) / np.sqrt(8)
    expected = float(state_evolution(HALF, output, ratio).error)
    assert np.mean(errors) == pytest.approx(expected, rel=0.03, abs=3 * scatter)


def test_what_is_not_covered_is_refused():
    with pytest.raises(InvalidParameter, match="start is 'truth' for a matrix; allowed: prior"):
        state_evolution(HALF, Output("sign"), 1.0, start="truth")
    with pytest.raises(InvalidParameter, match="SymmetricSignal; allowed: a Prior"):
        thresholds(HALF, Output("sign"))
