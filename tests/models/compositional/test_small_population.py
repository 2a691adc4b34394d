"""Few inputs: the mean operator of each first layer, and what is predicted with it."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.small_population import LAYERS, small_populations
from solvable.models.compositional.system import system
from solvable.models.compositional.upper_layers import (
    make_target,
    rotated_basis,
    rotated_directions,
)


def measured(parameters, name, seeds):
    records = [system.measure(parameters, random_stream("few", seed)) for seed in range(seeds)]
    values = np.array([record[name] for record in records])
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(seeds)


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_the_exact_mean_operator_is_that_of_samples(correction):
    """Of directions that are not orthogonal and a dense last layer, against pairs of samples."""
    parameters = CompositionalParameters(
        dimension=4, features=2, first_layer="random", label_map="identity",
        correction=correction, samples=100, teacher=3,
    )  # fmt: skip
    population = small_populations(parameters)[0]
    target, found = make_target(parameters, 0), []
    truth = rotated_directions(target, rotated_basis(parameters))
    features = target.feature_map
    for seed in range(16):
        X = random_stream("mean operator", seed).standard_normal((30_000, 4))
        index = target.index(X)
        T, F = (index - index.mean()) / index.std(), features.transform(X)
        C = (F * T[:, None]).T @ F / len(F)
        if correction == "wick":
            B = (X * T[:, None]).T @ X / len(X)
            M = features.to_symmetric(np.eye(10))
            C = C - features.from_symmetric(B @ M + M @ B)
        found.append(truth.T @ C @ truth)
    error = np.std(found, axis=0, ddof=1) / 4
    deviation = (np.mean(found, axis=0) - population.mean[:2, :2]) / error
    assert np.abs(deviation).max() < 4


@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 7, "features": 1, "readout": "tanh", "first_layer": "random",
         "correction": "none", "samples": 30_000},
        {"dimension": 5, "features": 2, "second_layer": "diagonal", "label_map": "identity",
         "correction": "none", "samples": 40_000},
        {"dimension": 8, "features": 3, "samples": 9_000},
        {"dimension": 6, "features": 2, "first_layer": "random-features", "width": 100,
         "samples": 7_000},
    ],
    ids=["one, plain", "unmapped", "three", "random features"],
)  # fmt: skip
def test_overlaps_of_few_inputs(setting):
    fixed = {"label_map": "clip", "decay": 0.4, "teacher": 2, "test_samples": 200}
    parameters = CompositionalParameters(**{**fixed, **setting})
    mean, error = measured(parameters, "squared_overlap", 16)
    gap = mean - system.predict(parameters)["squared_overlap"]
    # As many first layers stand for those of the replicates.
    assert np.all(np.abs(gap) < 3 * np.sqrt(1 + 16 / LAYERS) * error + 0.02)


def test_error_far_above_threshold_is_that_of_the_direction():
    """Directions of lengths of their own, each with a last layer of its own: 1 - c^4 is all."""
    parameters = CompositionalParameters(
        dimension=5, degree=1, features=1, first_layer="random", label_map="clip",
        correction="none", samples=150_000, test_samples=5_000,
    )  # fmt: skip
    prediction = system.predict(parameters)
    mean, error = measured(parameters, "normalised_mse", 16)
    # Two parts in a hundred thousand, an exponential law of four degrees of freedom
    assert prediction["normalised_mse"] == pytest.approx(mean, abs=3 * error)
    lost = 2 * (1 - prediction["squared_overlap"][0])
    assert prediction["normalised_mse"] == pytest.approx(lost, rel=0.1)


@pytest.mark.parametrize(
    "setting",
    [{"dimension": 13, "features": 1, "readout": "tanh", "beta": 4.0, "samples": 20_000},
     {"dimension": 15, "features": 2, "second_layer": "diagonal", "samples": 15_000}],
    ids=["one, tanh", "two"],
)  # fmt: skip
def test_the_plain_operator_is_that_of_sequential_recovery(setting):
    parameters = CompositionalParameters(
        **setting, label_map="clip", correction="none", teacher=3, test_samples=2_000
    )
    prediction = system.predict(parameters)
    mean, error = measured(parameters, "squared_overlap", 8)
    assert np.all(np.abs(mean - prediction["squared_overlap"]) < 3 * error + 0.03)


def test_most_directions_are_features():
    """What is none stands out where all features have one sign, and the learner returns it."""
    parameters = CompositionalParameters(
        dimension=34, degree=1, features=30, second_layer="diagonal", decay=0.03, teacher=0,
        label_map="clip", correction="none", samples=4_500, test_samples=4_000,
    )  # fmt: skip
    prediction = system.predict(parameters)
    mean, error = measured(parameters, "subspace_overlap", 6)
    assert prediction["subspace_overlap"] == pytest.approx(mean, abs=3 * error + 0.02)
    mean, error = measured(parameters, "normalised_mse", 6)
    assert prediction["normalised_mse"] == pytest.approx(mean, abs=3 * error + 0.05 * mean)
    more = system.predict(parameters.model_copy(update={"samples": 9_000}))
    assert more["normalised_mse"] is None
    assert "products of 30" in more["no prediction"]
    with pytest.raises(InvalidParameter, match="themselves the bulk"):
        system.predict(CompositionalParameters(dimension=60, features=1_000, samples=5_000))
