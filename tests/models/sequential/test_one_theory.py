"""One theory by every road: Python, the system, the command."""

import json

import numpy as np
import pytest

from solvable.cli import main
from solvable.models.sequential.system import system
from solvable.moment_spectrum.draws import gaussian_draw, quadratic_draw
from solvable.moment_spectrum.moments import finite_size_moments
from solvable.targets import HierarchicalTarget
from solvable.theory import predict_sequential

N = 128 * 820
SETTING = {"dimension": 40, "features": 6, "decay": 0.4, "samples": N}
COMPARED = {
    "squared_overlap": "squared_overlap",
    "threshold_samples": "threshold_samples",
    "eigenvalues": "eigenvalues",
    "bulk_edges": "bulk_edges",
    "noise_scale": "noise_scale",
    "normalised_mse": "normalised_mse",
    "normalised_mse_tail_only": "normalised_mse_tail_only",
    "normalised_mse_in_sample": "normalised_mse_in_sample",
    "normalised_mse_shrinkage": "normalised_mse_shrinkage",
    "population_floor": "population_floor",
}


def targets():
    return [
        HierarchicalTarget(40, features=6, decay=0.4, signs="alternating", seed=seed)
        for seed in range(8)
    ]


def as_array(value):
    """Infinite thresholds are null in JSON."""
    return np.nan_to_num(np.asarray(value, dtype=float), nan=np.inf)


def agrees(theory, metrics):
    for attribute, name in COMPARED.items():
        found, expected = np.asarray(getattr(theory, attribute)), as_array(metrics[name])
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("correction", [pytest.param("none", marks=pytest.mark.slow), "wick"])
def test_python_system_and_command_agree(correction, capsys):
    moments = finite_size_moments(
        targets(), n_features=820, label_map="tanh", correction=correction
    )
    theory = predict_sequential(
        weights=targets()[0].weights, n_features_total=820, samples=N, moments=moments
    )
    agrees(theory, system.predict(system.parameters(**SETTING, correction=correction)))
    words = ["theory", "sequential-recovery", "--json", "--set"]
    words += [f"{name}={value}" for name, value in (SETTING | {"correction": correction}).items()]
    assert main(words) == 0
    agrees(theory, json.loads(capsys.readouterr().out)["prediction"])


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_one_draw_of_matrices_is_near_the_mean_over_targets(correction):
    target = targets()[3]
    draw = quadratic_draw(matrices=target.symmetric_matrices(), weights=target.weights)
    moments = finite_size_moments(draw, n_features=820, label_map="tanh", correction=correction)
    theory = predict_sequential(
        weights=target.weights, n_features_total=820, samples=N, moments=moments
    )
    expected = system.predict(system.parameters(**SETTING, correction=correction))
    # Between targets: 2 % of the error; plain, a weak feature near the edge of the bulk moves more.
    rel = 0.03 if correction == "wick" else 0.15
    assert float(theory.normalised_mse) == pytest.approx(expected["normalised_mse"], rel=rel)


def test_without_moments_it_is_the_system_with_gaussian_features():
    weights = np.arange(1, 17) ** -1.0
    ratios = np.array([32, 64, 256])
    theory = predict_sequential(weights=weights, n_features_total=465, samples=ratios * 465)
    assert theory.method == "resolvent"
    setting = {"inputs": "gaussian", "dimension": 30, "features": 16, "decay": 1.0}
    for ratio, error in zip(ratios, theory.normalised_mse, strict=True):
        parameters = system.parameters(
            **setting, samples=ratio * 465, label_map="identity", signs="positive"
        )
        # Draws of heavy-tailed labels: 1.2 % from one seed to another.
        assert error == pytest.approx(system.predict(parameters)["normalised_mse"], rel=0.05)
    one = finite_size_moments(gaussian_draw(weights=weights, n_features=465), n_features=465)
    same = predict_sequential(weights=weights, n_features_total=465, samples=32 * 465, moments=one)
    assert float(same.normalised_mse) == pytest.approx(float(theory.normalised_mse[0]), rel=0.03)
