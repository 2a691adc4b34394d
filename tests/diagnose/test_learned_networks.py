"""Diagnosis of trained quadratic networks: estimates from the weights alone."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose import diagnose_matrix
from solvable.models.quadratic.network.learner import QuadraticNetRegressor


@pytest.mark.parametrize(
    ("samples", "regularisation"), [(4000, 0.5), pytest.param(3000, 0.3, marks=pytest.mark.slow)]
)
def test_weights_say_what_the_training_data_say(samples, regularisation):
    rng, d = np.random.default_rng(0), 100
    strengths = np.r_[7.68, 5.12, 3.84, np.zeros(d - 3)]
    X = rng.standard_normal((samples, d))
    y = (X**2 - 1) @ strengths / np.sqrt(d) + np.sqrt(0.5) * rng.standard_normal(samples)
    model = QuadraticNetRegressor(regularisation).fit(X, y)
    found = diagnose_matrix(model.matrix_)
    assert (found.symmetric, found.phase, len(found.features)) == (True, "bulk+spikes", 3)
    # The learner uses its residuals; the diagnosis uses the learned matrix only.
    assert found.noise.low < model.spectrum_.noise < found.noise.high
    assert found.shrinkage.low < model.spectrum_.shrinkage < found.shrinkage.high
    for feature, strength in zip(found.features, strengths, strict=False):
        reach = feature.strength.high - feature.strength.value
        # Rank-one sensing adds half as much again to the fluctuation of the theory.
        assert abs(feature.strength.value - strength) < 1.5 * reach
