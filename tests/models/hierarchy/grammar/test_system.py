"""The system `random-hierarchy`: parameters, statistics that it measures, claims that fail."""

import itertools

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.checks import check_system
from solvable.frame.points import Point
from solvable.frame.system import Preset
from solvable.models.hierarchy.grammar.claims import (
    crossing_ratio,
    lead_over_kernel,
    rise,
    scarce,
    threshold_law,
)
from solvable.models.hierarchy.grammar.measure import (
    context_losses,
    least_distance,
    make_learner,
    measure,
    squared_signal,
)
from solvable.models.hierarchy.grammar.parameters import LARGEST_FIT, RandomHierarchyParameters
from solvable.models.hierarchy.grammar.predict import curve, predict
from solvable.models.hierarchy.grammar.system import system
from solvable.models.hierarchy.target import RandomHierarchy

SMALL = {"vocabulary": 4, "rules": 2, "depth": 2}


def measured(seed=0, **setting):
    return measure(RandomHierarchyParameters(**setting), random_stream("test", seed))


@pytest.mark.parametrize(
    "setting",
    [
        {"estimator": "count-cluster"},
        {"task": "next-token", "estimator": "cnn", "sample_ratio": 8.0},
        {"task": "denoising", "noise_level": 0.3},
        {"estimator": "count-cluster", "zipf": 1.0},
        {"estimator": "kernel", "ensemble": "uniform"},
        {"task": "boolean", "depth": 3, "sample_ratio": 0.8},
    ],
)
def test_every_task_keeps_the_contract(setting, monkeypatch):
    # Claims and panels of the quick preset do not depend on the task of these replicates.
    one = Preset("One point.", {"sample_ratio": (1.0,)})
    monkeypatch.setattr(system, "presets", {**system.presets, "one": one})
    check_system(system, preset="one", setting={**SMALL, **setting})


def test_samples_and_their_ratio_are_the_same():
    by_samples = RandomHierarchyParameters(samples=256)
    assert by_samples.sample_ratio == pytest.approx(0.5)
    assert by_samples.n_samples == RandomHierarchyParameters(sample_ratio=0.5).n_samples == 256
    along = curve(by_samples, np.array([0.5, 1.0]))
    assert along[1]["noise"] == predict(RandomHierarchyParameters(sample_ratio=1.0))["noise"]


def test_parameters_that_a_task_ignores_do_not_repeat_its_points():
    one = RandomHierarchyParameters(noise_level=0.1)
    assert one == RandomHierarchyParameters(noise_level=0.9)
    boolean = {"task": "boolean", "depth": 4}
    assert RandomHierarchyParameters(**boolean) == RandomHierarchyParameters(
        vocabulary=9, **boolean
    )
    denoising = [
        RandomHierarchyParameters(task="denoising", estimator=name, sample_ratio=ratio)
        for name, ratio in itertools.product(("cnn", "kernel"), (1.0, 2.0))
    ]
    assert len({str(setting) for setting in denoising}) == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rules": 9}, "allowed: rules of at most 8"),
        ({"classes": 1}, "classes is 1"),
        ({"classes": 3, "rules": 3}, "divisible by vocabulary"),
        ({"samples": 7}, "one string per class"),
        ({"ensemble": "latin"}, "ensemble=latin"),
        ({"estimator": "cnn", "positions": "first"}, "positions is first"),
        ({"task": "next-token"}, "estimator is layerwise with task=next-token"),
        ({"task": "denoising", "zipf": 1.0}, "zipf"),
        ({"depth": 21}, "up to 20"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(setting, message):
    with pytest.raises(InvalidParameter, match=message):
        RandomHierarchyParameters(**setting)


def test_products_of_signs_are_found_above_their_threshold():
    by_samples = RandomHierarchyParameters(task="boolean", depth=4, samples=1_164)
    # n* = 8 * 15 * log(16² / 2)
    assert by_samples.threshold == pytest.approx(120 * np.log(128))
    assert by_samples.sample_ratio == pytest.approx(1_164 / by_samples.threshold)
    assert measured(task="boolean", depth=4, samples=1_164)["recovered"] >= 15 / 16
    assert measured(task="boolean", depth=4, samples=150)["recovered"] == pytest.approx(0)
    assert set(system.teacher(by_samples, random_stream("test", 0))) == {
        f"signs_{level}" for level in (1, 2, 3, 4)
    }


def test_theory_answers_where_a_measurement_is_too_large():
    large = RandomHierarchyParameters(vocabulary=10**6, rules=1000, depth=20, sample_ratio=3.0)
    prediction = predict(large)
    assert prediction["p_star"] == pytest.approx(1e66)
    # S = 1 / (1 + N / P*) for a large vocabulary.
    assert prediction["leaf_sensitivity"] == pytest.approx(1 / 4, abs=1e-3)
    with pytest.raises(ValueError, match="vocabulary is 1000000"):
        system.measure(large, random_stream("test", 0))


def test_signal_is_the_mean_over_pairs_of_laws():
    laws = np.random.default_rng(0).dirichlet(np.ones(5), 6)
    pairs = [np.sum((a - b) ** 2) for a, b in itertools.combinations(laws, 2)]
    assert squared_signal(laws) == pytest.approx(np.mean(pairs))
    missing = np.vstack([laws, np.full(5, np.nan)])
    assert squared_signal(missing) == pytest.approx(np.mean(pairs))


def test_least_distance_is_the_smallest_over_pairs_of_laws():
    laws = np.random.default_rng(1).dirichlet(np.ones(5), 7)
    pairs = [np.linalg.norm(a - b) for a, b in itertools.combinations(laws, 2)]
    assert least_distance(laws) == pytest.approx(min(pairs))
    assert least_distance(laws[[0, 1, 0]]) == pytest.approx(0, abs=1e-7)
    assert np.isnan(least_distance(np.ones((257, 2)) / 2))


def test_bounds_of_the_paper_enclose_the_measured_statistics():
    setting = {"estimator": "count-cluster", "sample_ratio": 4.0}
    found, bound = measured(**setting), predict(RandomHierarchyParameters(**setting))
    worst, printed = found["worst_error"][1:], bound["worst_error_printed"][1:]
    assert (np.array(worst) < bound["worst_error_bound"][1:]).all()
    assert (np.array(worst) > printed).all()  # Lemma 18 as printed lacks the number of patches
    assert (np.array(found["least_distance"]) >= bound["least_distance_bound"]).all()


def test_context_losses_are_entropies_of_exact_laws():
    """The loss given all other leaves, from a list of all strings."""
    target = RandomHierarchy(**SMALL, seed=3)
    strings, _ = target.unrank(np.arange(target.n_strings))
    _, groups = np.unique(strings[:, :-1], axis=0, return_inverse=True)
    fitting = np.bincount(groups)[groups]
    assert context_losses(target, strings)[0] == pytest.approx(np.mean(np.log(fitting)))


def test_levels_are_inferred_where_the_label_is_learned():
    found = measured(estimator="count-cluster", sample_ratio=8.0)
    assert found["test_accuracy"] > 0.95
    assert min(found["level_accuracy"]) > 0.95
    below = measured(estimator="layerwise", sample_ratio=0.25)
    assert below["level_accuracy"][0] == pytest.approx(below["test_accuracy"])
    assert below["level_accuracy"][1] < 0.6
    assert measured(estimator="kernel", sample_ratio=0.5)["level_accuracy"] is None


def test_rules_by_a_latin_square_are_not_learned():
    """Accuracy within five standard deviations of chance, at 8 P*."""
    found = measured(
        vocabulary=4,
        rules=4,
        depth=3,
        ensemble="latin",
        estimator="count-cluster",
        sample_ratio=8.0,
    )
    assert found["test_accuracy"] == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / 2000))


def point(accuracy, **setting):
    parameters = RandomHierarchyParameters(**setting)
    return Point(
        parameters.model_dump(), [{"test_accuracy": accuracy}], {"p_star": 1.0}, parameters
    )


def test_crossings_are_interpolated_in_the_logarithm():
    # V = 8: halfway between 1/8 and 1 is 9/16
    points = [point(a, sample_ratio=x) for x, a in ((0.5, 5 / 16), (2.0, 13 / 16), (8.0, 1.0))]
    assert crossing_ratio(points) == pytest.approx(1.0)
    assert crossing_ratio(points[1:]) is None
    assert crossing_ratio(points[:1]) is None
    assert rise(points) is None
    assert rise([point(1 / 8, sample_ratio=0.25), *points])[0] == pytest.approx(1.0)


def test_threshold_law_is_the_slope_between_grammars():
    points = []
    for rules, depth in ((2, 2), (4, 2), (2, 3), (4, 3)):
        power = (rules**depth / 4) ** 0.5  # the crossing moves as P*^(3/2)
        for factor, accuracy in ((0.5, 5 / 16), (2.0, 13 / 16)):
            points.append(
                point(accuracy, rules=rules, depth=depth, sample_ratio=2 * factor * power)
            )
    assert threshold_law(points)[0] == pytest.approx(1.5, abs=0.02)
    assert threshold_law(points[:4]) is None


def test_lead_over_kernels_needs_both():
    cnn, kernel = point(1.0, estimator="cnn"), point(0.5, estimator="kernel")
    assert lead_over_kernel([cnn, kernel])[0] == pytest.approx(0.5 / (7 / 8))
    assert lead_over_kernel([cnn]) is None
    assert scarce(cnn.setting)
    assert not scarce(RandomHierarchyParameters(depth=2, sample_ratio=3.0))


@pytest.mark.parametrize(
    ("estimator", "task"),
    [
        *((estimator, "classification") for estimator in LARGEST_FIT),
        *((network, "next-token") for network in ("cnn", "fully-connected", "transformer")),
    ],
)
def test_every_learner_of_a_task_is_built(estimator, task):
    setting = RandomHierarchyParameters(task=task, estimator=estimator)
    assert make_learner(setting, 0).branching == 2


def test_a_limit_names_the_largest_number_of_strings():
    large = RandomHierarchyParameters(estimator="kernel", samples=100_000)
    with pytest.raises(ValueError, match=r"100000 strings; allowed .* 12000"):
        system.measure(large, random_stream("test", 0))
