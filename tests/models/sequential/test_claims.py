"""Claims of `sequential-recovery`: each can hold, fail, and be not testable with a reason."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

from solvable.frame import registry
from solvable.frame.conditions import covers
from solvable.models.sequential.claims import CLAIMS
from solvable.models.sequential.crossings import crossings
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import bulk_density
from solvable.models.sequential.system import system
from solvable.systems.base import Point

pytestmark = pytest.mark.usefixtures("few")

BY_NAME = {claim.name: claim for claim in CLAIMS}

predict = lru_cache(maxsize=None)(system.predict)
"""Predictions, which no test changes and many tests share."""

HERMITE = {"dimension": 40, "kernel_samples": 13120, "spectrum_samples": 10**6}
GAUSSIAN = {
    "inputs": "gaussian",
    "dimension": 24,
    "features": 16,
    "decay": 1.0,
    "label_map": "identity",
    "signs": "positive",
}


def perfect(setting, **changes):
    """Point whose replicates equal the prediction except for the given changes."""
    parameters = SequentialParameters(**setting)
    prediction = predict(parameters)
    metrics = dict(prediction)
    metrics["bulk_edges"] = prediction["bulk_edges"]
    for name in ("polynomial_kernel", "rbf_kernel", "random_features"):
        limit = parameters.kernel_samples // (2 if name == "rbf_kernel" else 1)
        key = f"{name}_normalised_mse"
        metrics[key] = 0.95 if parameters.samples <= limit else None
    for name, change in changes.items():
        metrics[name] = change(metrics[name])
    return Point(parameters.model_dump(), [metrics] * 3, prediction, parameters)


def scaled(factor):
    def change(value):
        if isinstance(value, list):
            return [None if entry is None else entry * factor for entry in value]
        return value * factor

    return change


def points(base, ratios, total, **changes):
    return [perfect(base | {"samples": round(ratio * total)}, **changes) for ratio in ratios]


def hermite(**changes):
    return points(HERMITE, (2, 4, 8, 16, 32, 64, 128, 256), 820, **changes)


def gaussian(**changes):
    ratios = 2.0 ** np.arange(3, 11)
    second = changes.pop("second_layer", "least-squares")
    return points(GAUSSIAN | {"second_layer": second}, ratios, 300, **changes)


def dimensions(**changes):
    base = {"inputs": "gaussian", "dimension": 16, "features": 5}
    settings = [base | {"decay": decay} for decay in (0.0, 0.4, 0.8)]
    return [p for s in settings for p in points(s, 2.0 ** np.arange(1, 7), 136, **changes)]


def thresholds(**changes):
    base = {"degree": 1, "features": 8, "decay": 0.0}
    return [
        perfect(base | {"dimension": d, "samples": n}, **changes)
        for d, n in ((100, 380), (200, 760), (400, 1510))
    ]


def slow_decay(**changes):
    base = {"inputs": "gaussian", "dimension": 20, "features": 40}
    return points(base, (8, 12, 18, 27, 40), 210, **changes)


def staircase(**changes):
    base = {"inputs": "gaussian", "dimension": 30, "features": 64}
    return points(base, 8 * 2 ** (np.arange(9) / 2), 465, **changes)


def whole(**changes):
    """Point whose eigenvalues are at equal steps of the predicted distribution of the bulk."""
    setting = {"dimension": 40, "samples": 64 * 820, "spectrum_samples": 10**6}
    density = bulk_density(SequentialParameters(**setting))
    steps = np.diff(density.x) * (density.density[1:] + density.density[:-1]) / 2
    below = np.append(0, np.cumsum(steps))
    levels = (np.arange(820) + 0.5) / 820
    spectrum = np.interp(levels, below / below[-1], density.x).tolist()
    change = changes.get("spectrum", lambda values: values)
    return [perfect(setting, spectrum=lambda _: change(spectrum))]


def plain(**changes):
    setting = {"dimension": 20, "features": 3, "correction": "none"}
    return points(setting, (20, 40), 210, **changes)


CASES = {
    "overlap-of-plain-operators": (plain, {"squared_overlap": scaled(0.8)}),
    "overlap-of-each-feature": (hermite, {"squared_overlap": scaled(0.9)}),
    "mean-overlap": (hermite, {"mean_squared_overlap": scaled(0.95)}),
    "loss-far-above-threshold": (
        hermite,
        {"squared_overlap": lambda v: [1 - 1.3 * (1 - c) for c in v]},
    ),
    "least-squares-error": (hermite, {"normalised_mse": scaled(1.1)}),
    "outlier-positions": (hermite, {"eigenvalues": scaled(1.1)}),
    "bulk-edges": (hermite, {"bulk_edges": scaled(1.15)}),
    "bulk-density": (whole, {"spectrum": scaled(1.2)}),
    "kernel-sees-nothing": (hermite, {"polynomial_kernel_normalised_mse": lambda v: v and 0.8}),
    "kernel-ceiling": (hermite, {"rbf_kernel_normalised_mse": lambda v: v and 0.5}),
    "error-exponent": (gaussian, {}),
    "threshold-exponent": (gaussian, {}),
    "in-sample-error": (
        lambda **c: gaussian(second_layer="in-sample", **c),
        {"normalised_mse": scaled(0.85)},
    ),
    "kernel-head-error": (
        lambda **c: points(HERMITE | {"second_layer": "kernel-ridge"}, (32,), 820, **c),
        {"normalised_mse": scaled(1.3)},
    ),
    "shrinkage-error": (
        lambda **c: gaussian(second_layer="shrinkage", **c),
        {"normalised_mse": scaled(1.2)},
    ),
    "neighbour-mixing": (gaussian, {"neighbour_mixing": scaled(2.5)}),
    "transition-sharpens": (thresholds, {}),
    "first-feature-is-earlier": (dimensions, {}),
    "window-is-wider": (dimensions, {}),
    "jump-without-decay": (dimensions, {}),
    "staircase-exponent": (staircase, {}),
    "loss-exponent": (gaussian, {}),
    "learned-energy-exponent": (slow_decay, {"normalised_mse": lambda v: 1 - (1 - v) ** 0.6}),
    "tail-is-too-low": (gaussian, {"normalised_mse": scaled(0.6)}),
    "loss-outside-span": (gaussian, {"loss_outside_span": scaled(1.4)}),
    "loss-inside-span": (gaussian, {"loss_inside_span": scaled(1.5)}),
    "davis-kahan-exponent": (gaussian, {}),
}


# Predictions of plain operators are drawn and take seconds; only one of each kind is a quick test.
DEAR = {
    "learned-energy-exponent",
    "staircase-exponent",
    "neighbour-mixing",
    "shrinkage-error",
    "in-sample-error",
}


def often(names):
    """Names of the settings; those with slow predictions are marked as slow tests."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in names]


@pytest.mark.parametrize("name", often(sorted(CASES)))
def test_a_study_that_is_as_predicted_holds(name):
    make, _ = CASES[name]
    verdict = BY_NAME[name].verdict(make())
    assert verdict.status == "holds", verdict


@pytest.mark.parametrize("name", often(sorted(name for name, case in CASES.items() if case[1])))
def test_a_study_that_is_not_fails(name):
    make, changes = CASES[name]
    verdict = BY_NAME[name].verdict(make(**changes))
    assert verdict.status == "fails", verdict


def test_the_exponents_can_fail():
    study = gaussian()
    for point in study:
        share = point.parameters["samples"] / study[0].parameters["samples"]
        for metrics in point.metrics:
            metrics["normalised_mse"] *= share**0.1
            ranks = np.arange(1, 17)
            crossing = 465 * 16 * ranks**1.0
            metrics["squared_overlap"] = list(
                point.parameters["samples"] / (point.parameters["samples"] + crossing)
            )
    assert BY_NAME["error-exponent"].verdict(study).status == "fails"
    found = BY_NAME["threshold-exponent"].verdict(study)
    assert found.status == "fails"
    assert found.measured == pytest.approx(1.0, abs=0.05)
    assert 1.4 < found.expected < 2.1


@pytest.mark.parametrize(("factor", "status"), [(1.0, "holds"), (0.8, "fails"), (1.3, "fails")])
def test_overlaps_around_the_threshold(factor, status):
    setting = GAUSSIAN | {"features": 16}
    n = system.predict(SequentialParameters(**setting))["threshold_samples"][6]
    overlaps = {"squared_overlap": lambda v: [factor * x for x in v]}
    point = perfect(setting | {"samples": round(2 * n)}, **overlaps)
    assert BY_NAME["overlap-around-threshold"].verdict([point]).status == status


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_every_claim_says_when_it_cannot_be_tested(claim):
    # One small point with every feature near its threshold: no claim of large n/D applies.
    setting = {"dimension": 20, "features": 2, "samples": 2000, "second_layer": "shrinkage"}
    verdict = claim.verdict([perfect(setting)])
    if verdict.status == "not testable":
        assert len(verdict.reason) > 20
    else:
        assert claim.name == "overlap-around-threshold"


def test_every_claim_is_tested_here():
    assert set(CASES) | {"overlap-around-threshold"} == set(BY_NAME)


def test_crossings_are_interpolated_in_the_logarithm():
    samples = np.array([100.0, 1000.0, 10_000.0])
    overlaps = np.array([[0.6, 0.1, 0.1], [0.7, 0.4, 0.2], [0.9, 0.6, 0.3]])
    found = crossings(samples, overlaps)
    assert np.isnan(found[[0, 2]]).all()
    assert found[1] == pytest.approx(10**3.5)


def in_sample():
    return gaussian(second_layer="in-sample")


def shrunk():
    return gaussian(second_layer="shrinkage")


@pytest.mark.parametrize(
    "make",
    [
        hermite,
        whole,
        gaussian,
        pytest.param(in_sample, marks=pytest.mark.slow),
        pytest.param(shrunk, marks=pytest.mark.slow),
    ],
)
def test_every_row_of_agreement_notices_a_wrong_prediction(make):
    """Without scatter, a prediction wrong by the stated power fails in at least one direction."""
    rows = {row.claim: row for row in system.power(make())}
    for name, row in rows.items():
        if row.status == "not testable":
            continue
        assert row.status == "holds", name
        # The slope of the thresholds has no value for chance, since chance overlaps never pass 0.5.
        assert row.noticed, name
        assert row.chance != "holds", name


@pytest.mark.parametrize(("degree", "judged"), [(1, False), (2, True)])
def test_kernels_learn_linear_features(degree, judged):
    """At d = 40, degree 1 and 1,300 samples a polynomial kernel had an error of 0.27."""
    claims = registry.load("sequential-recovery").claims
    claim = next(claim for claim in claims if claim.name == "kernel-sees-nothing")
    setting = SimpleNamespace(dimension=40, degree=degree)
    cell = SimpleNamespace(setting=setting, point=SimpleNamespace(mean=lambda _: 0.3))
    assert covers(claim.where, cell) is judged


def test_points_without_spectra_have_no_density_to_compare():
    verdict = BY_NAME["bulk-density"].verdict([perfect({"dimension": 40, "samples": 64 * 820})])
    assert verdict.status == "not testable"
    assert "spectrum_samples" in str(verdict.reason)
