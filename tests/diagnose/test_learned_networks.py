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
    error = float(np.linalg.norm(model.matrix_ - np.diag(strengths)))
    assert found.advice.matrix_error == pytest.approx(error, rel=0.15)


def test_advice_lowers_the_error_by_about_what_it_says():
    rng, d, samples = np.random.default_rng(1), 100, 4000
    strengths = np.r_[7.68, 5.12, 3.84, np.zeros(d - 3)]
    X = rng.standard_normal((samples, d))
    y = (X**2 - 1) @ strengths / np.sqrt(d) + np.sqrt(0.5) * rng.standard_normal(samples)
    learned = QuadraticNetRegressor(0.2).fit(X, y).matrix_
    found = diagnose_matrix(learned)
    x, V = np.linalg.eigh(learned)
    kept = np.where(x > found.advice.cut, x, 0.0)
    assert (kept > 0).sum() == found.advice.kept
    error = float(np.linalg.norm((V * kept) @ V.T - np.diag(strengths)))
    assert found.advice.matrix_error_cut == pytest.approx(error, rel=0.25)
    assert error < float(np.linalg.norm(learned - np.diag(strengths)))
