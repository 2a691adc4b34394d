"""Predictions for the published algorithm against measurements."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.system import system

SETTING = {"dimension": 24, "features": 4, "decay": 0.6, "samples": 64 * 300, "test_samples": 4_000}


@pytest.mark.parametrize(
    "solver", [pytest.param("lanczos", marks=pytest.mark.slow), "power-iteration"]
)
def test_overlaps_of_the_published_algorithm_are_predicted(solver):
    parameters = SequentialParameters(**SETTING, selection="modulus", solver=solver)
    rows = [
        system.measure(parameters, random_stream(7, seed))["squared_overlap"] for seed in range(4)
    ]
    prediction = system.predict(parameters)
    error = np.std(rows, axis=0, ddof=1) / 2
    # 0.05: the shape of the bulk is that of Gaussian noise
    deviation = np.abs(np.mean(rows, axis=0) - prediction["squared_overlap"])
    assert (deviation < 0.05 + 4 * error).all()
    plain = system.predict(SequentialParameters(**SETTING))
    assert prediction["mean_squared_overlap"] <= plain["mean_squared_overlap"] + 1e-9
    assert prediction["normalised_mse"] >= plain["normalised_mse"] - 0.02


def test_a_second_layer_of_eigenvalues_has_no_prediction_with_power_iteration():
    parameters = SequentialParameters(**SETTING, solver="power-iteration", second_layer="in-sample")
    with pytest.raises(InvalidParameter, match="second_layer=least-squares or kernel-ridge"):
        system.predict(parameters)
