"""Claims and figures of `quadratic-network` on records that agree or disagree with theory."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.frame.panels import grouped
from solvable.frame.power import judged
from solvable.models.quadratic.network.claims import CLAIMS, distribution_distance, shape_effect
from solvable.models.quadratic.network.feature_groups import group_scatter
from solvable.models.quadratic.network.figures import OVERLAY
from solvable.models.quadratic.network.measure import measure
from solvable.models.quadratic.network.phase_claims import PHASE_CLAIMS
from solvable.models.quadratic.network.predict import predict
from solvable.models.quadratic.network.recovery_claims import RECOVERY_CLAIMS
from solvable.models.quadratic.network.solutions import state_of
from solvable.models.quadratic.network.system import QuadraticParameters, system
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.systems.base import Point

BASE = {"dimension": 60, "regularisation": 0.1}
TRAINED = {"sample_ratio": 0.5, "network_samples": 2_000, "noiseless_samples": 1}

SETTINGS = {
    "random": BASE | TRAINED,
    "control": BASE | TRAINED | {"sensing": "goe"},
    "power": BASE | {"target": "power-law", "sample_ratio": 0.4, "regularisation": 0.02},
    "power, more": BASE | {"target": "power-law", "sample_ratio": 1.0, "regularisation": 0.02},
    "below": BASE | {"sample_ratio": 0.2, "noise": 0.0, "regularisation": 1e-3},
    "between": BASE | {"sample_ratio": 0.245, "noise": 0.0, "regularisation": 1e-3},
    "above": BASE | {"sample_ratio": 0.3, "noise": 0.0, "regularisation": 1e-3},
}

ELSEWHERE = {claim.name for claim in (*PHASE_CLAIMS, *RECOVERY_CLAIMS)}
"""Claims of test_phase_claims.py."""

FINITE = ("matrix_error", "test_error", "train_error", "rank_fraction", "trace", "feature_errors")


@pytest.fixture(scope="module")
def predictions():
    return {name: predict(QuadraticParameters(**one)) for name, one in SETTINGS.items()}


@pytest.fixture(scope="module")
def make(predictions):
    """Points whose records equal the predictions, except for the given changes."""

    def make(names=tuple(SETTINGS), **changes):
        points = []
        for name in names:
            setting, prediction = QuadraticParameters(**SETTINGS[name]), predictions[name]
            record = dict(prediction) | {"kkt_residual": 1e-7, "iterations": 50.0}
            record["network_objective"] = prediction["objective"]
            record["network_matrix_error"] = prediction["matrix_error"]
            known = {one: prediction[f"finite_size_{one}"] for one in FINITE}
            record |= {one: value for one, value in known.items() if value is not None}
            record["gcv_test_error"] = record["test_error"]
            for key, factor in changes.items():
                value = np.asarray(record[key], dtype=float) * factor
                record[key] = value.tolist()
            points.append(Point(setting.model_dump(), [record] * 30, prediction))
        return points

    return make


def verdicts(points):
    return {verdict.claim: verdict for verdict in system.verdicts(points)}


def test_records_that_agree_with_theory_hold_every_claim(make):
    for name, verdict in verdicts(make()).items():
        if name in ELSEWHERE:
            continue
        assert verdict.status == "holds", (name, verdict)
        assert verdict.reason
        assert verdict.source


def test_the_quick_preset_judges_training_and_recovery():
    """With power, on records that equal the predictions where these claims look."""
    preset = system.presets["quick"]
    grid, points = dict(preset.grid) | {"target": ("marchenko-pastur",)}, []
    for values in itertools.product(*grid.values()):
        setting = QuadraticParameters(**dict(zip(grid, values, strict=True)))
        prediction = predict(setting)
        record = dict(prediction) | {"network_objective": None}
        if setting.n_samples <= setting.network_samples:
            record["network_objective"] = prediction["objective"]
        if setting.n_samples < setting.noiseless_samples:
            record["noiseless_matrix_error"] = None
        points.append(Point(setting.model_dump(), [record] * preset.replicates, prediction))
    points = system.settled(points)
    rows = [claim for claim in CLAIMS if claim.name in ("network-is-convex", "perfect-recovery")]
    found = [judged(claim, points, system.axis, system.chance) for claim in rows]
    assert [verdict.status for verdict in found] == ["holds", "holds"], found


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("test-error", {"matrix_error": 1.1}),
        ("test-error", {"matrix_error": 0.9}),
        ("train-error", {"train_error": 1.1}),
        ("train-error", {"train_error": 0.9}),
        ("rank", {"rank_fraction": 1.1}),
        ("spectrum", {"eigenvalues": 1.5}),
        ("out-of-the-noise", {"outliers": 2.0}),
        ("feature-errors", {"feature_errors": 2.5}),
        ("training-data-tell-the-test-error", {"gcv_test_error": 1.15}),
        ("network-is-convex", {"network_objective": 1.001}),
        ("control-is-closer", {"matrix_error": 1.0}),
        ("pruning-helps", {"pruned_error": 2.0}),
        ("denoising-helps", {"denoised_error": 3.0}),
        ("perfect-recovery", {"matrix_error": 1e4}),
        ("perfect-recovery", {"noiseless_matrix_error": 1e4}),
    ],
)
def test_records_that_disagree_fail(make, claim, changes):
    points = make(**changes)
    if claim == "control-is-closer":
        # Control and samples are exchanged.
        pair = make(("random", "control"))
        points = [
            replace(one, metrics=other.metrics) for one, other in zip(pair, pair[::-1], strict=True)
        ]
    verdict = verdicts(points)[claim]
    assert verdict.status == "fails", verdict


def test_every_claim_fails_at_its_stated_power_and_for_a_learner_of_nothing(make):
    rows = [row for row in system.power(make()) if row.claim not in ELSEWHERE]
    assert {row.status for row in rows} == {"holds"}
    assert [row.claim for row in rows if not row.passes] == []


@pytest.mark.parametrize("change", [{"sample_ratio": 0.29}, {"sample_ratio": 0.1}])
def test_where_no_expansion_holds_claims_say_so(change):
    """No claim is made near the interpolation peak and below ten samples per coordinate."""
    setting = QuadraticParameters(**BASE | {"regularisation": 1e-3} | change)
    prediction = predict(setting)
    record = dict(prediction) | {"network_objective": None}
    found = verdicts([Point(setting.model_dump(), [record] * 3, prediction)])
    for name in ("test-error", "train-error", "rank", "spectrum", "feature-errors"):
        assert found[name].status == "not testable"
        assert "at most a quarter of the limit" in found[name].reason


def test_what_cannot_be_tested_says_what_would(make):
    few = BASE | {"sample_ratio": 0.05, "regularisation": 0.02}
    setting = QuadraticParameters(**few)
    prediction = predict(setting)
    record = dict(prediction) | {"gcv_test_error": None, "network_objective": None}
    record["kkt_residual"] = 1e-7
    point = Point(setting.model_dump(), [record], prediction)
    assert shape_effect(setting) > 0.1
    found = verdicts([point])
    for name in ("test-error", "train-error", "spectrum", "feature-errors", "perfect-recovery"):
        assert found[name].status == "not testable"
    assert "n/d of at least 10" in found["test-error"].reason
    assert "preset control" in found["control-is-closer"].reason
    assert "network_samples" in found["network-is-convex"].reason
    assert "sample_ratio" in found["training-data-tell-the-test-error"].reason
    assert "set noiseless_samples" in found["perfect-recovery"].reason
    assert {one.status for one in found.values()} <= {"holds", "fails", "not testable"}


def test_distance_of_distributions():
    quantiles = np.array([3.0, 2.0, 1.0, 0.0, 0.0])
    assert distribution_distance(quantiles[None], quantiles) <= 0.1 + 1e-12
    assert distribution_distance(quantiles[None] + 10, quantiles) == pytest.approx(0.9)
    # Eigenvalues at zero have no effect on the distance.
    assert distribution_distance(np.zeros((2, 5)), np.zeros(5)) == 0


@pytest.mark.parametrize("setting", ["random", "power"])
def test_distance_of_the_law_from_itself_is_below_a_step(make, setting):
    point = make((setting,))[0]
    found = distribution_distance(point.values("eigenvalues"), point.predicted("eigenvalues"))
    assert found <= 0.5 / 60 + 1e-9


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(system, "axis", replace(system.axis, resolution=5))


def test_figures_show_every_quantity_and_name_the_phases(make, coarse):
    points = make(("power", "power, more"))
    figures = {one.name: one for one in system.figures(points)}
    assert {"error", "train-error", "rank", "self-estimate", "features"} <= set(figures)
    lines = {one.label: np.asarray(one.y) for one in figures["error-parts"].series}
    names = "noise learned by the bulk", "features below the noise", "features above the noise"
    # The sum of the parts lies between the error and about twice the error.
    share = sum(lines[name] for name in names) / lines["theory, d → ∞"]
    assert np.all((share > 1) & (share < 2.5))
    assert "Phases: " in figures["error"].caption
    labels = [one.label for one in figures["error"].series]
    assert labels == [
        "theory, d → ∞", "minimiser", "trained network", "first order in 1/d, d = 60",
        "Bayes-optimal", "Bayes-optimal message passing",
    ]  # fmt: skip
    spectra = [one for name, one in figures.items() if name.startswith("spectrum")]
    assert spectra
    for figure in spectra:
        assert "Phase: b" in figure.caption
        assert [one.label for one in figure.markers] == ["threshold b", "edge of noise 2δ"]
        law = next(one for one in figure.series if one.label == "law, learned part")
        counts = next(one for one in figure.series if one.kind == "histogram")
        # The law is scaled to counts per bin: both integrate to the learned eigenvalues.
        width = counts.x[1] - counts.x[0]
        learned = np.nan_to_num(np.asarray(law.y))
        held = np.sum((learned[1:] + learned[:-1]) / 2 * np.diff(law.x)) / width
        assert held == pytest.approx(np.sum(counts.y), rel=0.1)
    import matplotlib.pyplot as plt

    for figure in figures.values():
        plt.close(draw_matplotlib(figure))


def test_a_prediction_without_a_phase_is_drawn(make, coarse):
    (point,) = make(("power",))
    kept = {key: value for key, value in point.prediction.items() if key != "spectral_phase"}
    figures = system.figures([replace(point, prediction=kept)])
    (spectrum,) = [one for one in figures if one.name.startswith("spectrum")]
    assert "Phase" not in spectrum.caption
    assert "of the directions are learned." in spectrum.caption


def test_lines_of_theory_pass_through_the_points(make, coarse):
    points = make(("random", "control"))
    figures = {one.name: one for one in system.figures(points)}
    for name in ("error", "train-error", "rank"):
        series = {one.label: one for one in figures[name].series}
        line, dashed = series["theory, d → ∞"], series["first order in 1/d, d = 60"]
        measured, control = series["minimiser"], series["Gaussian control"]
        k = int(np.argmin(np.abs(np.asarray(line.x) - 0.5)))
        assert line.x[k] == pytest.approx(0.5)
        assert dashed.y[k] == pytest.approx(measured.y[0])
        if name == "error":
            random, gaussian = (point.prediction for point in points)
            assert line.y[k] == pytest.approx(random["matrix_error"])
            assert control.y[0] == pytest.approx(gaussian["finite_size_matrix_error"])


def test_curves_are_told_apart_by_what_they_use(make):
    points = make(("random", "control", "power", "power, more"))
    curves = system.curves(points)
    assert [len(one.points) for one in curves] == [2, 2]
    assert [one.words for one in grouped(curves, OVERLAY)] == ["marchenko-pastur", "power-law"]
    assert [one.words for one in grouped(curves)] == [
        "marchenko-pastur, regularisation 0.1", "power-law, regularisation 0.02",
    ]  # fmt: skip


def test_curves_that_differ_in_the_regularisation_share_figures(make, coarse):
    points = make(("random",))
    weaker = QuadraticParameters(**SETTINGS["random"] | {"regularisation": 0.05})
    points.append(Point(weaker.model_dump(), points[0].metrics, predict(weaker)))
    figures = {one.name: one for one in system.figures(points)}
    error = figures["error"]
    assert [(one.label, one.colour) for one in error.series] == [
        ("regularisation 0.1, theory, d → ∞", 0), ("regularisation 0.1, minimiser", 0),
        ("regularisation 0.1, trained network", 0), ("regularisation 0.05, theory, d → ∞", 1),
        ("regularisation 0.05, minimiser", 1), ("regularisation 0.05, trained network", 1),
        ("Bayes-optimal", 5), ("Bayes-optimal message passing", 5),
    ]  # fmt: skip
    assert "Phases: regularisation 0.1: " in error.caption
    assert "; regularisation 0.05: " in error.caption
    assert {"features-regularisation-0.1", "self-estimate-regularisation-0.05"} <= set(figures)


@pytest.mark.parametrize(
    "setting",
    [
        {"target": "power-law", "dimension": 36, "exponent": 1.1, "regularisation": 0.6},
        {"dimension": 30, "width_ratio": 0.4, "regularisation": 0.3, "noise": 0.8},
    ],
    ids=lambda setting: setting.get("target", "marchenko-pastur"),
)
def test_groups_of_features_scatter_as_their_claim_supposes(setting):
    """Predicted scatters are right to a factor of about 1.6; single features scatter more than groups."""
    place = QuadraticParameters(sample_ratio=1.2, **setting)
    errors = np.array(
        [measure(place, random_stream("feature scatter", k))["feature_errors"] for k in range(32)]
    )
    ratio = np.log(errors.std(axis=0, ddof=1) / group_scatter(place, state_of(place)))
    # 32 replicates determine the logarithm of a scatter to 0.13.
    assert np.sqrt(np.mean(ratio**2)) < 0.5
    relative = np.log(errors.std(axis=0, ddof=1) / errors.mean(axis=0))
    if "target" in setting:
        assert np.ptp(relative) > 1.0
