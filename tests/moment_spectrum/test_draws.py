"""Draws over rotations of the first layer against samples of many first layers."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.sequential.measure import measure
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import predict
from solvable.moment_spectrum.draws import draw_sample, index_energies
from solvable.moment_spectrum.orthogonal_form import OrthogonalForm, orthonormal_directions
from solvable.moment_spectrum.quadratic_forms import mean_traces
from solvable.operators import MomentOperator
from solvable.targets import HierarchicalTarget

SETTINGS = [
    {"dimension": 5, "features": 3},
    {"dimension": 7, "features": 2, "first_layer": "random"},
    {"dimension": 9, "features": 4, "inputs": "gaussian", "first_layer": "random"},
]


def means(labels, latent, squared_norm):
    """Means used by the theory."""
    h2 = latent**2
    rows = [h2[:, 0], h2[:, 0] ** 2, h2[:, 0] * h2[:, 1], h2[:, 0] * squared_norm]
    rows += [labels**2, labels**3, labels * h2[:, 0], labels**2 * h2[:, 0]]
    return np.mean(rows, axis=1)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_means_are_those_over_many_first_layers(setting):
    drawn, sampled = [], []
    for seed in range(60):
        target = HierarchicalTarget(
            **setting, decay=0.7, readout="tanh", signs="positive", seed=seed
        )
        sample = draw_sample(target, 4_000, random_stream("rotated", seed))
        drawn.append(means(sample.labels, sample.latent, sample.squared_norm))
        X, y = target.sample(4_000, random_stream("exact", seed))
        latent = target.feature_map.project(X, orthonormal_directions(target)[1])
        sampled.append(means(y, latent, target.feature_map.squared_norm(X)))
    gap = np.mean(drawn, axis=0) - np.mean(sampled, axis=0)
    error = np.sqrt((np.var(drawn, axis=0) + np.var(sampled, axis=0)) / len(drawn))
    assert np.all(np.abs(gap) < 4 * error + 2e-3 * np.abs(np.mean(sampled, axis=0)))


def test_numbers_of_the_corrected_kernel_are_those_over_many_first_layers():
    d, n = 6, 40
    drawn, sampled = [], []
    for seed in range(150):
        target = HierarchicalTarget(d, features=2, seed=seed)
        kernel = draw_sample(target, n, random_stream("kernel", seed)).corrected
        drawn.append([np.mean(kernel.size**2), np.mean(kernel.diagonal[:, 0] ** 2)])
        X, _ = target.sample(n, random_stream("matrices", seed))
        K = [
            MomentOperator(x[None], np.ones(1), target.feature_map, correction="wick").dense()
            for x in X
        ]
        A = target.directions[:, 0]
        D = len(A)
        sampled.append([np.mean(np.sum(np.square(K), (1, 2))) / D**2, np.mean((A @ K @ A) ** 2)])
    gap = np.mean(drawn, axis=0) - np.mean(sampled, axis=0)
    error = np.sqrt((np.var(drawn, axis=0) + np.var(sampled, axis=0)) / len(drawn))
    assert np.all(np.abs(gap) < 4 * error)


@pytest.mark.parametrize("first_layer", ["orthonormal", "random"])
def test_energies_are_those_over_many_first_layers(first_layer):
    gaps = []
    for seed in range(60):
        target = HierarchicalTarget(
            6, features=3, first_layer=first_layer, signs="positive", seed=seed
        )
        exact = target.degree_two_energy, target.index_variance
        gaps.append(np.subtract(index_energies(target), exact))
    gaps = np.array(gaps)
    assert np.all(np.abs(gaps.mean(axis=0)) < 4 * gaps.std(axis=0) / np.sqrt(60) + 1e-9)


@pytest.mark.parametrize("inputs", ["gaussian", "hermite"])
def test_the_orthogonal_form_has_the_labels_of_its_target(inputs):
    target = HierarchicalTarget(
        7, features=4, first_layer="random", inputs=inputs, decay=0.6, signs="alternating", seed=3
    )
    form, directions = orthonormal_directions(target)
    X, y = target.sample(50, random_stream(5))
    features = target.feature_map.project(X, directions)
    np.testing.assert_allclose(target.label(form.index(features)), y, atol=1e-12)
    assert (np.sign(form.strengths) == np.sign(target.weights)).all()
    unit = target.directions / np.linalg.norm(target.directions, axis=0)
    np.testing.assert_allclose(directions @ form.mixing, unit, atol=1e-12)


def test_orthonormal_directions_are_their_own_form():
    target = HierarchicalTarget(7, features=4)
    form, directions = orthonormal_directions(target)
    assert form == OrthogonalForm.orthonormal(target.weights)
    np.testing.assert_array_equal(directions, target.directions)


def test_overlaps_of_directions_that_are_not_orthogonal():
    """Overlap theta_1/D of weak with strong directions counts as theirs (sequential 18)."""
    parameters = SequentialParameters(
        dimension=60,
        degree=1,
        features=6,
        decay=2.1,
        inputs="gaussian",
        correction="none",
        signs="positive",
        first_layer="random",
        samples=30_000,
        test_samples=100,
    )
    streams = [random_stream("not orthogonal", seed) for seed in range(24)]
    overlaps = np.array([measure(parameters, rng)["squared_overlap"] for rng in streams])
    error = overlaps.std(axis=0, ddof=1) / np.sqrt(len(overlaps))
    gap = overlaps.mean(axis=0) - predict(parameters)["squared_overlap"]
    assert np.all(np.abs(gap) < 3 * error + 0.05)


def test_traces_of_the_only_matrix_of_one_dimension():
    alternating, squares = mean_traces(1, 2)
    # At d = 2 a matrix of norm 1 has eigenvalues cos t, sin t with known fourth moments.
    rng = np.random.default_rng(0)
    flat = rng.standard_normal((200_000, 3))
    flat /= np.linalg.norm(flat, axis=1)[:, None]
    M = np.empty((len(flat), 2, 2))
    M[:, 0, 0], M[:, 1, 1] = flat[:, 0], flat[:, 1]
    M[:, 0, 1] = M[:, 1, 0] = flat[:, 2] / np.sqrt(2)
    fourth = np.trace(M @ M @ M @ M, axis1=1, axis2=2).mean()
    assert alternating[0, 0] == pytest.approx(fourth, rel=5e-3)
    assert squares[0, 0] == pytest.approx(fourth, rel=5e-3)


@pytest.mark.parametrize(
    "setting",
    [
        {"dimension": 150, "features": 700, "samples": 10**6},
        {"dimension": 9_000, "features": 11, "first_layer": "random", "samples": 10**8},
        {"dimension": 90, "features": 400, "correction": "none", "samples": 10**6},
    ],
    ids=str,
)
def test_many_features_and_large_dimensions_are_predicted(setting):
    prediction = predict(SequentialParameters(**setting))
    overlap = np.array(prediction["squared_overlap"])
    assert overlap.shape == (setting["features"],)
    assert np.all((overlap >= 0) & (overlap <= 1))
    assert np.isfinite(prediction["normalised_mse"])
