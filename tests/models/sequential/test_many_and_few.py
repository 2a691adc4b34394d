"""Many features, few samples and few directions: predictions against measured replicates."""

import re
from dataclasses import replace

import numpy as np
import pytest

import solvable
from solvable.arrays import random_stream
from solvable.models.sequential.measure import measure
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import moments_of, predict
from solvable.models.sequential.system import system


def compare(setting, replicates):
    """Predicted metrics, and measured means and standard errors of overlaps and error."""
    parameters = system.parameters(**setting, test_samples=4_000)
    rows = [
        system.measure(parameters, random_stream("many and few", seed))
        for seed in range(replicates)
    ]
    overlap = np.array([row["squared_overlap"] for row in rows])
    error = np.array([row["normalised_mse"] for row in rows])
    root = np.sqrt(replicates)
    return (
        predict(parameters),
        (overlap.mean(axis=0), overlap.std(axis=0, ddof=1) / root),
        (error.mean(), error.std(ddof=1) / root),
    )


# Features that fill a tenth to a third of all directions; the last but one is too large to draw.
MANY = {
    "a tenth": {"dimension": 260, "features": 26, "samples": 5_000, "decay": 0.5},
    "a third": {"dimension": 150, "features": 50, "samples": 2_400, "decay": 0.2},
    "beyond drawing": {"dimension": 1_040, "features": 400, "samples": 6_000, "decay": 0.3},
    "all out": {"dimension": 1_010, "features": 20, "samples": 120_000, "decay": 0.5},
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow)
        if name in ("beyond drawing", "all out")
        else name
        for name in MANY
    ],
)
def test_many_features(name):
    setting = MANY[name]
    fixed = {"degree": 1, "label_map": "clip", "signs": "alternating"}
    predicted, (overlap, spread), (error, scatter) = compare({**fixed, **setting}, 3)
    found = np.array(predicted["squared_overlap"])
    # With three replicates the spread is averaged over groups of ten neighbours.
    groups = np.array_split(np.arange(found.size), max(found.size // 10, 2))
    for group in groups:
        allowed = 3.5 * np.sqrt(np.mean(spread[group] ** 2) / group.size) + 0.03
        assert abs(found[group].mean() - overlap[group].mean()) < allowed, group
    assert abs(found.mean() - overlap.mean()) < 0.015
    assert predicted["normalised_mse"] == pytest.approx(error, rel=0.06, abs=3 * scatter)


# Fewer samples than directions, or unmapped labels: single samples make outliers.
FEW = {
    "one in a hundred": {"dimension": 110, "features": 1, "samples": 18, "label_map": "tanh"},
    "two": {"dimension": 70, "features": 2, "samples": 45, "label_map": "clip"},
    "unbounded": {"dimension": 160, "features": 3, "samples": 1_500, "label_map": "identity"},
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "unbounded" else name for name in FEW],
)
def test_few_samples(name):
    fixed = {"degree": 1, "decay": 0.6, "signs": "positive"}
    predicted, (overlap, spread), _ = compare({**fixed, **FEW[name]}, 60)
    found = np.array(predicted["squared_overlap"])
    np.testing.assert_array_less(np.abs(found - overlap), 4 * spread + 0.15 * overlap)


@pytest.mark.parametrize("kind", [pytest.param("in-sample", marks=pytest.mark.slow), "shrinkage"])
def test_layers_of_eigenvalues_of_unbounded_labels(kind):
    setting = {
        "dimension": 180, "degree": 1, "features": 8, "samples": 4_300, "decay": 0.8,
        "label_map": "identity", "signs": "positive", "second_layer": kind,
    }  # fmt: skip
    predicted, _, (error, scatter) = compare(setting, 24)
    within = 0.1 if kind == "in-sample" else 0.2
    assert predicted["normalised_mse"] == pytest.approx(error, rel=within, abs=3 * scatter)


def test_predicted_overlaps_grow_smoothly_with_samples():
    # Regression test: with four drawn matrices per size the curve fluctuated by 0.1.
    sizes = np.geomspace(3_000, 16_000, 9).astype(int)
    curve = np.array(
        [predict(SequentialParameters(samples=int(n)))["squared_overlap"] for n in sizes]
    )
    assert np.diff(curve, axis=0).min() > -0.01


def test_more_first_layers_than_drawn_matrices():
    # 32 first layers that are not orthogonal, and fewer drawn matrices of 378 directions
    setting = {
        "dimension": 27, "features": 1, "inputs": "gaussian", "first_layer": "random",
        "label_map": "clip", "correction": "none", "samples": 310,
    }  # fmt: skip
    predicted, (overlap, spread), (error, scatter) = compare(setting, 24)
    assert abs(predicted["squared_overlap"][0] - overlap[0]) < 4 * spread[0]
    assert predicted["normalised_mse"] == pytest.approx(error, abs=4 * scatter)


def test_a_feature_at_the_shorter_end_of_the_bulk_is_lost_to_the_longer_one():
    """The eigenvalue is outside the bulk by less than the uncertainty of the edges."""
    parameters = SequentialParameters(
        dimension=24, features=5, decay=0.8, samples=36 * 300, test_samples=100
    )
    overlaps = [
        measure(parameters, random_stream("shorter end", k))["squared_overlap"] for k in range(8)
    ]
    law = moments_of(parameters).law
    bare = replace(law, room=0.0).spikes(parameters.samples).squared_overlap
    predicted = np.array(predict(parameters)["squared_overlap"])
    assert predicted[3] < bare[3] - 0.15
    error = np.std(overlaps, axis=0, ddof=1) / np.sqrt(8)
    assert np.all(np.abs(np.mean(overlaps, axis=0) - predicted) < 3 * error + 0.03)


@pytest.mark.parametrize("name", ["sequential-recovery", "compositional-target"])
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"dimension": 7, "features": 2}, "dimension is 7.*dimension of at least 10"),
        ({"dimension": 30, "degree": 1, "features": 16}, "16 among 30 directions.*up to half"),
    ],
)
def test_sizes_without_a_law_are_measured_and_not_predicted(name, setting, reason):
    known = {"samples": 4_000, "test_samples": 500, "kernel_samples": 0}
    study = solvable.run(name, preset=None, seeds=2, workers=1, **known, **setting)
    assert not study.failures
    (point,) = study.points
    assert point.mean("squared_overlap").shape == (setting["features"],)
    assert point.refused
    assert re.search(reason, point.refusal)
