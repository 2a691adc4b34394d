"""Python, the system and the command line give the same predictions."""

import json

import numpy as np
import pytest
from few_draws import few_draws

from solvable.cli import main
from solvable.models.sequential.system import system
from solvable.models.sequential.theory import predict_from
from solvable.moment_spectrum.moments import finite_size_moments
from solvable.targets import HierarchicalTarget
from solvable.theory import predict_sequential

N = 128 * 820
SETTING = {"dimension": 40, "features": 6, "decay": 0.4, "samples": N}
COMPARED = (
    "squared_overlap",
    "threshold_samples",
    "eigenvalues",
    "bulk_edges",
    "noise_scale",
    "normalised_mse",
    "normalised_mse_tail_only",
    "normalised_mse_in_sample",
    "normalised_mse_shrinkage",
    "population_floor",
)


def agrees(theory, metrics):
    for name in COMPARED:
        # Infinite thresholds are null in JSON.
        expected = np.nan_to_num(np.asarray(metrics[name], dtype=float), nan=np.inf)
        found = np.asarray(getattr(theory, name))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)


@few_draws()
@pytest.mark.parametrize("correction", [pytest.param("none", marks=pytest.mark.slow), "wick"])
def test_python_system_and_command_agree(correction, capsys):
    targets = [
        HierarchicalTarget(40, features=6, decay=0.4, signs="alternating", seed=seed)
        for seed in range(8)
    ]
    moments = finite_size_moments(targets, label_map="tanh", correction=correction)
    theory = predict_from(moments, N)
    agrees(theory, system.predict(system.parameters(**SETTING, correction=correction)))
    words = ["theory", "sequential-recovery", "--json", "--set"]
    words += [f"{name}={value}" for name, value in (SETTING | {"correction": correction}).items()]
    assert main(words) == 0
    agrees(theory, json.loads(capsys.readouterr().out)["prediction"])


@few_draws()
def test_where_errors_are_not_covered_none_is_given():
    settings = {"dimension": 12, "features": 4, "samples": 5_000, "label_map": "identity"}
    names = [
        "normalised_mse", "normalised_mse_least_squares", "normalised_mse_in_sample",
        "normalised_mse_shrinkage", "learned_energy",
    ]  # fmt: skip
    found = system.predict(system.parameters(**settings))
    assert [found[name] for name in names] == [None] * 5
    # all are given where they are covered
    found = system.predict(system.parameters(**settings | {"label_map": "tanh"}))
    assert all(np.isfinite(found[name]) for name in names)


@few_draws()
def test_the_public_function_is_the_system_with_gaussian_features():
    weights = np.arange(1, 17) ** -1.0
    ratios = np.array([32, 64, 256])
    theory = predict_sequential(weights=weights, n_features_total=465, samples=ratios * 465)
    setting = {"inputs": "gaussian", "dimension": 30, "features": 16, "decay": 1.0}
    for ratio, error in zip(ratios, theory.normalised_mse, strict=True):
        parameters = system.parameters(
            **setting, samples=ratio * 465, label_map="identity", signs="positive"
        )
        # Heavy-tailed labels: 1.2 % between seeds.
        assert error == pytest.approx(system.predict(parameters)["normalised_mse"], rel=0.05)
