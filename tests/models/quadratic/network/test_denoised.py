"""Error of the denoiser at a finite dimension, with and without learned features."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.quadratic.network.denoised import _drawn, _integral, denoised_error
from solvable.models.quadratic.network.measure import measure
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.predict import predict
from solvable.models.quadratic.network.solutions import state_of


@pytest.mark.parametrize(
    "setting",
    [
        # Nothing is learned: samples are correlated with their residuals, which adds noise to M.
        {"dimension": 10, "width_ratio": 6.0, "sample_ratio": 20.0, "regularisation": 900.0},
        {"dimension": 25, "width_ratio": 0.5, "sample_ratio": 8.0, "regularisation": 200.0},
        {"target": "power-law", "dimension": 30, "sample_ratio": 5.0, "regularisation": 100.0},
        {"dimension": 24, "sample_ratio": 0.4, "regularisation": 60.0, "sensing": "goe"},
        # Features are learned.
        {"target": "power-law", "dimension": 40, "sample_ratio": 1.5, "regularisation": 0.5},
    ],
)
def test_what_is_measured(setting):
    parameters = QuadraticParameters(**setting)
    found = [measure(parameters, random_stream("d", r))["denoised_error"] for r in range(16)]
    error = np.std(found, ddof=1) / 4
    wanted = denoised_error(parameters, state_of(parameters))
    assert abs(np.mean(found) - wanted) < 3 * error + 0.1 * wanted


def test_variance_of_an_element_of_the_noise_by_sampling():
    """Var (r Z_ij) of samples with the residual r = Tr(Z E) + noise (quadratic 17)."""
    d, rows, repeats, noise = 6, 20_000, 20, 0.4
    E = np.linspace(-1.2, 1.5, d)
    rng = random_stream("elements of the noise")
    found = []
    for _ in range(repeats):
        x = rng.standard_normal((rows, d))
        residual = (x**2 - 1) @ E / np.sqrt(d) + np.sqrt(noise) * rng.standard_normal(rows)
        weighted = x**2 * residual[:, None] ** 2
        found.append(weighted.T @ x**2 / rows / d)
    # 2 R + Delta = 2 Tr E² / d + Delta; the mean of an element i != j vanishes.
    test_error = 2 * np.sum(E**2) / d + noise
    excess = 8 * (E[:, None] ** 2 + E**2 + np.outer(E, E)) / (d * test_error)
    expected = test_error / d * (1 + excess)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(repeats)
    apart = ~np.eye(d, dtype=bool)
    assert excess[apart].max() > 1
    assert np.all(np.abs(np.mean(found, axis=0) - expected)[apart] < 4.5 * error[apart])
    assert np.max(error[apart] / expected[apart]) < 0.03


def test_samples_make_more_noise_than_gaussian_matrices():
    """The variance rises by 14 / d for a target near a multiple of the identity (quadratic 17)."""
    setting = {"dimension": 10, "width_ratio": 50.0, "sample_ratio": 50.0, "regularisation": 1e4}
    samples, control = (
        denoised_error(parameters, state_of(parameters))
        for parameters in (
            QuadraticParameters(**setting),
            QuadraticParameters(**setting, sensing="goe"),
        )
    )
    assert samples > 2 * control


@pytest.mark.parametrize("penalty", [0.1, 30.0])
def test_large_dimensions_are_an_integral(penalty):
    """Drawn matrices and the integral agree, also if nothing is learned."""
    parameters = QuadraticParameters(
        target="power-law", dimension=250, sample_ratio=0.3, regularisation=penalty, sensing="goe"
    )
    state = state_of(parameters)
    assert _integral(state, 250) == pytest.approx(_drawn(parameters, state), rel=0.05)


def test_noise_far_above_the_target_leaves_what_smoothing_does():
    """The error is delta² / d for any nodes of the law, at noise a thousand times the target."""
    parameters = QuadraticParameters(
        target="power-law",
        dimension=1200,
        samples=40,
        noise=1e6,
        regularisation=10.0,
        sensing="goe",
    )
    state = state_of(parameters)
    assert denoised_error(parameters, state) == pytest.approx(state.law.variance / 1200, rel=0.2)


def test_few_samples_are_refused_with_the_reason():
    found = predict(
        QuadraticParameters(
            target="power-law", dimension=80, sample_ratio=0.12, regularisation=30.0
        )
    )
    assert found["denoised_error"] is None
    assert "denoised_error is missing" in found["no prediction"]
    assert found["matrix_error"] == pytest.approx(1)


@pytest.mark.parametrize("sensing", ["network", "goe"])
def test_training_that_leaves_hardly_any_freedom_estimates_no_noise(sensing):
    """The noise estimated from training data is wrong by 20 %, and with it the denoised error."""
    parameters = QuadraticParameters(
        dimension=36, width_ratio=0.4, sample_ratio=0.22, regularisation=0.06, sensing=sensing
    )
    found = predict(parameters)
    assert (found["denoised_error"], found["gcv_test_error"]) == (None, None)
    assert "degrees of freedom" in found["no prediction"]
    assert found["pruned_error"] > 0
    if sensing == "network":
        measured = [measure(parameters, random_stream("left", r)) for r in range(8)]
        told = np.array([metrics["gcv_test_error"] for metrics in measured])
        error = told.std(ddof=1) / np.sqrt(8)
        assert told.mean() > 1.1 * found["finite_size_test_error"] + 2 * error
