"""The system `sequential-recovery`: parameters, one replicate, prediction, figures."""

import math
from dataclasses import replace

import numpy as np
import pytest
from few_draws import few_draws
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.sequential.measure import draw_target
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.system import system
from solvable.models.sequential.target import make_target
from solvable.systems.base import Point

SMALL = {"dimension": 12, "features": 2, "samples": 3000, "test_samples": 500}

MEASURED = {
    "squared_overlap",
    "mean_squared_overlap",
    "eigenvalues",
    "bulk_edges",
    "detected_features",
    "detection_edges",
    "neighbour_mixing",
    "loss_outside_span",
    "loss_inside_span",
    "normalised_mse",
    "label_variance",
    "spectrum",
    "polynomial_kernel_normalised_mse",
    "rbf_kernel_normalised_mse",
    "random_features_normalised_mse",
}


@pytest.fixture(scope="module")
def record():
    return system.measure(SequentialParameters(**SMALL), random_stream("one", 0))


@pytest.mark.parametrize(
    ("setting", "correction"),
    [
        ({}, "wick"),
        ({"degree": 3, "dimension": 10}, "wick"),
        ({"inputs": "gaussian"}, "none"),
        ({"degree": 1, "dimension": 500}, "none"),
        ({"inputs": "hermite", "correction": "none"}, "none"),
    ],
)
def test_the_correction_is_on_where_there_is_something_to_correct(setting, correction):
    assert SequentialParameters(**setting).correction == correction


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"features": 1000, "dimension": 5}, "allowed: 1 to 15"),
        ({"inputs": "gaussian", "correction": "wick"}, "no lower chaos"),
        ({"dimension": 1}, "from 2"),
        ({"decay": float("nan")}, "allowed: numbers"),
        ({"samples": 1}, "from 2"),
        ({"degree": 4}, "up to 3"),
        ({"readout": "even"}, "identity, tanh"),
        ({"dimensions": 5}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(setting, words):
    with pytest.raises(InvalidParameter, match=words):
        SequentialParameters(**setting)


def test_the_teacher_is_the_target_that_was_measured():
    parameters = SequentialParameters(**SMALL)
    teacher = system.teacher(parameters, random_stream("one", 0))
    target = draw_target(parameters, random_stream("one", 0))
    np.testing.assert_array_equal(teacher["directions"], target.directions)
    np.testing.assert_array_equal(teacher["weights"], target.weights)


@few_draws()
@pytest.mark.parametrize(
    "setting",
    [
        {"degree": 1, "dimension": 40},
        {"degree": 3},
        {"inputs": "gaussian", "dimension": 10},
        {"readout": "tanh"},
        {"first_layer": "random"},
        {"label_map": "clip"},
        {"label_map": "identity", "dimension": 14},
        {"signs": "random"},
        {"signs": "positive"},
        {"second_layer": "in-sample"},
        {"second_layer": "shrinkage"},
        {"kernel_samples": 6000},
        {"spectrum_samples": 3000},
        {"features": 1},
        {"label_noise": 1.0},
        {"second_layer": "kernel-ridge"},
        {"samples": 2},
        {"samples": 60},
    ],
    ids=str,
)
def test_every_variant_runs(check_recovery, setting):
    parameters = SequentialParameters(**(SMALL | setting))
    record, prediction = (
        system.measure(parameters, random_stream(5)),
        system.predict(parameters),
    )
    check_recovery(parameters, record, prediction, parameters.features)
    wanted = "spectrum_samples" in setting
    assert (record["spectrum"] is not None) == wanted
    if wanted:
        assert len(record["spectrum"]) == parameters.n_features_total


def test_the_number_of_features_follows_the_dimension():
    assert SequentialParameters(dimension=100, features=0).feature_count == 10
    assert SequentialParameters(dimension=100, features=0, epsilon=0.3).feature_count == 4
    assert make_target(SequentialParameters(dimension=30, features=0), 0).features == 5


def test_regenerated_samples_give_a_like_result(monkeypatch):
    from solvable.models.sequential import target as sequential_target

    parameters = SequentialParameters(**(SMALL | {"samples": 20_000}))
    stored = system.measure(parameters, random_stream(3))
    monkeypatch.setattr(sequential_target, "MEMORY_BYTES", 0)
    streamed = system.measure(parameters, random_stream(3))
    # Different samples of the same target: both fits recover it almost completely.
    np.testing.assert_allclose(streamed["squared_overlap"], stored["squared_overlap"], atol=0.1)


@given(
    st.sampled_from(["random", "alternating", "positive"]), st.integers(min_value=1, max_value=40)
)
@settings(max_examples=30, deadline=None)
def test_signs_are_fixed_by_the_parameters(signs, count):
    parameters = SequentialParameters(dimension=20, features=count, signs=signs)
    pattern = parameters.sign_pattern()
    assert pattern == parameters.sign_pattern()
    assert len(pattern) == count
    assert set(pattern) <= {-1, 1}


@pytest.mark.parametrize("samples", [300, 20_000])
def test_predictions_improve_with_samples(samples):
    less = system.predict(SequentialParameters(dimension=20, features=3, samples=samples))
    more = system.predict(SequentialParameters(dimension=20, features=3, samples=2 * samples))
    # Random spectra are shared between sizes, with fluctuations of 0.01 at the threshold. For few samples
    # about fifty matrices are drawn, in each of which an overlap of 0.05 scatters by 0.07.
    noise = 0.04 if samples < 2_000 else 0.01
    gain = np.asarray(more["squared_overlap"]) - np.asarray(less["squared_overlap"])
    assert np.all(gain >= -noise)
    # The error of 24,000 rows along directions of twelve matrices scatters by 0.004.
    assert more["normalised_mse"] <= less["normalised_mse"] + (0.01 if samples < 2_000 else 0.0)
    assert more["threshold_samples"] == less["threshold_samples"]


@few_draws()
def test_figures_draw_theory_and_measurement(record, monkeypatch):
    monkeypatch.setattr(system, "axis", replace(system.axis, resolution=20))
    parameters = SequentialParameters(**SMALL)
    points = [
        Point(
            {**parameters.model_dump(), "samples": n},
            [dict(record, spectrum=[0.0, 0.1, 0.3])] * 2,
            system.predict(SequentialParameters(**(SMALL | {"samples": n}))),
        )
        for n in (1500, 3000, 6000)
    ]
    drawn = {figure.name: figure for figure in system.figures(points)}
    assert set(drawn) == {
        "overlap",
        "error",
        "spectrum",
        "spectra",
        "eigenvalues",
        "loss",
        "expansion",
        "remainder",
    }
    overlap, error, spectrum = (drawn[name] for name in ("overlap", "error", "spectrum"))
    assert [one.kind for one in overlap.series] == ["line", "points"] * 2
    lines = [one for one in overlap.series if one.kind == "line"]
    for i, line in enumerate(lines):
        at = np.interp(math.log(3000), np.log(line.x), line.y)
        assert at == pytest.approx(points[1].prediction["squared_overlap"][i], abs=0.03)
    assert error.series[1].y == pytest.approx([record["normalised_mse"]] * 3)
    assert sum(spectrum.series[0].y) == pytest.approx(3)
    overlaid = drawn["spectra"]
    assert [one.label for one in overlaid.series if one.kind == "histogram"] == [
        f"n/D = {n / 78:.3g}" for n in (1500, 3000, 6000)
    ]
    assert system.figures([]) == []


def test_spectra_of_large_operators_are_those_of_small_ones(monkeypatch):
    from solvable.models.sequential import measure as sequential_experiment

    parameters = SequentialParameters(
        dimension=24, features=4, samples=9_600, spectrum_samples=9_600
    )
    exact = system.measure(parameters, random_stream(3))
    monkeypatch.setattr(sequential_experiment, "MOST_DENSE", 100)
    estimated = system.measure(parameters, random_stream(3))
    assert estimated["bulk_edges"] == pytest.approx(exact["bulk_edges"], abs=1e-4)
    values, others = np.array(exact["spectrum"]), np.array(estimated["spectrum"])
    assert others.size == values.size == 300
    # The largest eigenvalues are those of the features.
    assert others[-2:] == pytest.approx(values[-2:], rel=1e-3)
    below = np.searchsorted(values, others) / 300 - (np.arange(300) + 0.5) / 300
    # four standard deviations sqrt(2 F (1 - F) / (D k)) of two starts at the median
    assert np.abs(below).max() < 4 * np.sqrt(0.5 / (300 * 2))
