"""The system `emergence-in-sgd`: parameters, one replicate, prediction, claims, figures."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import studies

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import predicted_or_refused
from solvable.models.multi_index.emergence import measure as measuring
from solvable.models.multi_index.emergence.claims import CLAIMS
from solvable.models.multi_index.emergence.system import PRESETS, system
from solvable.systems.base import Point

P = system.parameters
BASE = {"dimension": 24, "features": 4, "width": 12, "batch": 6000, "learning_rate": 0.02}
TIMES = (1.5, 2.5, 4.0, 6.0)


def record_of(setting, seed=0):
    return system.measure(P(**setting), random_stream("one", seed, str(setting)))


def point_of(setting, seeds):
    parameters = P(**setting)
    return Point(
        parameters.model_dump(),
        [record_of(setting, seed) for seed in range(seeds)],
        predicted_or_refused(system.predict, parameters),
    )


@pytest.fixture(scope="module")
def points():
    return [point_of(BASE | {"time": time}, 4) for time in TIMES]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"features": 60}, "up to dimension = 48"),
        ({"learning_rate": 0.05, "link": "he6"}, "up to 0.0333"),
        ({"time": 0.001}, "at least learning_rate"),
        ({"decay": -1.0}, "from 0"),
        ({"link": "he2"}, "allowed: "),
        ({"width": 0}, "from 1"),
        ({"initial_norm": 0.0}, "from 1e-06"),
        ({"steps": 10}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        P(**values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"batch": 40}, "may blow up"),
        ({"link": "he6", "dimension": 16, "batch": 3000}, "may blow up"),
        ({"link": "cosmix", "batch": 30}, "moves overlaps"),
        ({"noise": 60.0}, "moves overlaps"),
        ({"noise": 99.0, "batch": 1, "link": "cosmix"}, "norms of students grow"),
        ({"width": 400}, "initial_norm <= 0.016"),
    ],
)
def test_what_the_theory_leaves_out_is_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        system.predict(P(**values))


@pytest.mark.parametrize("values", [{"batch": 40}, {"link": "cosmix", "batch": 30}])
def test_the_batch_named_in_the_message_is_enough(values):
    with pytest.raises(InvalidParameter) as refusal:
        system.predict(P(**values))
    batch = int(str(refusal.value).rpartition(">= ")[2])
    # The noise changes the loss, which changes the noise: 10 % more than the required batch is enough.
    assert system.predict(P(**values | {"batch": round(1.1 * batch)}))["loss"] > 0


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_are_valid_and_predicted_at_every_point(name):
    grid = PRESETS[name].grid
    for values in product(*grid.values()):
        parameters = P(**dict(zip(grid, values, strict=True)))
    assert system.predict(parameters)["loss"] < 0.5


def test_the_teacher_is_orthonormal_with_the_amplitudes_of_the_model():
    arrays = system.teacher(P(**BASE), random_stream("teacher"))
    np.testing.assert_allclose(arrays["directions"].T @ arrays["directions"], np.eye(4))
    np.testing.assert_allclose(arrays["amplitudes"][0] / arrays["amplitudes"], [1, 2, 3, 4])


def test_weights_that_diverge_leave_nothing_measured():
    record = record_of({"link": "he6", "dimension": 40, "batch": 1, "learning_rate": 0.03})
    assert record["loss"] is None
    assert record["captured"] == [None] * 6
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_flow_of_too_many_pairs_is_left_out(monkeypatch):
    monkeypatch.setattr(measuring, "MOST_PAIRS", 10.0)
    record = record_of(BASE | {"time": 0.1})
    assert record["flow_loss"] is None
    assert record["loss"] > 0


def test_a_line_passes_through_the_predictions():
    parameters = P(**BASE)
    line = system.curves([Point(parameters.model_dump(), [record_of(BASE | {"time": 0.1})], {})])[0]
    for metrics in line.predict(parameters, np.array([2.0, 9.0])):
        other = system.predict(P(**BASE | {"time": metrics["samples"] / BASE["batch"] * 0.02}))
        for name in ("loss", "captured", "squared_overlap", "escape_time"):
            assert metrics[name] == pytest.approx(other[name], rel=2e-3)


def test_narrow_networks_keep_the_features_that_no_student_learns():
    wide, narrow = (system.predict(P(**BASE | {"width": m, "time": 200.0})) for m in (12, 2))
    assert wide["loss"] < 1e-3
    # The starts decide which two features are learned; the two strongest give the lowest loss.
    assert narrow["width_floor"] < narrow["loss"] < 0.4
    assert sum(narrow["captured"]) == pytest.approx(2, abs=0.1)


def test_no_claim_fails_in_another_setting_than_the_presets(points):
    # These few replicates are too noisy for most claims to hold, but none may fail.
    assert "fails" not in {verdict.status for verdict in system.verdicts(points)}


@pytest.mark.parametrize(
    ("claim", "metric", "factor"),
    [
        ("sgd-follows-flow", "loss", 1.4),
        ("sgd-follows-flow", "loss", 0.3),
        ("escape-times", "escape_time", 1.4),
        ("escape-times", "escape_time", 0.7),
        ("law-of-starts", "captured", 0.5),
        ("law-of-starts", "captured", 1.4),
    ],
)
def test_claims_fail_on_records_that_contradict_them(claim, metric, factor, points):
    assert (
        studies.verdict_of(
            system, claim, studies.changed(points, metric, lambda v, p: factor * v)
        ).status
        == "fails"
    )


def test_another_exponent_is_noticed(points):
    (row,) = [each for each in CLAIMS if each.name == "exponent-of-the-loss"]
    bent = []
    for point in system.settled(points):
        metrics = [
            {**own, "loss": own["flow_loss"] * (point.setting.time / 4) ** -0.8}
            for own in point.metrics
        ]
        bent.append(replace(point, metrics=metrics))
    assert row.verdict(system.settled(points)).status == "holds"
    assert row.verdict(bent).status == "fails"


def test_claims_without_points_are_not_testable():
    small = [point_of(BASE | {"dimension": 8, "features": 2, "width": 4, "time": 0.05}, 2)]
    statuses = {v.claim: v.status for v in system.verdicts(small)}
    assert statuses["escape-times"] == "not testable"
    assert statuses["exponent-of-the-loss"] == "not testable"


@pytest.mark.parametrize(
    ("pairs", "factor", "status"),
    [(1.0, 1.0, "holds"), (1.0, 1.5, "fails"), (1.1, 1.0, "not testable")],
)
def test_independent_features_are_judged_where_pairs_hardly_matter(pairs, factor, status, points):
    changed = [
        replace(
            point,
            metrics=[
                m | {"flow_loss": pairs * m["ode_loss"], "loss": factor * m["ode_loss"]}
                for m in point.metrics
            ],
        )
        for point in points
    ]
    verdict = studies.verdict_of(system, "loss-of-independent-features", changed)
    assert verdict.status == status
    assert status != "not testable" or "neither pairs" in verdict.reason


def test_nothing_is_claimed_of_independent_features_where_many_students_share_one():
    # Fifty students learn one feature together in about 75 % of the time of a single student.
    setting = {
        "dimension": 24,
        "features": 1,
        "width": 50,
        "batch": 900,
        "time": 2.0,
        "initial_norm": 0.01,
        "learning_rate": 0.02,
    }
    wide = [point_of(setting, 3)]
    for metrics in wide[0].metrics:
        assert metrics["flow_loss"] < 0.95 * metrics["ode_loss"]
    verdict = studies.verdict_of(system, "loss-of-independent-features", wide)
    assert verdict.status == "not testable"
    assert "pairs of students" in verdict.reason


def test_noise_that_delays_features_is_outside_of_the_claims(points):
    loud = [
        replace(point, prediction=point.prediction | {"noise_delay": [0.06] * 4})
        for point in points
    ]
    for claim in ("sgd-follows-flow", "loss-of-independent-features", "escape-times"):
        verdict = studies.verdict_of(system, claim, loud)
        assert (verdict.status, "noise" in verdict.reason) == ("not testable", True)


def test_figures_show_theory_and_measurement(points):
    other = [point_of(BASE | {"width": 2, "time": time}, 2) for time in (1.5, 4.0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "axis", replace(system.axis, resolution=8))
        figures = {figure.name: figure for figure in system.figures([*points, *other])}
    assert set(figures) >= {"loss", "captured-width-12", "overlap-width-2", "frontier"}
    for figure in figures.values():
        assert figure.caption
        for series in figure.series:
            assert len(series.x) == len(series.y)
            assert np.isfinite(series.y).all(), (figure.name, series.label)
    labels = [series.label for series in figures["frontier"].series]
    assert "exponent -0.50" in labels
    markers = figures["captured-width-12"].markers
    assert len(markers) >= 3
    assert system.figures([]) == []


def test_a_measurement_beyond_memory_is_refused_and_theory_is_not():
    studies.check_predicted_alone(
        system, {"time": 1e6, "batch": 10**7}, r"allowed for a measurement: up to 1e\+15"
    )
