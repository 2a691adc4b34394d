"""Least squares with a penalty on the nuclear norm."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.models.sensing.matrix.measure import draw_labels, draw_sensors, draw_signal
from solvable.models.sensing.matrix.nuclear_norm import best_penalty, penalised
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters
from solvable.models.sensing.matrix.system import system

FEW = {
    "signal": "power-law", "exponent": 0.753, "noise": 0.121, "sample_ratio": 0.173, "dimension": 68,
    "estimator": "nuclear-norm",
}  # fmt: skip
"""Twelve measurements per coordinate."""


def drawn(setting, seed):
    """Signal, sensors and labels of one replicate."""
    rng = random_stream("penalised", seed)
    signal, sensors = draw_signal(setting, rng), draw_sensors(setting, rng)
    return signal, sensors, draw_labels(setting, signal, sensors.forward(signal), rng)


@pytest.mark.parametrize("kind", ["goe", "rank-one"])
def test_the_minimum_is_stationary(kind):
    setting = MatrixSensingParameters(dimension=30, sample_ratio=0.5, noise=0.3, sensors=kind)
    _, sensors, y = drawn(setting, 0)
    S = penalised(sensors, y, 0.4, tolerance=1e-5)
    slope = sensors.adjoint(y - sensors.forward(S))
    # the gradient is the penalty times sign(l) on eigenvectors of S, and at most the penalty elsewhere
    values, vectors = np.linalg.eigh(S)
    turned = vectors.T @ slope @ vectors
    kept = np.abs(values) > 1e-9
    np.testing.assert_allclose(
        turned[:, kept], 0.4 * np.diag(np.sign(values))[:, kept], atol=0.4 * 5e-3
    )
    assert 0 < kept.sum() < 30
    assert np.linalg.norm(turned, 2) < 0.4 * 1.005


def test_the_predicted_penalty_is_the_best_one():
    setting = MatrixSensingParameters(**FEW)
    penalty, exact = best_penalty(setting)
    assert not exact
    errors = np.array(
        [
            [
                np.sum((penalised(sensors, y, share * penalty) - signal) ** 2)
                for share in (0.4, 1.0, 2.5)
            ]
            for signal, sensors, y in (drawn(setting, seed) for seed in range(2))
        ]
    )
    low, here, high = errors.mean(axis=0)
    assert here < low
    assert here < high


def test_ranks_with_few_measurements_of_rank_one():
    """Message passing with its own estimate of the noise gives 0.31 for 0.375 (sensing 11, 29)."""
    setting = MatrixSensingParameters(**FEW)
    runs = [system.measure(setting, random_stream("few", seed)) for seed in range(4)]
    predicted = system.predict(setting)
    assert np.mean([run["rank_fraction"] for run in runs]) == pytest.approx(
        predicted["rank_fraction"], abs=0.04
    )


def test_too_few_steps_are_reported():
    setting = MatrixSensingParameters(dimension=20, sample_ratio=0.3)
    _, sensors, y = drawn(setting, 0)
    with pytest.raises(NotConverged, match="after 10 steps; allowed: 1e-09"):
        penalised(sensors, y, 0.1, tolerance=1e-9, max_steps=10)
