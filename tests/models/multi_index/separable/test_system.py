"""The system `separable-multi-index`: parameters, one replicate, prediction, claims, figures."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
import studies

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Point, predicted_or_refused
from solvable.models.multi_index.separable.claims import CLAIMS
from solvable.models.multi_index.separable.parameters import SeparableParameters
from solvable.models.multi_index.separable.system import system
from solvable.models.multi_index.target import draw_target

SETTINGS = {
    "even": {"dimension": 60, "directions": 3, "sample_ratio": 8.0},
    "sensitive": {"dimension": 60, "directions": 2, "link": "cosmix", "sample_ratio": 24.0},
    "odd": {"dimension": 60, "directions": 3, "link": "tanh", "sample_ratio": 150.0},
    "mapped": {"dimension": 60, "link": "abs", "label_map": "tanh", "sample_ratio": 30.0},
    "unbounded": {"dimension": 60, "directions": 3, "label_map": "identity", "sample_ratio": 40.0},
    "raw": {"dimension": 60, "link": "abs", "standardised": False, "sample_ratio": 20.0},
}  # fmt: skip


record_of = partial(studies.record_of, system)
point_of = partial(studies.point_of, system)


@pytest.fixture(scope="module")
def points():
    ladder = [
        {"dimension": 60, "directions": p, "sample_ratio": ratio}
        for p, ratio in product((2, 8), (6.0, 12.0, 24.0, 48.0))
    ]
    return [
        *(point_of(setting, 10) for setting in SETTINGS.values()),
        *(point_of(setting, 30) for setting in ladder),
        *(in_the_gap(p, ratio) for p, ratio in ((4, 9.0), (8, 18.0))),
    ]


def in_the_gap(directions, ratio):
    """Return a point between both thresholds, with the predicted overlap and a small scatter."""
    setting = {"dimension": 60, "directions": directions, "link": "cosmix", "sample_ratio": ratio}
    parameters = SeparableParameters(**setting)
    found = system.predict(parameters)
    records = [
        found | {"informed_overlap": found["informed_overlap"] + off}
        for off in (-2e-4, -1e-4, 1e-4, 2e-4)
    ]
    return Point(parameters.model_dump(), records, found)


def test_message_passing_keeps_a_good_start_between_the_thresholds():
    setting = {"dimension": 60, "directions": 4, "link": "cosmix", "sample_ratio": 9.0}
    point = point_of(setting, 4)
    expected, error = (
        point.predicted("informed_overlap"),
        point.standard_error("informed_overlap"),
    )
    assert float(point.mean("informed_overlap")) == pytest.approx(
        float(expected), abs=0.02 + 3 * error
    )
    assert float(point.mean("single_overlap")) < 0.3 < 0.9 < float(expected)
    assert record_of(setting | {"sample_ratio": 4.0})["informed_overlap"] is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"directions": 1}, "from 2"),
        ({"directions": 30}, "quarter"),
        ({"directions": 60, "dimension": 400, "link": "relu"}, "up to 40"),
        ({"sample_ratio": 0.01}, "at least 4 samples"),
        ({"link": "rleu"}, "'rleu' is unknown"),
        ({"link": "1"}, "constant"),
        ({"label_map": "cube"}, "allowed: "),
        ({"noise": -1}, "from 0"),
        ({"samples": 10}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        SeparableParameters(**values)


def test_the_teacher_is_the_target_that_was_measured():
    parameters = SeparableParameters(**SETTINGS["odd"])
    arrays = system.teacher(parameters, random_stream("one", 0))
    target = draw_target(parameters, random_stream("one", 0))
    np.testing.assert_array_equal(arrays["directions"], target.directions)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_overlaps_are_predicted(name, points):
    point = points[sorted(SETTINGS, key=list(SETTINGS).index).index(name)]
    for metric in ("squared_overlap", "sum_overlap", "single_overlap"):
        error = float(point.standard_error(metric))
        assert float(point.mean(metric)) == pytest.approx(
            float(point.predicted(metric)), abs=0.03 + 3.5 * error
        )


def test_an_odd_link_shows_the_sum_first():
    found = system.predict(SeparableParameters(link="tanh", directions=4, sample_ratio=20.0))
    assert found["sum_threshold_ratio"] < 10 < 30 < found["threshold_ratio"]
    assert found["sum_overlap"] > 0.8 > 0.3 > found["single_overlap"]
    own = found["squared_overlap"]
    assert own == pytest.approx((found["sum_overlap"] + 3 * found["single_overlap"]) / 4)


@pytest.mark.parametrize(
    ("setting", "seed"),
    [
        ({"dimension": 73, "directions": 6, "link": "sin", "label_map": "identity"}, 41),
        ({"dimension": 40, "directions": 5, "link": "abs", "label_map": "optimal"}, 42),
        ({"dimension": 80, "directions": 4, "link": "relu", "label_map": "optimal"}, 43),
    ],
)
def test_weak_directions_and_few_samples(setting, seed):
    """Odd links leave single directions below the share of random ones; the best map is not centred."""
    parameters = SeparableParameters(**setting, sample_ratio=8.0)
    found = system.predict(parameters)
    records = [system.measure(parameters, random_stream(seed, k)) for k in range(60)]
    for name in ("single_overlap", "sum_overlap"):
        values = np.array([metrics[name] for metrics in records])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(found[name] - values.mean()) < 0.01 + 3 * error, (
            name,
            found[name],
            values.mean(),
        )
    if setting["link"] == "sin":
        assert found["single_overlap"] < 0.75 * 6 / 73


def test_a_sum_of_equal_strength_and_larger_noise_has_an_overlap_of_its_own():
    # With T = y the sum and single directions have one strength E[T (s² - 1)], but not one noise.
    setting = {
        "dimension": 60,
        "directions": 3,
        "link": "gelu",
        "noise": 1.3,
        "sample_ratio": 160.0,
    }
    point = point_of(setting | {"label_map": "identity"}, 12)
    lead = point.values("single_overlap") - point.values("sum_overlap")
    expected = float(point.predicted("single_overlap") - point.predicted("sum_overlap"))
    assert expected > 0.02
    assert lead.mean() == pytest.approx(expected, abs=3 * lead.std(ddof=1) / 12**0.5)


def test_thresholds_of_maps_are_those_of_the_best_or_more():
    for link in ("he2", "cosmix", "tanh"):
        found = [
            system.predict(SeparableParameters(link=link, label_map=name))
            for name in ("optimal", "square")
        ]
        best = found[0]["optimal_threshold_ratio"]
        assert found[0]["threshold_ratio"] == pytest.approx(best, rel=0.01)
        assert found[1]["threshold_ratio"] >= 0.999 * best
        assert found[0]["information_threshold_ratio"] <= best


def test_links_without_second_moments_have_no_prediction_for_the_best_map():
    parameters = SeparableParameters(link="identity")
    found = predicted_or_refused(system.predict, parameters)
    assert list(found) == [NO_PREDICTION]
    assert "allowed: label_map" in found[NO_PREDICTION]
    # Maps that do not use the channel have a prediction.
    found = system.predict(SeparableParameters(link="identity", label_map="square"))
    assert found["threshold_ratio"] is None
    assert found["single_overlap"] < 0.1


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_claims_find_their_points(claim, points):
    verdict = claim.verdict(system.settled(points))
    assert verdict.status == "holds", verdict.reason
    studies.check_without_points(claim)


def test_claims_notice_wrong_predictions_and_chance(points):
    for row in system.power(points):
        assert row.noticed, row
        assert row.chance in ("fails", "not testable"), row


@pytest.mark.parametrize(
    ("claim", "metric", "by"),
    [
        ("overlap", "single_overlap", -0.4),
        ("sum-overlap", "sum_overlap", -0.4),
        ("place-of-the-outliers", "eigenvalues", 0.3),
        ("constant", "single_overlap", -0.4),
        ("information-without-algorithm", "informed_overlap", -0.4),
    ],
)
def test_claims_fail_on_records_that_contradict_them(claim, metric, by, points):
    (row,) = [each for each in CLAIMS if each.name == claim]
    moved = []
    for point in points:
        metrics = [
            m
            | {
                metric: [v + by for v in m[metric]]
                if isinstance(m[metric], list)
                else None
                if m[metric] is None
                else m[metric] + by
            }
            for m in point.metrics
        ]
        moved.append(Point(point.parameters, metrics, point.prediction))
    assert row.verdict(system.settled(moved)).status == "fails"


def test_figures_show_theory_and_measurement(points):
    figures = studies.figures_of(system, points, 5)
    names = [figure.name for figure in figures]
    assert {name.split("-")[0] for name in names} == {"overlap", "good", "sum", "thresholds"}


def test_a_measurement_beyond_memory_is_refused_and_theory_is_not():
    studies.check_predicted_alone(
        system, {"sample_ratio": 9e4, "dimension": 1_000}, "allowed for a measurement: up to 4 GB"
    )
