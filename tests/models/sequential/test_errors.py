"""Predicted errors against simulation, at measured and at predicted overlaps."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.sequential.errors import Spectrum, layer_errors
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import moments_of
from solvable.models.sequential.system import system
from solvable.models.sequential.target import make_target
from solvable.operators import apply_label_map


def measured(parameters, seeds):
    return [system.measure(parameters, random_stream("errors", seed)) for seed in range(seeds)]


def error_at(parameters, overlap):
    """Predicted error of least squares at given overlaps, which include chance."""
    moments = replace(moments_of(parameters), label_second_moment=1.0)
    nothing = np.zeros((1, parameters.features))
    spectrum = Spectrum(
        overlap=np.array([overlap]),
        recovered=nothing > 0,
        thresholds=nothing[0],
        places=nothing + 1,
        edges=np.ones((1, 2)),
        noise_scale=np.ones(1),
        floor=nothing[0],
    )
    errors = layer_errors(moments, spectrum, np.array([parameters.samples]))
    return float(errors["least-squares"][0])


# Cases: squares of features that share the norm of x, readouts of an index that is not Gaussian, and
# many features in few dimensions, which overlap with learned directions by chance.
SETTINGS = {
    "positive": {
        "dimension": 21,
        "features": 4,
        "decay": 0.6,
        "signs": "positive",
        "samples": 9_240,
    },
    "tanh": {"dimension": 24, "features": 5, "decay": 0.2, "readout": "tanh", "samples": 24_000},
    "positive tanh, plain": {
        "dimension": 18,
        "features": 2,
        "signs": "positive",
        "readout": "tanh",
        "correction": "none",
        "samples": 17_100,
    },
    "Gaussian": {
        "dimension": 90,
        "degree": 1,
        "features": 14,
        "decay": 0.3,
        "signs": "positive",
        "inputs": "gaussian",
        "label_map": "clip",
        "samples": 9_000,
    },
    "not orthogonal": {
        "dimension": 70,
        "degree": 1,
        "features": 5,
        "decay": 0.7,
        "first_layer": "random",
        "readout": "tanh",
        "samples": 4_000,
    },
}


@pytest.mark.parametrize("name", SETTINGS)
def test_errors_of_measured_overlaps_are_measured(name):
    parameters = system.parameters(**SETTINGS[name], test_samples=10_000)
    runs = measured(parameters, 6)
    errors = np.array([run["normalised_mse"] for run in runs])
    differences = errors - [error_at(parameters, run["squared_overlap"]) for run in runs]
    error = np.std(differences, ddof=1) / np.sqrt(len(runs))
    # 3 %: learned differ from random directions by O(1/d), and draws fluctuate.
    assert abs(differences.mean()) < 3 * error + 0.03 * errors.mean()


# Settings without drawn operators, which are tested in test_operator_draws.
@pytest.mark.parametrize("name", [name for name in SETTINGS if "plain" not in name])
def test_the_prediction_is_that_of_its_own_overlaps(name):
    # For directions that are not orthogonal the error is that of an orthonormal basis.
    parameters = system.parameters(**{**SETTINGS[name], "first_layer": "orthonormal"})
    predicted = system.predict(parameters)
    assert predicted["normalised_mse"] == pytest.approx(
        error_at(parameters, predicted["squared_overlap"]), rel=1e-6
    )


# Second layers made of eigenvalues: for unmapped labels, for mapped labels, with a readout.
PLUG_INS = {
    "in sample": {"second_layer": "in-sample", "label_map": "identity", "samples": 13_000},
    "in sample, mapped": {"second_layer": "in-sample", "label_map": "clip", "samples": 8_000},
    "shrunk": {"second_layer": "shrinkage", "label_map": "identity", "samples": 13_000},
    "shrunk, mapped": {"second_layer": "shrinkage", "label_map": "clip", "samples": 8_000},
    "shrunk, saturated": {"second_layer": "shrinkage", "readout": "tanh", "samples": 8_000},
}


@pytest.mark.parametrize("name", PLUG_INS)
def test_errors_of_second_layers_off_the_spectrum(name):
    setting = {"dimension": 100, "degree": 1, "features": 4, "decay": 0.8, "signs": "positive"}
    parameters = system.parameters(**setting | PLUG_INS[name], test_samples=10_000)
    errors = np.array([run["normalised_mse"] for run in measured(parameters, 8)])
    error = errors.std(ddof=1) / np.sqrt(errors.size)
    # 5 %: overlaps of 0.9 are predicted to 0.01.
    expected = system.predict(parameters)["normalised_mse"]
    assert abs(errors.mean() - expected) < 3 * error + 0.05 * expected


def test_noise_of_a_direction_leans_to_where_its_feature_is_large():
    """E[u² zeta²] equals its mean along explicit sums of samples, sum_mu T_mu h_mu F_mu, corrected."""
    parameters = SequentialParameters(
        dimension=24, features=2, decay=0.5, signs="alternating", samples=1_000
    )
    found, random = [], []
    for seed in range(4):
        target = make_target(parameters, seed)
        features, A = target.feature_map, target.directions
        X, y = target.sample(8_000, random_stream("lean", seed))
        T = apply_label_map((y - y.mean()) / y.std(), "tanh")
        F = features.transform(X)
        M = features.to_symmetric(A)[0]
        B = (X * T[:, None]).T @ X
        Z = F.T @ (T * (F @ A[:, 0])) - features.from_symmetric((B @ M + M @ B)[None])[:, 0]
        R = random_stream("lean", "random", seed).standard_normal(Z.size)
        for direction, values in ((Z, found), (R, random)):
            rest = direction - A @ (A.T @ direction)
            N = features.to_symmetric(rest[:, None] / np.linalg.norm(rest))[0]
            # Joint cumulant of the squares of two quadratic forms
            values.append(1 + 8 * np.sum((M @ N) ** 2) + 4 * np.trace(M @ N @ M @ N))
    draws = moments_of(parameters).latent[0]
    u2, zeta2 = draws.signal[:, 0] ** 2, draws.noise[:, 0] ** 2
    # Standard error 0.02: eighth powers over 80,000 rows, and four first layers.
    assert np.mean(u2 * zeta2) == pytest.approx(np.mean(random), abs=0.04)
    assert np.mean(u2 * zeta2 * draws.lean[:, 0]) == pytest.approx(np.mean(found), abs=0.04)
    assert np.mean(found) > np.mean(random) + 0.04


@pytest.mark.parametrize(
    "setting",
    [{"dimension": 14}, {"dimension": 14, "correction": "none"}, {"dimension": 60, "degree": 1}],
    ids=str,
)
def test_noise_that_a_learner_subtracts(setting):
    """At degree 2 the learner subtracts the noise of the corrected operator in all cases."""
    fixed = {"features": 3, "label_map": "tanh", "samples": 4_000}
    if setting.get("degree") == 1:
        fixed["correction"] = "none"
    parameters = SequentialParameters(**fixed, **setting)
    scales = []
    for seed in range(4):
        X, y = make_target(parameters, seed).sample(4_000, random_stream("scale", seed))
        learner = LayerwiseSpectralRegressor(
            parameters.degree, n_directions=3, selection="forced", label_map="tanh",
            correction=parameters.correction, held_back=0, readout="none",
            second_layer="shrinkage",
        )  # fmt: skip
        scales.append(learner.fit(X, y).noise_scale_)
    expected = np.sqrt(moments_of(parameters).learner_noise * parameters.n_features_total / 4_000)
    # |F|⁴ has heavy tails for 14 inputs.
    assert np.mean(scales) == pytest.approx(expected, rel=0.03)


def test_eigenvalues_in_the_place_of_lost_features_lie_inside_the_edge():
    parameters = SequentialParameters(
        dimension=240, degree=1, features=8, decay=0.8, label_map="tanh", correction="none",
        second_layer="shrinkage", samples=2_000,
    )  # fmt: skip
    errors = [record["normalised_mse"] for record in measured(parameters, 10)]
    scatter = np.std(errors, ddof=1) / np.sqrt(10)
    predicted = system.predict(parameters)["normalised_mse"]
    assert predicted == pytest.approx(np.mean(errors), abs=3 * scatter, rel=0.03)
