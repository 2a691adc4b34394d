"""Claims on numbers estimated from several points: right theories hold, wrong ones fail."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.frame.estimates import Contrast, Estimate, Lead, Slope
from solvable.frame.points import Point
from solvable.frame.power import judged, power_row
from solvable.frame.statistics import jackknife_errors

RATIOS = (0.3, 0.5, 0.7, 1.3, 1.6, 2.0)


def overlap(ratio, estimator):
    """Return an overlap with a threshold at 1; the estimator `best` has the larger one."""
    return max(0.05, 1 - 1 / ratio) * (1.0 if estimator == "best" else 0.7)


def points_of(seed, replicates, *, scatter=0.02, wrong=1.0, uneven=0.5):
    """Return points of two estimators around a threshold; `wrong` is measured over predicted overlap."""
    rng = np.random.default_rng(seed)
    points = []
    for estimator in ("best", "plain"):
        for ratio in RATIOS:
            truth = overlap(ratio, estimator)
            spread = scatter * np.exp(uneven * rng.standard_normal())
            values = wrong * truth + spread * rng.standard_normal(replicates)
            parameters = {"ratio": ratio, "estimator": estimator}
            points.append(
                Point(
                    parameters,
                    [{"overlap": float(v)} for v in values],
                    {"overlap": truth, "threshold": 1.0, "level": 1.0},
                    SimpleNamespace(**parameters),
                )
            )
    return points


def falling(seed, replicates, *, scatter=0.03, exponent=-1.5):
    """Return two curves with errors n^exponent; the predicted exponent is -1.5."""
    rng = np.random.default_rng(seed)
    points = []
    for noise in (0.0, 1.0):
        for n in (100, 200, 400, 800):
            values = n**exponent * (1 + scatter * rng.standard_normal(replicates))
            parameters = {"samples": n, "noise": noise}
            metrics = [{"error": float(v)} for v in values]
            setting = SimpleNamespace(**parameters)
            points.append(Point(parameters, metrics, {"error": float(n) ** -1.5}, setting))
    return points


CONTRAST = Contrast(
    "contrast", "The overlap rises at the threshold.", "derived", metric="overlap",
    across="threshold", along="ratio", within=0.02, because="Finite size.",
)  # fmt: skip
LEAD = Lead(
    "lead", "One estimator leads.", "derived", metric="overlap", of={"estimator": "best"},
    over={"estimator": "plain"}, least=0.05, within=0.03, because="Finite size.", power=0.3,
)  # fmt: skip
SLOPE = Slope(
    "slope", "The error falls as predicted.", "derived", metric="error", along="samples",
    within=0.03, because="Finite size.",
)  # fmt: skip
SHARE = Estimate(
    "share", "The sum of overlaps is predicted.", "derived", within=0.05, because="Finite size.",
    estimate=lambda points: (
        float(sum(p.mean("overlap") for p in points) / sum(p.predicted("overlap") for p in points)),
        1.0,
    ),
    apart=("ratio",),
)  # fmt: skip
ROWS = [(CONTRAST, points_of), (LEAD, points_of), (SLOPE, falling), (SHARE, points_of)]


NO_GROUP = "the claim covers no group of points of this study"


@pytest.mark.parametrize(("row", "draw"), ROWS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("replicates", [2, 4])
def test_a_right_theory_fails_in_at_most_one_of_a_hundred_studies(row, draw, replicates):
    statuses = [row.verdict(draw(seed, replicates)).status for seed in range(200)]
    # At most 1 % of 200 seeds may fail: 2, plus three standard errors of that count.
    assert statuses.count("fails") <= 2 + 3 * 2**0.5


@pytest.mark.parametrize(("row", "draw"), ROWS, ids=lambda value: getattr(value, "name", ""))
def test_a_right_theory_mostly_holds_with_four_replicates(row, draw):
    statuses = [row.verdict(draw(seed, 4)).status for seed in range(100)]
    assert statuses.count("holds") > 80


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (CONTRAST, {"wrong": 1.5}),
        (LEAD, {"wrong": 2.0}),
        (SLOPE, {"exponent": -1.8}),
        (SHARE, {"wrong": 1.3}),
    ],
    ids=["contrast", "lead", "slope", "share"],
)
def test_a_wrong_theory_fails(row, wrong):
    draw = falling if row is SLOPE else points_of
    statuses = [row.verdict(draw(seed, 4, **wrong)).status for seed in range(50)]
    assert statuses.count("fails") >= 45


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_the_error_of_a_sum_of_means_is_that_of_its_terms(seed, replicates):
    rng = np.random.default_rng(seed)
    values = 1 + 0.1 * rng.standard_normal((5, replicates))
    weights = rng.uniform(0.5, 2, 5)
    means = values.mean(axis=1)
    without = [
        weights @ means + weights[k] * (np.delete(row, r).mean() - row.mean())
        for k, row in enumerate(values)
        for r in range(replicates)
    ]
    error = jackknife_errors(list(np.reshape(without, (5, replicates))))
    terms = weights**2 * values.var(axis=1, ddof=1) / replicates
    # Points of small variance get the common variance, so the sum of variances is a lower bound.
    assert error.standard_error >= np.sqrt(terms.sum()) * (1 - 1e-9)
    assert replicates - 1 <= error.degrees * (1 + 1e-9) <= 5 * (replicates - 1) * (1 + 1e-6)


def test_a_single_term_has_its_standard_error_and_degrees():
    values = np.array([1.0, 1.2, 0.9, 1.3])
    without = np.array([np.delete(values, r).mean() for r in range(4)])
    error = jackknife_errors([without])
    assert error.standard_error == pytest.approx(values.std(ddof=1) / 2)
    assert error.degrees == pytest.approx(3)


def test_points_that_do_not_enter_the_number_add_nothing():
    without = np.array([1.0, 1.1, 0.9])
    alone, both = jackknife_errors([without]), jackknife_errors([without, np.ones(3)])
    assert both.standard_error == pytest.approx(alone.standard_error)


@pytest.mark.parametrize(("row", "draw"), ROWS, ids=lambda value: getattr(value, "name", ""))
def test_one_replicate_is_not_enough(row, draw):
    verdict = row.verdict(draw(0, 1))
    assert verdict.status == "not testable"
    assert "1 more replicate" in verdict.reason


@pytest.mark.parametrize(("row", "draw"), ROWS, ids=lambda value: getattr(value, "name", ""))
def test_as_many_more_replicates_as_stated_are_enough(row, draw):
    verdict = row.verdict(draw(3, 3, scatter=0.12))
    assert verdict.status == "not testable"
    more = int(verdict.reason.split("at least ")[1].split()[0])
    # Three replicates estimate their variance within a factor of about 2: three times as many suffice.
    statuses = [row.verdict(draw(seed, 3 + 3 * more, scatter=0.12)).status for seed in range(6)]
    assert statuses.count("holds") >= 4


@pytest.mark.parametrize(("row", "draw"), ROWS, ids=lambda value: getattr(value, "name", ""))
def test_no_points_name_what_is_missing(row, draw):
    assert row.check([]).reason == (row.missing or NO_GROUP)


def test_points_without_the_metric_or_its_prediction_are_left_out():
    points = points_of(0, 4)
    for metrics in points[0].metrics:
        metrics.pop("overlap")
    points[1].prediction["overlap"] = None
    assert CONTRAST.verdict(points).status == "holds"
    assert "From 10 points" in CONTRAST.check(points).detail


def test_a_contrast_needs_points_on_both_sides():
    below = [point for point in points_of(0, 4) if point.parameters["ratio"] < 1]
    assert CONTRAST.check(below).reason == NO_GROUP


def test_a_contrast_that_falls_is_judged_by_its_size():
    points = points_of(0, 4)
    for point in points:
        point.prediction["overlap"] *= -1
        for metrics in point.metrics:
            metrics["overlap"] *= -1
    finding = CONTRAST.check(points)
    assert finding.expected > 0
    assert finding.holds


def test_a_lead_pairs_points_that_differ_in_the_choice_alone():
    points = [p for p in points_of(0, 4) if p.parameters != {"ratio": 2.0, "estimator": "plain"}]
    # Only at ratios 1.3 and 1.6 a pair has a predicted lead above 0.05.
    assert "From 4 points" in LEAD.check(points).detail


def test_a_slope_is_judged_for_each_curve():
    detail = SLOPE.check(falling(0, 4)).detail
    assert "Closest to failing of 2" in detail
    assert "noise = " in detail


def test_a_slope_needs_its_span():
    short = [point for point in falling(0, 4) if point.parameters["samples"] < 400]
    assert SLOPE.check(short).reason == NO_GROUP


def test_relative_tolerances_scale_with_the_expected_number():
    absolute, relative = (
        Contrast("c", "C.", "derived", metric="overlap", across="threshold", along="ratio",
                 within=0.1, because="Finite size.", relative=relative)
        for relative in (False, True)
    )  # fmt: skip
    points = points_of(0, 4)
    finding = relative.check(points)
    assert absolute.check(points).tolerance - finding.tolerance == pytest.approx(
        0.1 * (1 - finding.expected)
    )


def test_numbers_are_judged_against_others_by_group():
    points = falling(0, 4, scatter=0.001)
    truth = SLOPE.measured(points)
    assert len(truth) == 2
    finding = SLOPE.check_against(points, {name: value + 1 for name, value in truth.items()})
    assert finding.expected == pytest.approx(finding.measured + 1)
    assert not finding.holds


def test_power_is_measured_by_scaled_predictions():
    row = power_row(CONTRAST, points_of(0, 6, scatter=0.005), None, lambda *_: {"overlap": 0.0})
    assert row.status == "holds"
    assert row.noticed
    assert row.chance == "fails"


def test_a_verdict_states_the_error_that_it_would_have_noticed():
    points = points_of(0, 6, scatter=0.005)
    row = power_row(CONTRAST, points, None, lambda *_: {"overlap": 0.0})
    verdict = judged(CONTRAST, points, None, lambda *_: {"overlap": 0.0})
    assert verdict.notices == pytest.approx(row.notices)
    # At the smallest noticed error x, |m - (1 + x) e| equals the tolerance, to a twentieth.
    gap = verdict.tolerance - abs(verdict.measured - verdict.expected)
    assert verdict.notices * verdict.expected == pytest.approx(gap, rel=0.06)
    assert not verdict.weak
    assert verdict.outcome == "holds"


def test_a_claim_that_notices_large_errors_alone_holds_weakly():
    loose = replace(CONTRAST, within=0.2, power=0.9)
    verdict = judged(loose, points_of(0, 6, scatter=0.005), None, lambda *_: {})
    assert verdict.notices > 0.3
    assert verdict.outcome == "holds weakly"
    assert verdict.status == "holds"


@pytest.mark.parametrize("within", [0.0, -1.0])
def test_a_tolerance_of_zero_is_refused(within):
    with pytest.raises(InvalidParameter, match=r"within of claim 'c' is .*allowed: a number above"):
        Estimate("c", "C.", "derived", within=within, because="", estimate=lambda points: None)
