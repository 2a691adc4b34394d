"""The system `quadratic-network`: parameters, one replicate, prediction, figures."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import studies
from scipy.optimize import brentq

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter, NotConverged
from solvable.frame.parameters import check_limits
from solvable.models.quadratic.network import measure as quadratic_experiment
from solvable.models.quadratic.network.feature_groups import (
    feature_groups,
    group_errors,
    group_names,
    group_sizes,
)
from solvable.models.quadratic.network.figures import phase_changes
from solvable.models.quadratic.network.measure import draw_target
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.predict import curve, predict, scaling_phase
from solvable.models.quadratic.network.solutions import NOISELESS_PENALTY, measure_of, state_of
from solvable.models.quadratic.network.spectral_phase import decision_at
from solvable.models.quadratic.network.system import system
from solvable.models.quadratic.network.target import QuadraticTarget
from solvable.spectra.functionals import truncated_moments

SETTINGS = {
    "random target": {"dimension": 24, "sample_ratio": 0.6, "regularisation": 0.1},
    "power law": {"target": "power-law", "dimension": 24, "sample_ratio": 1.0},
    "control": {"dimension": 12, "samples": 100, "sensing": "goe", "regularisation": 0.2},
    "trained": {
        "target": "power-law", "dimension": 12, "sample_ratio": 1.5, "regularisation": 0.3,
        "network_samples": 1_000,
    },
    "noiseless twin": {"dimension": 20, "sample_ratio": 0.8, "noiseless_samples": 300},
    "noiseless": {
        "dimension": 20, "noise": 0.0, "regularisation": 0.01, "sample_ratio": 0.5,
    },
}  # fmt: skip


record_of = partial(studies.record_of, system)
point_of = partial(studies.point_of, system)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"width_ratio": 0}, "width_ratio"),
        ({"width_ratio": -1}, "width_ratio"),
        ({"exponent": 0.5}, "exponent"),
        ({"noise": -0.1}, "noise"),
        ({"regularisation": -0.1}, "regularisation"),
        ({"regularisation": 0}, "regularisation"),
        ({"sample_ratio": 0}, "sample_ratio"),
        ({"sample_ratio": -1}, "sample_ratio"),
        ({"sample_ratio": 1e-5}, "less than one sample"),
        ({"samples": -5}, "samples"),
        ({"samples": "many"}, "samples"),
        ({"dimension": 3}, "dimension"),
        ({"sensing": "rank-one"}, "sensing"),
        ({"target": "flat"}, "target"),
        ({"noise": float("nan")}, "noise"),
        ({"network_ratio": 0}, "network_ratio"),
        ({"width": 3}, "a parameter of"),
    ],
)
def test_bad_parameters_are_named(values, words):
    with pytest.raises(InvalidParameter, match=words):
        QuadraticParameters(**values)


def test_samples_take_the_place_of_their_ratio():
    one = QuadraticParameters(dimension=20, samples=100)
    assert one.sample_ratio == pytest.approx(0.25)
    assert one.n_samples == 100
    both = QuadraticParameters(dimension=20, samples="100", sample_ratio=7.0)
    assert both == one
    # Stored parameters read back unchanged.
    assert QuadraticParameters(**one.model_dump()) == one
    assert QuadraticParameters(dimension=20, sample_ratio=0.3).n_samples == 120


def test_too_large_a_measurement_is_refused_and_a_prediction_is_not():
    for setting, words in (
        ({"dimension": 3_000, "target": "power-law"}, "dimension is 3000"),
        ({"dimension": 2_000, "sample_ratio": 1.0}, "take 32.0 GB"),
        ({"dimension": 200, "sample_ratio": 1.0, "sensing": "goe"}, "sensing=goe"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            check_limits(QuadraticParameters(**setting))
    found = predict(QuadraticParameters(target="power-law", dimension=3_000))
    assert found["eigenvalues"] is None
    assert found["matrix_error"] > 0


def test_a_minimiser_that_is_not_reached_is_no_number(monkeypatch):
    monkeypatch.setattr(quadratic_experiment, "MAX_ITERATIONS", 3)
    monkeypatch.setattr(quadratic_experiment, "TOLERANCE", 1e-14)
    with pytest.raises(NotConverged, match="optimality residual"):
        record_of(SETTINGS["random target"])


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_metrics_are_plain_and_predicted_under_the_same_names(name):
    record = record_of(SETTINGS[name])
    prediction = system.predict(QuadraticParameters(**SETTINGS[name]))
    for metrics in (record, prediction):
        assert json.loads(json.dumps(metrics, allow_nan=False)) == metrics
    own = {"iterations", "kkt_residual", "network_objective", "network_matrix_error"}
    assert set(record) - own <= set(prediction)
    for key in ("eigenvalues", "feature_errors"):
        assert len(record[key]) == len(prediction[key])
    assert record["kkt_residual"] <= 1e-6


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_record_agrees_with_itself(name):
    setting = QuadraticParameters(**SETTINGS[name])
    record = record_of(SETTINGS[name])
    d = setting.dimension
    values = np.array(record["eigenvalues"])
    assert record["trace"] == pytest.approx(values.sum() / d)
    assert record["rank_fraction"] == pytest.approx(np.mean(values > 0))
    assert record["test_error"] == pytest.approx(2 * record["matrix_error"] + setting.noise)
    sizes = group_sizes(setting)
    assert sizes.sum() == d
    assert sizes @ record["feature_errors"] / d == pytest.approx(record["matrix_error"])
    loss = setting.n_samples / d**2 * record["train_error"]
    penalty = setting.regularisation * record["trace"]
    assert record["objective"] == pytest.approx(loss + penalty)


def test_a_network_trained_by_gradient_ends_at_the_same_minimum():
    record = record_of(SETTINGS["trained"])
    assert record["network_objective"] == pytest.approx(record["objective"], rel=1e-6)
    assert record["network_matrix_error"] == pytest.approx(record["matrix_error"], rel=1e-3)
    narrow = record_of(SETTINGS["trained"] | {"network_ratio": 0.1})
    assert narrow["network_objective"] > 1.001 * narrow["objective"]


def test_the_teacher_is_the_target_that_was_measured():
    parameters = QuadraticParameters(**SETTINGS["random target"])
    arrays = system.teacher(parameters, random_stream("one", 0))
    target = draw_target(parameters, random_stream("one", 0))
    np.testing.assert_array_equal(arrays["factor"], target.factor)
    assert target.n_units == parameters.target_units
    assert target.factor.shape[1] == parameters.target_rank


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_theory_has_the_spectrum_of_the_target(name):
    parameters = QuadraticParameters(**SETTINGS[name])
    law, target = measure_of(parameters), draw_target(parameters, random_stream(0))
    if parameters.target == "power-law":
        np.testing.assert_allclose(law.nodes[::-1], target.strengths)
    else:
        assert law.width_ratio == pytest.approx(target.n_units / parameters.dimension)


def test_curve_of_the_paper():
    """Setting of arXiv:2505.17958: errors by (quadratic 4)."""
    for ratio, error in ((0.1, 0.8663), (0.2, 0.6853), (0.5, 0.3469)):
        found = predict(QuadraticParameters(sample_ratio=ratio))
        assert found["matrix_error"] == pytest.approx(error, abs=2e-4)
        assert found["test_error"] == pytest.approx(2 * found["matrix_error"] + 0.5)
        assert found["interpolation_ratio"] == pytest.approx(0.2758, abs=1e-4)
        assert found["perfect_recovery_ratio"] == pytest.approx(0.2556, abs=1e-4)
        assert 0 < found["bayes_matrix_error"] < found["matrix_error"]
        if (
            ratio < 0.5
        ):  # near interpolation: too few residual degrees of freedom to estimate the noise
            assert found["denoised_error"] is None
        else:
            assert found["bayes_matrix_error"] < found["denoised_error"] < found["matrix_error"]


def test_without_noise_the_best_estimator_recovers_first():
    sizes = {"noise": 0.0, "regularisation": 1e-3}
    below = predict(QuadraticParameters(sample_ratio=0.15, **sizes))
    between = predict(QuadraticParameters(sample_ratio=0.2, **sizes))
    assert below["bayes_matrix_error"] > 0
    assert between["bayes_matrix_error"] == 0
    assert between["matrix_error"] > 0.05
    assert between["interpolation_ratio"] is None


def test_labels_without_noise_are_fitted_as_well_from_the_stated_size_on():
    setting = SETTINGS["noiseless twin"]
    found, without = record_of(setting), record_of(setting | {"noiseless_samples": 0})
    assert found["noiseless_matrix_error"] < 1e-3 < found["matrix_error"]
    for change in ({"noiseless_samples": 321}, {"width_ratio": 1.0}, {"target": "power-law"}):
        assert record_of(setting | change)["noiseless_matrix_error"] is None
    prediction = predict(QuadraticParameters(**setting))
    alone = {"noise": 0.0, "regularisation": NOISELESS_PENALTY}
    expected = predict(QuadraticParameters(**setting | alone))["matrix_error"]
    assert prediction["noiseless_matrix_error"] == pytest.approx(expected, rel=1e-6)
    assert without["noiseless_matrix_error"] is None


@pytest.mark.parametrize("ratio", [0.24, 0.26, 0.3, 0.4])
def test_feature_errors_add_up_where_peaks_are_narrower_than_any_quadrature(ratio):
    """Overlaps of width 1e-5 at eigenvalues near 1, for an error a million times below their squares."""
    state = state_of(QuadraticParameters(noise=0.0, regularisation=1e-3, sample_ratio=ratio))
    groups = np.array(group_errors(state, [20, 40, 60, 80, 100]))
    assert groups.mean() == pytest.approx(state.matrix_error, rel=1e-6)
    assert (groups > 0).all()


def exact_places(state, count):
    """Learned eigenvalues at the quantiles (k - 1/2) / count of the law, found by a search; 0 below b."""

    def place(tail):
        if tail >= state.rank_fraction:
            return 0.0
        ends = state.threshold, state.law.edges[-1, 1]
        return brentq(lambda x: truncated_moments(state.law, x).mass[0] - tail, *ends) - ends[0]

    return np.array([place((k - 0.5) / count) for k in range(1, count + 1)])


def test_predicted_eigenvalues_are_quantiles():
    for setting in ({"sample_ratio": 0.3}, {"target": "power-law", "dimension": 40}):
        parameters = QuadraticParameters(**setting)
        found = np.array(predict(parameters)["eigenvalues"])
        d = parameters.dimension
        exact = exact_places(state_of(parameters), d)
        spacing = np.abs(np.gradient(exact)).max()
        np.testing.assert_allclose(found, exact, atol=0.05 * spacing)


def test_groups_cover_every_rank():
    for setting in SETTINGS.values():
        parameters = QuadraticParameters(**setting)
        ends = feature_groups(parameters)
        assert ends == sorted(set(ends))
        assert ends[-1] == parameters.dimension
        assert len(group_names(parameters)) == len(ends)
    low = QuadraticParameters(dimension=50, width_ratio=0.2)
    assert feature_groups(low) == [2, 4, 6, 8, 10, 50]
    assert group_names(low)[-1] == "no feature"
    assert group_names(QuadraticParameters(target="power-law"))[0] == "feature 1"


@pytest.mark.parametrize(
    ("setting", "phase"),
    [
        ({"sample_ratio": 0.005}, "random-like"),
        ({"sample_ratio": 3.0}, "bulk+spikes"),
        ({"sample_ratio": 0.2}, "bleeding-out"),
        ({"target": "power-law", "dimension": 400, "sample_ratio": 0.02}, "bulk+spikes"),
        ({"target": "power-law", "dimension": 400, "sample_ratio": 3.0}, "bulk-decay"),
        ({"target": "power-law", "dimension": 400, "sample_ratio": 1.0, "regularisation": 3.5},
         "heavy-tailed"),
        ({"target": "power-law", "dimension": 100, "sample_ratio": 300.0}, "heavy-tailed"),
        ({"target": "power-law", "dimension": 400, "sample_ratio": 0.1, "regularisation": 50.0},
         "rank-collapse"),
        ({"target": "power-law", "dimension": 400, "sample_ratio": 0.0023}, "bleeding-out"),
    ],
)  # fmt: skip
def test_phases_of_the_spectrum(setting, phase):
    parameters = QuadraticParameters(**setting)
    assert decision_at(state_of(parameters), parameters.dimension).phase.value == phase


def test_a_collapsed_network_has_a_prediction():
    """With S = 0 every error is that of learning nothing, with the order 1/d of the target."""
    found = predict(QuadraticParameters(dimension=50, regularisation=50.0, sample_ratio=0.1))
    assert found["spectral_phase"] == "rank-collapse"
    assert found["matrix_error"] == pytest.approx(1.2)
    assert found["finite_size_matrix_error"] == pytest.approx(1.2 + 1 / 50)
    assert found["finite_size_train_error"] == pytest.approx(2 * (1.2 + 1 / 50) + 0.5)
    assert found["rank_fraction"] == found["outliers"] == 0


def test_phases_of_the_scaling_law_come_in_their_order():
    names = []
    for ratio in (1e-4, 0.02, 0.25, 2.0, 1e4):
        setting = {"target": "power-law", "dimension": 400, "sample_ratio": ratio}
        names.append(scaling_phase(QuadraticParameters(**setting, regularisation=1e-3)).phase)
    assert names == ["Ia", "IV", "peak", "VIa", "VIb"]
    found = predict(QuadraticParameters(target="power-law", dimension=60, sample_ratio=0.2))
    assert found["scaling_phase"] == "peak"
    assert found["scaling_law_matrix_error"] is None  # no peak yet at this dimension and penalty
    for change in ({"sample_ratio": 40.0}, {"regularisation": 30.0, "sample_ratio": 3.0}):
        found = predict(QuadraticParameters(target="power-law", dimension=80, **change))
        assert found["scaling_law_matrix_error"] == pytest.approx(found["matrix_error"], rel=0.3)
    assert "scaling_phase" not in predict(QuadraticParameters())
    changes = phase_changes(names, np.array([1.0, 4.0, 16.0, 64.0, 256.0]))
    assert [place for place, _ in changes] == pytest.approx([2, 8, 32, 128])
    assert [name for _, name in changes] == ["IV", "peak", "VIa", "VIb"]


def test_large_training_sets_are_held_in_single_precision(monkeypatch):
    monkeypatch.setattr(quadratic_experiment, "SINGLE_PRECISION", 100)
    single = record_of(SETTINGS["power law"])
    assert single["matrix_error"] < 0.3
    parameters = QuadraticParameters(**SETTINGS["power law"])
    target = QuadraticTarget(24, "power-law", noise=0.5)
    sensing, _ = quadratic_experiment.draw_measurements(parameters, target, random_stream(1))
    assert sensing.samples.source.dtype == np.float32


def test_parameters_of_a_point_read_back():
    (point,) = system.settled([point_of(SETTINGS["control"], seeds=1)])
    assert point.setting == QuadraticParameters(**SETTINGS["control"])


def test_a_theory_line_is_the_prediction_but_for_what_no_figure_shows():
    parameters = QuadraticParameters(target="power-law", dimension=30, regularisation=0.4)
    ratios = np.array([0.6, 0.9, 1.4])
    line = curve(parameters, ratios)
    for ratio, metrics in zip(ratios, line, strict=True):
        wanted = predict(QuadraticParameters(**(dict(parameters) | {"sample_ratio": ratio})))
        assert metrics.pop("denoised_error") is None
        assert wanted.pop("denoised_error") > 0
        for name in ("matrix_error", "finite_size_train_error", "feature_errors", "scaling_phase"):
            value = wanted[name]
            close = value if isinstance(value, str) else pytest.approx(value, rel=1e-6)
            assert metrics[name] == close
