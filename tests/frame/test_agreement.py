"""Agreement claims: hold for a right theory, fail for a wrong one, not testable with too much noise."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.frame.agreement import Agreement, compare, overlap_scatter
from solvable.frame.claims import Finding
from solvable.frame.curves import Axis
from solvable.frame.parameters import Parameters
from solvable.frame.points import Point
from solvable.frame.statistics import pooled_errors
from solvable.frame.system import Preset, System

SIZES = (10, 20, 40, 80, 160, 320)


def points_of(seed, replicates, *, bias=1.0, scatter=0.05, uneven=0.0, entries=4):
    """Return points with lists of true means 1, 1/2, 1/3, ... at each size, and Gaussian scatter."""
    rng = np.random.default_rng(seed)
    truth = 1 / np.arange(1, entries + 1)
    points = []
    for size in SIZES:
        spread = scatter * truth * np.exp(uneven * rng.standard_normal(entries))
        draws = truth * bias + spread * rng.standard_normal((replicates, entries))
        metrics = [{"overlap": list(row)} for row in draws]
        points.append(
            Point(
                {"samples": size}, metrics, {"overlap": list(truth)}, SimpleNamespace(samples=size)
            )
        )
    return points


def row(**changes):
    settings = {"metric": "overlap", "source": "derived", "within": 0.04, "because": "Order 1/n."}
    settings |= {"relative": True, "entry": "feature", "missing": "raise samples"} | changes
    return Agreement("overlap", "The overlap is predicted.", **settings)


@pytest.mark.parametrize("uneven", [0.0, 0.5])
@pytest.mark.parametrize(("replicates", "scatter"), [(2, 0.01), (3, 0.015), (6, 0.03)])
def test_a_right_theory_holds_in_99_of_100_seeds(replicates, scatter, uneven):
    statuses = [
        row().verdict(points_of(seed, replicates, scatter=scatter, uneven=uneven)).status
        for seed in range(300)
    ]
    # At most 1 % of 300 seeds may fail: 3, plus three standard errors of that count.
    assert statuses.count("fails") <= 3 + 3 * 3**0.5
    assert statuses.count("holds") > 250


@pytest.mark.parametrize(("replicates", "scatter"), [(2, 0.01), (3, 0.015), (6, 0.03)])
def test_the_allowance_alone_protects_a_theory_at_the_edge_of_its_tolerance(replicates, scatter):
    statuses = [
        row(within=0.04).verdict(points_of(seed, replicates, bias=1.04, scatter=scatter)).status
        for seed in range(300)
    ]
    assert statuses.count("fails") <= 3 + 3 * 3**0.5


@pytest.mark.parametrize(("replicates", "scatter"), [(2, 0.01), (3, 0.015), (6, 0.03)])
def test_a_theory_wrong_by_the_stated_power_fails_in_95_of_100_seeds(replicates, scatter):
    claim = row(within=0.04, power=0.12)
    statuses = [
        claim.verdict(points_of(seed, replicates, bias=1 / 1.12, scatter=scatter)).status
        for seed in range(100)
    ]
    assert statuses.count("fails") >= 95


def test_what_scatters_more_than_the_tolerance_is_not_testable_and_says_what_is_missing():
    points = points_of(1, 3, scatter=0.4)
    verdict = row(within=0.04).verdict(points)
    assert verdict.status == "not testable"
    more = int(verdict.reason.split("at least ")[1].split()[0].replace(",", ""))
    assert 20 < more < 2_000
    enough = points_of(1, 3 + 2 * more, scatter=0.4)
    assert row(within=0.04).verdict(enough).status == "holds"


@pytest.mark.parametrize(("scatter", "within"), [(0.6, 0.03), (0.2, 0.01), (1.5, 0.05)])
def test_so_many_more_replicates_would_do(scatter, within):
    few = points_of(3, 4, scatter=scatter, entries=2)
    more = int(
        row(within=within).verdict(few).reason.split("at least ")[1].split()[0].replace(",", "")
    )
    verdicts = [
        row(within=within).verdict(points_of(s, 4 + 5 * more // 4, scatter=scatter, entries=2))
        for s in range(8)
    ]
    # The number of replicates follows from a scatter estimated within a fifth: take a quarter more.
    assert [verdict.status for verdict in verdicts].count("holds") >= 6
    assert (
        row(within=within).verdict(points_of(0, 4 + more // 3, scatter=scatter, entries=2)).status
        == "not testable"
    )


def test_the_number_of_missing_replicates_is_printed_however_large():
    reason = row(within=1e-7).verdict(points_of(1, 3, scatter=0.4)).reason
    assert float(reason.split("at least ")[1].split()[0].replace(",", "")) > 1e10


def test_one_seed_never_fails_what_two_hold():
    for seed in range(30):
        one = points_of(seed, 1, bias=1.08, scatter=0.02)
        assert row(within=0.04).verdict(one).status == "not testable"
        bound = row(
            metric=lambda point: point.values("overlap")[:, 0], expected=1.05, kind="at most"
        )
        assert bound.verdict(one).status == "not testable"


def test_a_claim_that_holds_has_at_most_three_times_the_stated_tolerance():
    for seed in range(20):
        verdict = row(within=0.1).verdict(points_of(seed, 3, scatter=0.1, uneven=1.0))
        assert verdict.status != "holds" or verdict.tolerance <= 0.3 + 1e-12


def test_what_is_beyond_its_own_allowance_fails_though_it_scatters_too_much_to_hold():
    points = points_of(1, 6, scatter=0.1, entries=1)
    assert row(within=0.01).verdict(points).status == "not testable"
    wrong = points_of(1, 6, scatter=0.1, entries=1, bias=2.0)
    assert row(within=0.01).verdict(wrong).status == "fails"


def test_scatter_that_goes_with_something_else_than_the_number():
    # Overlaps far above a transition are larger but scatter far less than overlaps at it.
    rng = np.random.default_rng(5)
    truth = np.array([0.03, 0.1, 0.5, 0.9, 0.97])
    spread = 0.3 * np.sqrt(truth) * (1 - truth) ** 1.5
    points = []
    for size in SIZES:
        metrics = [{"overlap": list(truth + spread * rng.standard_normal(5))} for _ in range(4)]
        points.append(Point({"samples": size}, metrics, {"overlap": list(truth)}))
    plain, shaped = (
        compare(row(relative=False, scatter=scatter), points).errors.standard_error
        for scatter in (None, overlap_scatter)
    )
    expected = np.tile(spread / 2, len(SIZES))
    assert np.median(shaped / expected) == pytest.approx(1, abs=0.15)
    top = expected < expected.max() / 3
    assert np.median(shaped[top] / expected[top]) < 1.3 < np.median(plain[top] / expected[top])


def test_counts_of_a_right_theory_seldom_fail_where_their_scatter_is_stated():
    # A count scatters as its square root, so large counts have the smaller relative scatter.
    expected = np.array([4.0, 10.0, 24.0, 50.0, 87.0, 125.0])
    spread = np.sqrt(expected * (1 - expected / 200))
    failures = {None: 0, binomial_scatter: 0}
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        draws = expected + spread * rng.standard_normal((2, expected.size))
        points = [
            Point({"samples": k}, [{"n": draws[0, k]}, {"n": draws[1, k]}], {"n": expected[k]})
            for k in range(expected.size)
        ]
        for scatter in failures:
            comparison = compare(row(metric="n", scatter=scatter), points)
            failures[scatter] += fails(comparison)
    # At most 1 % of 1,000 seeds may fail: 10, plus three standard errors of that count.
    assert failures[binomial_scatter] <= 10 + 3 * 10**0.5
    assert failures[None] > failures[binomial_scatter]


def binomial_scatter(cell):
    return (cell.expected * (1 - cell.expected / 200)) ** 0.5


def fails(comparison):
    finding = comparison.finding(None)
    return isinstance(finding, Finding) and not finding.holds


@pytest.mark.parametrize("replicates", [3, 6])
def test_noisy_lists_whose_entries_move_together_seldom_fail_by_chance(replicates):
    failures = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        shared = rng.standard_normal((replicates, 1))
        draws = 0.5 + 0.2 * (0.95 * shared + 0.3 * rng.standard_normal((replicates, 10)))
        metrics = [{"overlap": list(draw)} for draw in draws]
        points = [Point({"samples": 10}, metrics, {"overlap": [0.5] * 10})]
        failures += row(relative=False, within=0.02).verdict(points).status == "fails"
    # At most 1 % of 300 seeds may fail: 3, plus three standard errors of that count.
    assert failures <= 3 + 3 * 3**0.5


def test_one_replicate_is_not_testable():
    verdict = row().verdict(points_of(0, 1))
    assert verdict.status == "not testable"
    assert "1 more replicate" in verdict.reason


def test_what_never_scatters_is_judged_by_the_stated_tolerance_alone():
    points = points_of(0, 2, scatter=0.0, bias=1.03)
    verdict = row(within=0.04).verdict(points)
    assert (verdict.status, verdict.tolerance) == ("holds", pytest.approx(0.04))
    assert row(within=0.02).verdict(points).status == "fails"


def test_the_worst_entry_and_its_place_are_printed():
    points = points_of(0, 4, scatter=0.001)
    for metrics in points[2].metrics:
        metrics["overlap"][1] *= 1.02
    axis = Axis("samples", "samples n", point_name=lambda setting: f"n = {setting.samples}")
    verdict = row(within=0.04).verdict(points, axis)
    assert verdict.measured == pytest.approx(1.02, abs=0.003)
    assert "feature 2, n = 40" in verdict.reason


def test_entries_that_were_not_measured_or_not_predicted_are_left_out():
    points = points_of(0, 3)
    points[0].metrics[0]["overlap"][0] = None
    points[1].prediction["overlap"][1] = None
    comparison = compare(row(), points)
    assert len(comparison.cells) == len(SIZES) * 4 - 2


def test_where_keeps_cells_and_missing_says_what_would_test():
    claim = row(where=lambda cell: cell.setting.samples > 100 and cell.expected > 0.4)
    assert len(compare(claim, points_of(0, 3)).cells) == 2 * 2
    nowhere = row(where=lambda cell: False).verdict(points_of(0, 3))
    assert (nowhere.status, nowhere.reason) == ("not testable", "raise samples")


def test_one_sided_rows_fail_on_their_side_alone():
    high, low = (points_of(0, 4, bias=bias, scatter=0.01) for bias in (1.5, 0.5))
    assert row(kind="at least").verdict(high).status == "holds"
    assert row(kind="at least").verdict(low).status == "fails"
    assert row(kind="at most").verdict(high).status == "fails"
    assert row(kind="at most").verdict(low).status == "holds"


def test_functions_of_the_point_are_measured_and_expected():
    claim = row(
        metric=lambda point: 1 - point.values("overlap"),
        expected=lambda point: 1 - point.predicted("overlap"),
        relative=False,
        within=0.02,
    )
    assert claim.verdict(points_of(0, 6, scatter=0.01)).status == "holds"
    assert claim.verdict(points_of(0, 6, scatter=0.01, bias=1.1)).status == "fails"


def test_pairs_along_a_parameter_are_cells():
    points = [
        replace(point, parameters={"samples": point.parameters["samples"], "kind": kind})
        for kind in "ab"
        for point in points_of(2, 4, scatter=0.001)
    ]
    for point in points:  # the overlap halves from each size to the next
        factor = 0.5 ** SIZES.index(point.parameters["samples"])
        for metrics in point.metrics:
            metrics["overlap"] = [factor * value for value in metrics["overlap"]]
    claim = row(
        pairs="samples",
        within=0.02,
        expected=0.5,
        metric=lambda point: point.other.mean("overlap") / point.values("overlap"),
    )
    comparison = compare(claim, points[::-1])
    assert len(comparison.cells) == 2 * (len(SIZES) - 1) * 4
    assert claim.verdict(points[::-1]).status == "holds"
    # A learner without information has the same overlap at both sizes.
    system = noise_system(claims=[claim], chance=lambda *_: {"overlap": [0.1] * 4})
    (power,) = system.power(points)
    assert (power.chance, power.noticed, power.passes) == ("fails", True, True)


def test_a_function_that_expects_zero_shows_its_power():
    claim = row(
        metric=lambda point: point.values("overlap") - point.predicted("overlap"),
        expected=0.0,
        relative=False,
        within=0.02,
    )
    system = noise_system(claims=[claim], chance=lambda *_: {"overlap": [0.05] * 4})
    (power,) = system.power(points_of(0, 6, scatter=0.01))
    assert power.status == "holds"
    # The search tries errors of 3 % and 5 %, then bisects between them to within a twentieth.
    for smallest in (power.fails_from_above, power.fails_from_below):
        assert 0.03 < smallest <= 0.05 * (1 + 1e-9)
    assert power.passes


def test_power_and_verdict_of_a_claim_have_one_status():
    wide = row(within=0.9, relative=False, power=0.02)  # holds with any prediction
    points = points_of(0, 6, scatter=0.01)
    system = noise_system(claims=[row(), wide], chance=lambda *_: {"overlap": [0.05] * 4})
    verdicts, powers = system.verdicts(points), system.power(points)
    assert [one.status for one in powers] == [one.status for one in verdicts]
    assert verdicts[1].status == "not testable"
    assert (powers[1].powerless, powers[1].passes) == (True, False)


@pytest.mark.parametrize("power", [0.0, -0.1, 0.95, 3.0, np.nan])
def test_a_power_that_nothing_can_reach_is_refused(power):
    with pytest.raises(InvalidParameter, match=r"allowed: a number above 0, at most 0\.9"):
        row(power=power)


def test_names_that_nothing_returns_are_refused():
    points = points_of(0, 3)
    with pytest.raises(
        InvalidParameter, match=r"'overlop', which measure does not return; allowed"
    ):
        row(metric="overlop", missing="").verdict(points)
    with pytest.raises(InvalidParameter, match="which predict does not return"):
        row(expected="overlop", missing="").verdict(points)


def test_metrics_of_other_settings_are_missing_and_named():
    verdict = row(metric="error", missing="set target=hidden").verdict(points_of(0, 3))
    assert verdict.status == "not testable"
    assert verdict.reason == "set target=hidden (none has the metric 'error' here)"


def test_zero_that_is_predicted_and_measured_agrees():
    points = [Point({"samples": 10}, [{"rank": 0.0}] * 3, {"rank": 0.0})]
    assert row(metric="rank", relative=False).verdict(points).status == "holds"


def test_nothing_is_relative_to_zero():
    points = points_of(0, 3)
    for point in points:
        point.prediction["overlap"][3] = 0.0
    assert len(compare(row(), points).cells) == len(SIZES) * 3
    assert len(compare(row(relative=False), points).cells) == len(SIZES) * 4


def test_a_metric_that_only_some_points_have_is_judged_at_those():
    points = points_of(0, 3)
    points[0] = replace(points[0], prediction={"another": 1.0})
    points[1] = replace(points[1], metrics=[{"another": 1.0}] * 3)
    assert len(compare(row(), points).cells) == (len(SIZES) - 2) * 4


def test_rows_that_say_too_little_are_refused():
    with pytest.raises(InvalidParameter, match="allowed: a number above 0"):
        row(within=0.0)
    with pytest.raises(InvalidParameter, match="has no expected value"):
        row(metric=lambda point: point.values("overlap"))


def test_pooled_errors_of_equal_variances_are_never_far_too_small():
    rng = np.random.default_rng(0)
    errors = pooled_errors([rng.standard_normal(3) for _ in range(2_000)], np.ones(2_000))
    # sigma = 1: the bias-corrected geometric mean has an error of a few per cent at 4,000 degrees.
    assert errors.variance.min() == pytest.approx(1.0, rel=0.1)
    assert errors.total == 4_000
    assert errors.degrees.min() > 20


def test_pooled_errors_of_noisy_cells_are_their_own():
    rng = np.random.default_rng(1)
    values = [s * rng.standard_normal(50) for s in (1.0,) * 20 + (30.0,)]
    errors = pooled_errors(values, np.ones(21))
    assert errors.standard_error[-1] == pytest.approx(30 / 50**0.5, rel=0.3)
    # One noisy cell of 21 raises the common variance only by the factor 30^(2/21).
    assert errors.variance[:20].min() < 2.0


class NoiseParameters(Parameters):
    samples: int = 10


def measure(parameters, rng):
    return {"overlap": [0.8 + 0.01 * rng.standard_normal(), 0.5 + 0.01 * rng.standard_normal()]}


def predict(parameters):
    return {"overlap": [0.8, 0.5]}


def chance(parameters, prediction):
    return {"overlap": [0.05, 0.05]}


def noise_system(**parts):
    data = {"name": "noise", "title": "Noise", "version": "1", "parameters": NoiseParameters}
    data |= {"measure": measure, "predict": predict, "claims": [row()], "chance": chance}
    return System(**data | {"presets": {"quick": Preset("q", {"samples": [10, 20]})}} | parts)


def test_what_would_hold_with_a_wrong_prediction_or_by_chance_is_not_testable():
    points = [Point({"samples": 10}, [{"overlap": [0.8, 0.5]}] * 6, {"overlap": [0.8, 0.5]})]

    def verdict(within, **parts):
        return noise_system(claims=[row(within=within)], **parts).verdicts(points)[0]

    assert verdict(0.04).status == "holds"
    wide, guessed = verdict(0.3), verdict(0.04, chance=lambda *_: {"overlap": [0.8, 0.5]})
    assert {wide.status, guessed.status} == {"not testable"}
    assert "a prediction wrong by 10 % would also pass" in wide.reason
    assert "a learner at chance level would also pass" in guessed.reason
    # A claim that fails is reported as failed, even without power.
    far = [Point({"samples": 10}, [{"overlap": [0.8, 0.1]}] * 6, {"overlap": [0.8, 0.5]})]
    assert noise_system(claims=[row(within=0.3)]).verdicts(far)[0].status == "fails"


def test_power_has_the_smallest_error_at_which_a_claim_fails():
    system = noise_system()
    rng = np.random.default_rng(3)
    setting = NoiseParameters()
    points = [
        Point({"samples": 10}, [measure(setting, rng) for _ in range(6)], predict(setting))
        for _ in range(3)
    ]
    (power,) = system.power(points)
    assert (power.status, power.chance) == ("holds", "fails")
    # With a tolerance of 4 % and standard errors of 0.5 %, an error of 2 % passes and one of 10 % fails.
    assert 0.03 <= power.fails_from_above <= 0.1
    assert 0.03 <= power.fails_from_below <= 0.1
    assert power.noticed
    assert power.notices == min(power.fails_from_above, power.fails_from_below)
    (without,) = noise_system(chance=lambda parameters, prediction: {}).power(points)
    assert without.chance == "no chance learner"


def test_tolerances_that_vanish_and_functions_that_make_no_claim_are_left_out():
    points = points_of(0, 3)
    some = row(within=lambda cell: 0.04 if cell.entry else 0.0)
    assert len(compare(some, points).cells) == len(SIZES) * 3
    none = row(within=lambda cell: 0.0).verdict(points)
    assert (none.status, none.reason) == (
        "not testable",
        "the stated tolerance is above 0 at none of 24 places",
    )
    silent = row(metric=lambda point: None, expected=1.0).verdict(points)
    assert (silent.status, silent.reason) == ("not testable", "raise samples")


def test_lists_that_do_not_fit_are_refused():
    points = points_of(0, 3)
    with pytest.raises(InvalidParameter, match="4 measured numbers with 3 expected ones"):
        row(expected=lambda point: [1.0, 2.0, 3.0]).verdict(points)
    points[0].metrics[1]["overlap"].append(1.0)
    with pytest.raises(InvalidData, match="has 4, 5, 4 entries"):
        row().verdict(points)


def test_a_kind_and_an_axis_and_a_module_that_are_not_there_are_refused():
    with pytest.raises(InvalidParameter, match="kind is 'equals'; allowed"):
        row(kind="equals")
    with pytest.raises(InvalidParameter, match="axis is 'sample'; allowed"):
        noise_system(axis=Axis("sample", "samples n"))
    with pytest.raises(InvalidParameter, match="no 'measure' in"):
        noise_system(measure="nowhere:measure").measure(NoiseParameters(), None)


def test_what_records_of_another_version_lack_is_not_a_number() -> None:
    point = Point({}, [{"old": 1.0}, {"old": 2.0}], {"old": 1.0}, former=True)
    assert np.isnan(point.values("new")).tolist() == [True, True]
    assert np.isnan(point.predicted("new"))
    with pytest.raises(KeyError):
        replace(point, former=False).values("new")
