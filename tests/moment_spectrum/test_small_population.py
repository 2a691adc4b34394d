"""Few directions of degree 2: the mean operator of each target, and what is predicted with it."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.sequential.measure import measure
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import predict
from solvable.models.sequential.target import make_target
from solvable.moment_spectrum.small_population import index_population, small_populations
from solvable.operators import MomentOperator


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_mean_operator_of_the_index(correction):
    """Exact for T = y (note 3.6), against samples."""
    parameters = SequentialParameters(
        dimension=5, features=2, decay=0.4, signs="alternating", samples=100
    )
    target = make_target(parameters, 3)
    found = []
    for seed in range(12):
        X, y = target.sample(40_000, random_stream("mean operator", seed))
        T = (y - y.mean()) / np.sqrt(target.index_variance)
        found.append(MomentOperator(X, T, target.feature_map, correction=correction).dense())
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    deviation = (
        np.mean(found, axis=0)
        - index_population(target.feature_map, target.directions, target.weights, correction)
    ) / error
    # Student's law of twelve, tails of eighth powers of x
    assert np.sqrt(np.mean(deviation**2)) < 1.5


def test_noise_of_the_contraction():
    """Entries of B_1 U + U B_1 over samples, against operators of their rows."""
    parameters = SequentialParameters(
        dimension=4, features=1, label_map="clip", correction="none", samples=100
    )
    target = make_target(parameters, 5)
    (population,) = small_populations([target], "clip", "none")
    rng, n = random_stream("contraction"), 400
    drawn = np.array([population.drawn(n, rng) for _ in range(400)]) - population.mean
    basis = np.linalg.qr(target.directions, mode="complete")[0]
    U = target.feature_map.to_symmetric(basis)
    found = []
    for _ in range(400):
        X, y = target.sample(n, rng)
        T = np.clip((y - y.mean()) / y.std(), -2, 2)
        T -= T.mean()
        B = (X.T * T) @ X / n
        found.append(basis.T @ target.feature_map.from_symmetric(B @ U + U @ B))
    # Power of both: entries of T follow a feature, which the law of normal coefficients does not.
    measured = np.var(found, axis=0).sum()
    assert np.mean(np.sum(drawn**2, axis=(1, 2))) == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 7, "features": 2, "decay": 0.3, "readout": "tanh", "samples": 9_000},
        {"dimension": 6, "features": 1, "first_layer": "random", "readout": "tanh",
         "label_map": "tanh", "samples": 40_000},
        {"dimension": 9, "features": 3, "decay": 0.2, "signs": "positive", "correction": "none",
         "samples": 9_000},
        {"dimension": 5, "features": 3, "decay": 0.5, "correction": "none", "samples": 3_000},
    ],
    ids=["Wick", "not orthonormal", "one sign, plain", "five inputs"],
)  # fmt: skip
def test_overlaps_in_few_dimensions(setting):
    fixed = {"label_map": "clip", "signs": "alternating", "test_samples": 500}
    parameters = SequentialParameters(**{**fixed, **setting})
    overlap = np.array(
        [
            measure(parameters, random_stream("few dimensions", seed))["squared_overlap"]
            for seed in range(24)
        ]
    )
    gap = overlap.mean(axis=0) - predict(parameters)["squared_overlap"]
    error = overlap.std(axis=0, ddof=1) / np.sqrt(len(overlap))
    # Eight targets stand for those of the replicates.
    assert np.all(np.abs(gap) < 3 * np.sqrt(1 + 24 / 8) * error + 0.02)
