"""The system `boltzmann-machine`: parameters, one replicate, prediction, claims, figures."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import studies

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION
from solvable.models.boltzmann.claims import CLAIMS
from solvable.models.boltzmann.measure import draw_directions, span_overlap
from solvable.models.boltzmann.parameters import BoltzmannParameters
from solvable.models.boltzmann.phase import phase_of
from solvable.models.boltzmann.system import system

record_of = partial(studies.record_of, system)


def predicted(**setting):
    return system.predict(BoltzmannParameters(**setting))


point_of = partial(studies.point_of, system)


@pytest.fixture(scope="module")
def points():
    base = {"dimension": 300, "spike": 2.2}
    chosen = [
        base | {"sample_ratio": ratio, "algorithm": algorithm}
        for ratio in (2.5, 5.0)
        for algorithm in ("amp", "gradient")
    ]
    chosen += [base | {"sample_ratio": 2.5, "weight_decay": 1.0}]
    chosen += [base | {"algorithm": "gradient", "steps": steps} for steps in (2, 8)]
    chosen += [base | {"steps": 3, "spike": [3.0, 2.0], "hidden_units": 2}]
    edge = {"dimension": 400, "sample_ratio": 1.0, "weight_decay": 3.0, "steps": 10}
    chosen += [edge | {"spike": spike} for spike in (0.5, 2.2)]
    return [point_of(setting, 10) for setting in chosen]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"noise": 0.0}, "numbers from 1e-50"),
        ({"spike": 0.0}, "a number from 1e-50"),
        ({"spike": [2.0, -1.0]}, "a number from 1e-50"),
        ({"spike": []}, "one to four"),
        ({"spike": "abc"}, "such as"),
        ({"spike": [1.0] * 5}, "one to four"),
        ({"hidden_units": 5}, "up to 4"),
        ({"weight_decay": -0.1}, "from 0"),
        ({"algorithm": "cd"}, "amp"),
        ({"sample_ratio": 0.01, "dimension": 100}, "at least 10 samples"),
        ({"steps": 41}, "up to 40"),
        ({"samples": 10}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        BoltzmannParameters(**values)


def test_more_samples_than_memory_holds_are_predicted_and_not_measured():
    parameters = BoltzmannParameters(sample_ratio=90, dimension=10_000)
    assert system.predict(parameters)["overlap"][0] > 0.9
    with pytest.raises(InvalidParameter, match="allowed for a measurement: up to 2 GB"):
        system.measure(parameters, np.random.default_rng(0))


def test_only_the_ratio_of_spike_and_noise_matters():
    one = predicted(spike=[6.0, 3.0], noise=3.0, hidden_units=2)
    two = predicted(spike=[2.0, 1.0], noise=1.0, hidden_units=2)
    assert one == two
    assert record_of({"spike": 4.0, "noise": 2.0, "dimension": 100}) == record_of(
        {"dimension": 100}
    )


def test_the_teacher_is_the_target_that_was_measured():
    parameters = BoltzmannParameters(dimension=128, spike=[2.0, 1.0])
    arrays = system.teacher(parameters, random_stream("one", 0))
    directions = draw_directions(parameters, random_stream("one", 0))
    np.testing.assert_array_equal(arrays["directions"], directions)
    np.testing.assert_array_equal(directions.T @ directions, 128 * np.eye(2))


def test_an_unstable_machine_is_said_to_be_so_and_has_no_number():
    for setting in ({"spike": 1.0}, {"sample_ratio": 0.8}, {"hidden_units": 2}):
        found = predicted(**setting)
        assert found["overlap"] == [None]
        assert found["norm"] is None
        assert found["replicon"] is None or found["replicon"] > 1
        assert found[NO_PREDICTION].startswith("the prediction is unstable")
        assert found["pca_overlap"][0] > 0.3
    # message passing does not converge either
    record = record_of({"spike": 1.0, "dimension": 400})
    assert (record["converged"], record["overlap"], record["norm"]) == (0.0, [None], None)


def test_weight_decay_restores_what_is_unstable():
    found = predicted(spike=1.1, weight_decay=1.6, dimension=2_000)
    assert found["overlap"][0] > 0.6
    assert found["replicon"] < 0.6
    assert predicted(weight_decay=1.4, hidden_units=2)["overlap"][0] > 0.8


def test_too_much_weight_decay_leaves_nothing():
    found = predicted(weight_decay=6.0)
    assert found["overlap"] == [None]
    assert found["norm"] == 0
    assert "the weights are 0" in found[NO_PREDICTION]
    record = record_of({"weight_decay": 6.0, "dimension": 200})
    assert (record["norm"], record["overlap"], record["converged"]) == (0, [None], 1)
    near = predicted(weight_decay=2.7, dimension=300)
    assert near["norm"] is None
    assert "in some samples and not in others" in near[NO_PREDICTION]


def test_spikes_beyond_the_units_are_found_by_chance_alone():
    setting = {"spike": [4.0, 1.0], "dimension": 300, "sample_ratio": 3.0}
    point = point_of(setting, 12)
    expected, measured = point.predicted("overlap"), point.mean("overlap")
    assert expected[0] > 0.9
    assert expected[1] < 0.1
    assert measured[1] == pytest.approx(expected[1], abs=3.5 * point.standard_error("overlap")[1])
    close = predicted(spike=[2.0, 1.99], dimension=300)
    assert close["overlap"] == [None, None]
    assert "fewer units than spikes" in close[NO_PREDICTION]
    assert None not in predicted(spike=[2.5, 2.49], hidden_units=2, sample_ratio=3.0)["overlap"]


def test_a_weak_spike_beside_several_units():
    # the overlap with the span of three units is the norm of three Gaussian numbers
    strengths, d, ratio = (9.0, 7.0, 5.0, 0.2), 200, 5.0
    units = phase_of(strengths, ratio, 3, 0.0).units
    growths = np.array([1 - unit.V * strengths[3] * unit.slope for unit in units])
    scatter = np.sqrt([(1 - unit.overlap**2) * 1.2 / d for unit in units]) / growths
    drawn = np.random.default_rng(0).standard_normal((20_000, 3)) * scatter
    expected = predicted(spike=list(strengths), dimension=d, sample_ratio=ratio, hidden_units=3)
    assert expected["overlap"][3] == pytest.approx(np.linalg.norm(drawn, axis=1).mean(), rel=0.02)
    # 46 samples measured once: 0.0228 with standard error 0.0015
    assert expected["overlap"][3] == pytest.approx(0.0228, abs=0.0030)


def test_a_random_start_may_end_at_the_weaker_spike():
    setting = {"spike": [2.2, 2.6], "dimension": 200, "sample_ratio": 10.0, "algorithm": "gradient"}
    found = predicted(**setting)
    assert found["overlap"] == [None, None]
    assert "weaker spike" in found[NO_PREDICTION]
    best = [int(np.argmax(record_of(setting, seed)["overlap"])) for seed in range(24)]
    assert 0 < np.mean(best) < 1
    # from the principal components, or if the weaker spike is unstable, the larger spike is learned
    assert predicted(**setting | {"algorithm": "amp"})["overlap"][1] > 0.9
    far = setting | {"spike": [0.5, 2.6]}
    assert predicted(**far)["overlap"][1] > 0.9
    assert all(record_of(far, seed)["overlap"][1] > 0.9 for seed in range(12))


def test_overlaps_are_with_the_span_of_the_weights():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((64, 3)))[0] * 8
    W = basis[:, :2] @ np.array([[1.0, 0.4], [-0.3, 2.0]])
    np.testing.assert_allclose(span_overlap(W, basis), [1, 1, 0], atol=1e-12)
    # two units of the same direction up to the convergence error
    same = basis[:, [0, 0]] + 1e-5 * basis[:, [1, 2]]
    np.testing.assert_allclose(span_overlap(same, basis), [1, 0, 0], atol=1e-4)
    assert np.isnan(span_overlap(np.zeros((64, 2)), basis)).all()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_claims_find_their_points(claim, points):
    verdict = claim.verdict(system.settled(points))
    assert verdict.status == "holds", verdict.reason
    studies.check_without_points(claim)


@pytest.mark.parametrize(
    ("claim", "metric", "factor"),
    [
        ("overlap", "overlap", 0.9),
        ("norm", "norm", 1.15),
        ("stability", "replicon", 2.0),
        ("principal-components", "pca_overlap", 0.85),
        ("lead-over-principal-components", "overlap", 0.97),
        ("overlap-on-the-way", "overlap", 0.7),
        ("norm-on-the-way", "norm", 1.3),
        ("weak-recovery", "overlap_matrix", 0.7),
        ("partition-function", "partition_gap", 1.5),
    ],
)
def test_claims_fail_on_records_that_contradict_them(claim, metric, factor, points):
    def moved(value):
        return None if value is None else (np.asarray(value) * factor).tolist()

    shifted = [
        replace(point, metrics=[one | {metric: moved(one[metric])} for one in point.metrics])
        for point in points
        if point.metrics[0][metric] is not None
    ]
    assert studies.verdict_of(system, claim, shifted).status == "fails"


def test_no_claim_holds_of_a_random_direction(points):
    studies.check_chance(system, points)


def test_figures_separate_machine_and_components(points):
    figures = studies.figures_of(system, points[:4], 5)
    names = [figure.name for figure in figures]
    assert len(names) == len(set(names)) == 6
    for figure in figures:
        assert figure.caption
        if figure.name.startswith("overlap"):
            colours = {series.label.split(",")[0]: series.colour for series in figure.series}
            assert colours == {"machine": 0, "components": 1, "Bayes": 0}
