"""Gradient descent over the factor of the attention weights."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.attention.indexed import measure as measurement
from solvable.models.attention.indexed.measure import descended, draw_weights, measure
from solvable.models.attention.indexed.parameters import STARTS, IndexedParameters
from solvable.models.attention.indexed.predict import predict
from solvable.operators.sensors import TokenSensors


def test_gradient_descent_reproduces_the_labels():
    parameters = IndexedParameters(dimension=24, sample_ratio=0.1, tokens=3)
    rng = np.random.default_rng(1)
    S = draw_weights(parameters, rng)
    tokens = rng.standard_normal((parameters.samples, 3, 24))
    sensors = TokenSensors(tokens.reshape(-1, 24), 3)
    labels = parameters.channel.attention(sensors.forward(S))
    found = descended(tokens, labels, parameters.rank, 2, rng)
    for estimate in found:
        fitted = parameters.channel.attention(sensors.forward(estimate))
        assert np.mean(np.sum((fitted - labels) ** 2, axis=(1, 2))) < 0.01
    assert np.sum((found[0] - found[1]) ** 2) > 0.1


def test_posterior_draws_of_gradient_descent():
    setting = IndexedParameters(dimension=40, sample_ratio=0.07, estimator="gradient-descent")
    expected = predict(setting.model_copy(update={"dimension": 60}))
    average = np.mean(
        [measure(setting, np.random.default_rng(seed))["matrix_error"] for seed in range(2)]
    )
    assert average == pytest.approx(expected["finite_size_matrix_error"], rel=0.2)
    ratio = expected["start_error"] / expected["finite_size_matrix_error"]
    assert ratio == pytest.approx(2 / (1 + 1 / STARTS))


def test_labels_that_are_not_reproduced_give_no_errors(monkeypatch):
    setting = IndexedParameters(dimension=20, sample_ratio=0.1, estimator="gradient-descent")
    monkeypatch.setattr(measurement, "LEARNING_RATE", 100.0)
    row = measure(setting, np.random.default_rng(0))
    assert row["converged"] == 0
    assert row["matrix_error"] is None


@pytest.mark.parametrize("values", [{"noise": 0.1}, {"activation": "hardmax"}])
def test_gradient_descent_needs_noiseless_softmax(values):
    with pytest.raises(InvalidParameter, match="activation=softmax with noise=0"):
        IndexedParameters(estimator="gradient-descent", **values)
