"""The system `curse-of-detail`: parameters, one replicate, prediction, claims, figures."""

from dataclasses import replace

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import Point
from solvable.hermite import hermite_polynomials
from solvable.models.two_layer_posterior.claims import CLAIMS
from solvable.models.two_layer_posterior.equilibrium import UNSETTLED, in_equilibrium
from solvable.models.two_layer_posterior.kernel_claims import KERNEL_CLAIMS
from solvable.models.two_layer_posterior.langevin import Posterior
from solvable.models.two_layer_posterior.measure import draw_target, planted
from solvable.models.two_layer_posterior.neuron_counts import LAW_EDGES
from solvable.models.two_layer_posterior.observer import Observer
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.parity_claims import PARITY_CLAIMS
from solvable.models.two_layer_posterior.predict import chance
from solvable.models.two_layer_posterior.sample_effect import effect_of_samples, posterior_of
from solvable.models.two_layer_posterior.system import system
from solvable.models.two_layer_posterior.target import HermiteTarget

QUICK = {"dimension": 4, "width_ratio": 6.0, "scaled_samples": 6.0, "steps": 100}


def record_of(setting, seed=0):
    return system.measure(CurseParameters(**QUICK | setting), random_stream("one", seed))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dimension": 2}, "from 3"),
        ({"degree": 2}, "whose overlap with every neuron of activation 'erf' is 0"),
        ({"degree": 3, "activation": "relu"}, "allowed: degrees that the activation has"),
        ({"activation": "gelu"}, "relu"),
        ({"kappa": 0.0}, "from 0.02"),
        ({"scaled_samples": 0.05}, "at least 4"),
        ({"width_ratio": 0.01}, "at least 2 hidden units"),
        ({"readout": "ntk"}, "mean-field"),
        ({"samples": 10}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        CurseParameters(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"steps": 100_000},
        {"dimension": 100, "width_ratio": 200.0, "scaled_samples": 1.0, "step": 0.1},
    ],
)
def test_replicates_that_would_take_long_are_not_measured(values):
    with pytest.raises(InvalidParameter, match=r"allowed for a measurement.*Lower steps"):
        system.measure(CurseParameters(**values), np.random.default_rng(0))


def test_the_predicted_law_counts_all_neurons():
    found = system.predict(CurseParameters(dimension=30, scaled_samples=25.0, steps=500))
    widths = np.diff(LAW_EDGES)
    law = np.array(found["neuron_law"])
    assert np.sum(law * widths) == pytest.approx(300, rel=0.02)
    beyond = LAW_EDGES[:-1] >= 3 / np.sqrt(30)
    assert np.sum((law * widths)[beyond]) == pytest.approx(found["outliers"], rel=0.1)
    # the law has one side peak, at the strength of specialised neurons
    peak = (LAW_EDGES[:-1] + 0.05)[beyond][np.argmax(law[beyond][4:]) + 4]
    assert peak == pytest.approx(found["outlier_overlap"], abs=0.15)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"kappa": 0.02, "scaled_samples": 200.0, "dimension": 12, "steps": 100}, "larger kappa"),
        ({"activation": "relu", "degree": 2}, "not odd"),
    ],
)
def test_missing_predictions_have_a_reason_and_no_claim_fails(setting, words):
    parameters = CurseParameters(**setting)
    found = system.predict(parameters)
    assert found["alignment"] is None
    assert words in found["no prediction"]
    assert found["energy"] > 0
    records = [record_of(setting | {"start": "both"}, seed) for seed in range(2)]
    point = Point(parameters.model_dump(), records, found)
    for verdict in system.verdicts([point]):
        assert verdict.status != "fails"


def test_samples_are_in_units_of_kappa_and_the_root_of_width_and_dimension():
    assert CurseParameters(scaled_samples=20.0).samples == round(20 * 0.5 * np.sqrt(1_000))
    mean_field = CurseParameters(scaled_samples=2.0, readout="mean-field", steps=500)
    assert mean_field.samples == round(2 * 0.5 * 100 * np.sqrt(10))


def test_the_target_is_a_normalised_polynomial_of_one_direction():
    target = HermiteTarget(7, 5, seed=3)
    X, y = target.sample(200_000, 0)
    assert np.linalg.norm(target.direction) == pytest.approx(1)
    assert np.mean(y) == pytest.approx(0, abs=0.03)
    assert np.mean(y**2) == pytest.approx(1, abs=0.4)
    np.testing.assert_allclose(y[:9], hermite_polynomials(X[:9] @ target.direction, 5)[5])
    few = target.sample(10, 0)[0]
    np.testing.assert_array_equal(few, X[:10])


def test_the_teacher_is_the_target_that_was_measured():
    setting = CurseParameters(**QUICK)
    arrays = system.teacher(setting, random_stream("one", 0))
    target = draw_target(setting, random_stream("one", 0))
    np.testing.assert_array_equal(arrays["direction"], target.direction)


@pytest.mark.parametrize(("activation", "degree"), [("erf", 3), ("tanh", 3), ("relu", 2)])
def test_observed_alignment_is_that_of_samples(activation, degree):
    setting = CurseParameters(**QUICK | {"activation": activation, "degree": degree})
    rng = np.random.default_rng(5)
    target = draw_target(setting, rng)
    X, y = target.sample(400_000, rng)
    posterior = Posterior(X, y, setting.kappa, setting.width**-0.5, activation)
    theta = 2.5 * rng.standard_normal((2, setting.width, setting.dimension + 1))
    theta[1] = planted(setting, target, theta[1], posterior.scale)
    seen = Observer(setting, target, posterior, rng)
    seen(theta)
    metrics, outputs = seen.metrics(), posterior.outputs(theta)
    products = outputs * y[:, None]
    error = products.std(axis=0) / np.sqrt(len(y))
    for k, name in enumerate(("alignment_prior", "alignment_planted")):
        assert abs(metrics[name] - products[:, k].mean()) < 4 * error[k]
    # the planted network contains specialised neurons among neurons of the prior
    assert metrics["alignment_planted"] > 0.4
    test_error = float(np.mean((outputs - y[:, None]) ** 2))
    assert metrics["test_error"] == pytest.approx(test_error, rel=0.15)
    u = theta[..., :4] @ target.direction / 2
    r = np.sum(theta[..., :4] ** 2, axis=2) / 4 - u**2
    out = np.abs(u) > 1.5
    assert metrics["outliers"] == pytest.approx(out.sum() / 2)
    assert metrics["outlier_rest"] == pytest.approx(r[out].mean())
    assert metrics["outlier_overlap"] == pytest.approx(np.abs(u[out]).mean())
    assert metrics["bulk_rest"] == pytest.approx(r[~out].mean())
    inside = np.abs(u) < LAW_EDGES[-1]
    assert np.sum(np.array(metrics["neuron_law"]) * 0.1) == pytest.approx(inside.sum() / 2)


def test_by_chance_is_the_prior():
    setting = CurseParameters(dimension=12, width_ratio=400.0, scaled_samples=0.1)
    rng = np.random.default_rng(6)
    target = draw_target(setting, rng)
    X, y = target.sample(setting.samples, rng)
    posterior = Posterior(X, y, setting.kappa, setting.width**-0.5, "erf")
    theta = rng.standard_normal((2, setting.width, 13))
    seen = Observer(setting, target, posterior, rng)
    for _ in range(60):
        seen(rng.standard_normal(theta.shape))
    metrics, guessed = seen.metrics(), chance(setting, {})
    assert guessed["alignment"] == 0
    for name in ("outliers", "outlier_overlap", "outlier_rest", "bulk_rest"):
        assert metrics[name] == pytest.approx(guessed[name], rel=0.15), name
    virials = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        X, y = target.sample(setting.samples, draw)
        small = Posterior(X, y, setting.kappa, setting.width**-0.5, "erf")
        state = draw.standard_normal((4, setting.width, 13))
        pull = small.gradient(state)[0]
        virials.append(np.mean((pull - state) * state))
    error = np.std(virials, ddof=1) / len(virials) ** 0.5
    assert abs(np.mean(virials) - (guessed["virial"] - 1)) < 4 * error


def test_the_effect_of_samples_has_mean_zero_and_explains_the_scatter():
    # (two-layer-posterior 21)
    setting = CurseParameters(dimension=8, scaled_samples=14.0, steps=200)
    rng = np.random.default_rng(8)
    effects = np.array(
        [effect_of_samples(setting, rng.standard_normal(setting.samples)) for _ in range(30)]
    )
    error = np.hypot(effects.std(ddof=1) / 30**0.5, posterior_of(setting).error)
    assert abs(effects.mean()) < 3.5 * error
    assert effects.std() > 0.03
    records = [system.measure(setting, random_stream("effect", k)) for k in range(8)]
    raw, adjusted = (
        np.array([record[name] for record in records])
        for name in ("alignment", "adjusted_alignment")
    )
    assert adjusted.std() < 0.7 * raw.std()


@pytest.mark.parametrize(
    "values", [{"activation": "relu", "degree": 2}, {"second_width_ratio": 4.0}]
)
def test_without_a_prediction_the_alignment_is_not_adjusted(values):
    assert record_of(values)["adjusted_alignment"] is None


def made(scaled_samples, alignment, predicted, *, gap=0.0, start="both", sizes=None, **metrics):
    """Build a point of six replicates with a scatter of a tenth."""
    values = {"start": start, "scaled_samples": scaled_samples, "dimension": 8} | (sizes or {})
    setting = CurseParameters(**values)
    base = {
        "outliers": 3.0,
        "outlier_overlap": 1.4,
        "outlier_rest": 0.3,
        "bulk_rest": 0.9,
        "second_outliers": None,
        "test_error": 1.2 - alignment,
        "virial": 1.0,
        "duration": 20.0,
        "effective_samples": 40.0,
        "step_error": 0.001,
    } | metrics
    records = []
    for factor in (0.9, 0.95, 1.0, 1.0, 1.05, 1.1):
        both = {
            "alignment_prior": alignment * factor - gap / 2,
            "alignment_planted": alignment * factor + gap / 2,
        }
        # a tenth of the scatter is left after the effect of the samples is subtracted
        alignments = {
            "alignment": alignment * factor,
            "adjusted_alignment": alignment * (0.9 + factor / 10),
        }
        records.append(base | both | alignments)
    names = ("outliers", "outlier_overlap", "outlier_rest", "bulk_rest", "test_error", "virial")
    prediction = {"alignment": predicted} | {name: base[name] for name in names}
    return Point(setting.model_dump(), records, prediction, setting)


def statuses(points):
    return {verdict.claim: verdict.status for verdict in system.verdicts(points)}


def test_claims_hold_of_what_is_predicted_and_fail_of_what_is_not():
    good = [made(8.0, 0.05, 0.05), made(14.0, 0.15, 0.15), made(20.0, 0.3, 0.3)]
    elsewhere = {
        "samples-grow-with-dimension",
        "samples-grow-with-context",
        *KERNELS,
        *PARITY,
    }
    for name, status in statuses(good).items():
        assert status == ("not testable" if name in elsewhere else "holds"), name
    wrong = [replace(p, prediction={**p.prediction, "alignment": 0.6}) for p in good]
    assert statuses(wrong)["alignment"] == "fails"
    for name, claim in (
        ("outliers", "outliers"),
        ("outlier_rest", "specialised-neurons-shrink"),
        ("outlier_overlap", "strength-of-specialised-neurons"),
        ("virial", "posterior-is-sampled"),
        ("test_error", "test-error"),
    ):
        off = [replace(p, prediction={**p.prediction, name: 2 * p.prediction[name]}) for p in good]
        assert statuses(off)[claim] == "fails"
        if name == "test_error":
            assert statuses(off)["error-falls-with-alignment"] == "fails"
    for row in system.power(good):
        if row.claim not in elsewhere:
            assert row.passes, row
            # at chance no alignment varies, and there is no slope
            slope = row.claim == "error-falls-with-alignment"
            assert row.chance == ("not testable" if slope else "fails"), row


@pytest.mark.parametrize(
    ("scaled_samples", "samples", "status"), [(7.0, 89, "not testable"), (8.0, 101, "holds")]
)
def test_errors_on_few_samples_of_a_cubic_target_are_not_tested(scaled_samples, samples, status):
    # E[y⁴] - 1 = 92
    point = made(scaled_samples, 0.05, 0.05)
    assert point.setting.samples == samples
    assert statuses([point])["test-error"] == status


KERNELS = {claim.name for claim in KERNEL_CLAIMS}
PARITY = {claim.name for claim in PARITY_CLAIMS}


def curves(exponent, deep):
    sizes = {"second_width_ratio": 5.0, "width_ratio": 5.0} if deep else {}
    made_points = []
    for d in (6, 12, 24):
        for p in (8.0, 12.0, 18.0):
            # A = 0.1 at P = 12 units times (d / 12)^(exponent - 1)
            alignment = 0.1 * (p / 12 * (d / 12) ** (1 - exponent)) ** 2
            expected = 0.1 * (p / 12) ** 2
            made_points.append(made(p, alignment, expected, sizes={"dimension": d} | sizes))
    return made_points


@pytest.mark.parametrize("deep", [False, True])
def test_samples_grow_with_the_dimension(deep):
    def verdict(points):
        chosen = (v for v in system.verdicts(points) if v.claim == "samples-grow-with-dimension")
        return next(chosen)

    found = verdict(curves(1.0, deep))
    assert (found.status, found.expected) == ("holds", pytest.approx(1.0, abs=0.02))
    assert found.measured == pytest.approx(1.0, abs=0.02)
    wrong = verdict(curves(1.35, deep))
    assert wrong.measured == pytest.approx(1.35, abs=0.03)
    assert wrong.status == "fails"


@pytest.mark.parametrize(
    "unsettled",
    [
        {"gap": 0.2},
        {"start": "prior"},
        {"effective_samples": 3.0},
        {"duration": 0.5},
        {"step_error": 0.3},
    ],
)
def test_a_run_out_of_equilibrium_tests_nothing(unsettled):
    points = [made(p, 0.02 * p, 0.01 * p, **unsettled) for p in (8.0, 14.0, 20.0)]
    assert not any(in_equilibrium(point) for point in points)
    verdicts = {verdict.claim: verdict for verdict in system.verdicts(points)}
    for name, verdict in verdicts.items():
        if name in ("posterior-is-sampled", "starts-agree") and "gap" in unsettled:
            continue
        assert verdict.status == "not testable", name
        if name in KERNELS | PARITY:
            continue
        assert UNSETTLED.split(":")[0] in verdict.reason or "in equilibrium" in verdict.reason


@pytest.mark.parametrize("factor", [0.9, 1.15])
def test_samples_to_learn_are_the_shift_of_the_curve(factor):
    def curve(p):
        return 0.2 * np.log(p / 6)

    def learning(points):
        return next(v for v in system.verdicts(points) if v.claim == "samples-to-learn")

    points = [made(p, curve(p / factor), curve(p)) for p in (8.0, 11.0, 16.0, 23.0)]
    assert learning(points).measured == pytest.approx(factor, rel=1e-3)
    nothing = [made(p, 0.01, curve(p)) for p in (8.0, 11.0, 16.0)]
    assert learning(nothing).status == "fails"
    assert "widen scaled_samples" in learning(points[:2]).reason


def test_claims_are_named_once_and_say_why():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.tolerance_reason for claim in CLAIMS)


def test_figures_are_drawn(monkeypatch):
    monkeypatch.setattr(system, "axis", replace(system.axis, resolution=3))
    settings = [
        QUICK | {"width_ratio": n, "scaled_samples": p} for n in (4.0, 9.0) for p in (4.0, 9.0)
    ]
    points = []
    for setting in settings:
        parameters = CurseParameters(**setting)
        records = [system.measure(parameters, random_stream("figure", s)) for s in range(2)]
        points.append(Point(parameters.model_dump(), records, system.predict(parameters)))
    figures = {figure.name: figure for figure in system.figures(points)}
    for name in ("alignment", "energy", "specialised", "law-of-overlaps", "errors", "starts"):
        assert any(found.startswith(name) for found in figures), (name, list(figures))
    energy = next(figure for name, figure in figures.items() if name.startswith("energy"))
    exact, held = energy.series[0], energy.series[1]
    assert (exact.y < held.y).all()
    specialised = next(figure for name, figure in figures.items() if name.startswith("specialised"))
    assert list(specialised.series[1].x) == pytest.approx([2.0, 3.0])
