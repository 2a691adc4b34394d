"""Interval of the named model's error: choice among methods, and training rows that folds share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvable.data import load
from solvable.fitting.intervals import Interval, mean_interval, wilson_interval
from solvable.learn import Request, learn, words
from solvable.learn.fold_fits import Measured
from solvable.learn.metrics import best_on_other_folds
from solvable.learn.named_error import (
    inflation_of,
    lower_end_with_all_rows,
    named_error,
    of_picked,
    smallest_on_other_folds,
    widened,
)
from solvable.learn.results import CurvePoint, Expected, MethodScore, Outlook
from solvable.learn.scoring import Losses, marked, outlook_of

ROWS, FOLDS = 200, 5
folds = np.arange(ROWS) % FOLDS


def fits_of(predicted, key="ridge"):
    return [Measured(key, f, int(np.sum(folds != f)), predicted[folds == f]) for f in range(FOLDS)]


def scores_of(*keys):
    scores = [MethodScore(key, key, "", 0.1, 0.05, 0.2, ROWS, 160, 0.0) for key in keys]
    return marked(scores, keys[0], set())


def test_the_smallest_of_equal_errors_is_too_small_and_the_nested_one_is_not():
    # Seven methods with independent normal losses of mean 1 and variance 1: the smallest mean is
    # 1 - 1.3522 / sqrt(n) on average, by the expected maximum of seven normal variables.
    rng = np.random.default_rng(0)
    smallest, nested = [], []
    for _ in range(1000):
        known = {f"m{i}": rows for i, rows in enumerate(1 + rng.standard_normal((7, ROWS)))}
        smallest.append(min(rows.mean() for rows in known.values()))
        nested.append(of_picked(known, folds, smallest_on_other_folds(known, folds)).mean())
    error = 1 / math.sqrt(ROWS * 1000)
    assert np.mean(smallest) == pytest.approx(1 - 1.3522 / math.sqrt(ROWS), abs=4 * error)
    assert np.mean(nested) == pytest.approx(1, abs=4 * error)


def test_folds_that_share_training_rows_widen_the_interval_by_nadeau_and_bengio():
    rng = np.random.default_rng(1)
    wrong = (rng.random(ROWS) < 0.2).astype(float)
    y = np.zeros(ROWS)
    losses = Losses(y, folds, regression=False)
    # Five folds: 1 + K n_test / n_train = 1 + 5 / 4.
    assert inflation_of(fits_of(wrong), losses) == pytest.approx(2.25)
    found = losses.interval(wrong, inflation=4.0)
    assert found == pytest.approx(wilson_interval(int(wrong.sum() // 4), ROWS // 4), abs=0.01)
    plain = mean_interval(rng.exponential(size=ROWS), positive=True)
    rng = np.random.default_rng(1)
    rng.random(ROWS)
    wide = mean_interval(rng.exponential(size=ROWS), positive=True, inflation=2.25)
    # For positive values the distances of the logarithms are in proportion to the standard error.
    assert math.log(wide.upper / wide.value) == pytest.approx(
        1.5 * math.log(plain.upper / plain.value)
    )
    assert math.log(wide.value / wide.lower) == pytest.approx(
        1.5 * math.log(plain.value / plain.lower)
    )


@pytest.mark.parametrize("metric", [None, "accuracy", "balanced-accuracy"])
def test_one_method_has_the_widened_interval_of_its_own_losses(metric):
    y = np.arange(ROWS) % 2
    wrong = np.random.default_rng(2).random(ROWS) < 0.15
    losses = Losses(y, folds, regression=False)
    measured = {
        "ridge": fits_of(np.where(wrong, 1 - y, y)),
        "constant": fits_of(np.zeros(ROWS), "constant"),
        "trees": [Measured("trees", 0, 160, np.empty(0), failure="no")],
    }
    found = named_error(scores_of("ridge", "constant"), metric, measured, losses)
    expected = losses.interval(wrong.astype(float), inflation=2.25)
    assert found == pytest.approx(expected)
    constant = named_error(scores_of("constant", "ridge"), metric, measured, losses)
    assert constant == losses.interval((y > 0).astype(float))


def test_the_best_on_other_folds_by_a_metric_is_that_by_the_error():
    rng = np.random.default_rng(3)
    y = np.arange(ROWS) % 2
    wrong = {key: rng.random(ROWS) < 0.2 for key in ("ridge", "rbf", "trees")}
    measured = {key: fits_of(np.where(bad, 1 - y, y), key) for key, bad in wrong.items()}
    expected = smallest_on_other_folds({k: v.astype(float) for k, v in wrong.items()}, folds)
    assert best_on_other_folds("accuracy", measured, y, folds) == expected


def test_a_forecast_is_no_narrower_than_the_measured_error():
    points = (Expected(1.0, 100, 0.1, 0.09, 0.11), Expected(2.0, 200, 0.05, 0.01, 0.2))
    outlook = Outlook((), points, ((100.0, 0.1, 0.09, 0.11),))
    found = widened(outlook, Interval(0.2, 0.16, 0.3), top=1.0)
    assert [found.expected[0].lower, found.expected[0].upper] == pytest.approx([0.08, 0.15])
    assert found.expected[1] == points[1]
    assert found.band[0] == pytest.approx((100, 0.1, 0.08, 0.15))
    assert widened(outlook, Interval(0.0, 0.0, 0.1), top=1.0) == outlook


def test_the_result_states_the_wider_interval():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((90, 4))
    found = learn(load(X, X[:, 0] + 0.5 * rng.standard_normal(90)), Request(folds=3))
    low, high = found.interval
    chosen = found.chosen
    assert low < chosen.lower < chosen.error < chosen.upper < high
    assert found.notes["error"] == pytest.approx([chosen.error, low, high])
    assert found.to_dict()["interval"] == pytest.approx([low, high])


def test_squared_errors_without_a_finite_mean_have_no_interval_and_no_forecast():
    # Pareto noise of index 1.8: its square has index 0.9, so its mean is infinite.
    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 3))
    noise = rng.random(100) ** (-1 / 1.8) * rng.choice([-1, 1], 100)
    found = learn(load(X, 30 * X[:, 0] + noise), Request(folds=3))
    assert found.chosen.key != "constant"
    assert found.interval == (0.0, math.inf)
    assert found.to_dict()["interval"] == [0.0, None]
    assert found.notes["error"][2] is None
    sentence = words.headline(found)
    assert "There is no interval" in sentence
    assert "95 %" not in sentence
    assert "--metric mae depends less on such rows" in sentence
    assert not found.outlook.expected
    assert "mean over many new rows" in words.outlook_sentence(found)


def curve_of_law(law, factors=(1, 1, 1, 1, 1)):
    return tuple(CurvePoint(n, tuple(f * law(n) for f in factors)) for n in (50, 80, 160))


def test_the_lower_end_falls_with_the_rows_by_the_power_law_through_the_curve():
    error = Interval(0.3, 0.2, 0.5)
    power = curve_of_law(lambda n: 0.3 * (n / 160) ** -0.7, (0.8, 0.9, 1, 1.1, 1.2))
    found = lower_end_with_all_rows(error, power, 200, 0.9)
    assert found == pytest.approx(0.2 * (200 / 160) ** -0.7)
    # Above a constant the fall to all rows is smaller than that of the power law.
    offset = curve_of_law(lambda n: 0.1 + 0.2 * (n / 160) ** -0.7)
    true = 0.2 * (0.1 + 0.2 * 1.25**-0.7) / 0.3
    assert 0.9 * true < lower_end_with_all_rows(error, offset, 200, 0.9) < true
    # A curve that rises, has one point or an error of zero, or all rows in each fold, lowers nothing.
    rising = curve_of_law(lambda n: 0.3 * n / 160)
    for curve, rows in ((rising, 200), (power[-1:], 200), (power, 160)):
        assert lower_end_with_all_rows(error, curve, rows, 0.9) == pytest.approx(0.2)
    zero = curve_of_law(lambda n: 0.0)
    assert lower_end_with_all_rows(error, zero, 200, 0.9) == pytest.approx(0.2)


def test_folds_that_disagree_on_the_fall_lower_the_end_further():
    # The last point has errors a, b, b, b, b, the others are equal: jackknife of log of the sum of five.
    first, second = CurvePoint(80, (0.3,) * 5), CurvePoint(160, (0.2, 0.3, 0.3, 0.3, 0.3))
    found = lower_end_with_all_rows(Interval(0.3, 0.2, 0.5), (first, second), 200, 0.9)
    reach = math.log(200 / 160) / math.log(2)
    without = np.log([1.2 / 1.2, *[1.2 / 1.1] * 4])
    half = 1.6448536 * reach * math.sqrt(0.8 * np.sum((without - without.mean()) ** 2))
    distance = math.sqrt(math.log(1.5) ** 2 + half**2)
    assert found == pytest.approx(0.3 * math.exp(-reach * math.log(1.5 / 1.4) - distance))


def test_a_tail_needs_eighty_rows_and_errors_that_are_not_rates():
    rng = np.random.default_rng(6)
    squares = rng.standard_t(3, size=100) ** 2
    for regression, rows, some in ((True, 100, True), (True, 79, False), (False, 100, False)):
        losses = Losses(squares[:rows], folds[:rows], regression=regression)
        end = losses.end_of_tail(squares[:rows], 0.9, inflation=1.0)
        assert (end > squares[:rows].mean()) == some
    # Every row twice, in clusters of copies, has the end of single rows: the clusters are counted.
    twice = np.repeat(squares, 2)
    losses = Losses(twice, np.arange(200) % FOLDS, regression=True, clusters=np.arange(200) // 2)
    single = Losses(squares, folds[:100], regression=True).end_of_tail(squares, 0.9, inflation=1.0)
    assert losses.end_of_tail(twice, 0.9, inflation=1.0) == pytest.approx(single)


def test_no_interval_reaches_beyond_the_constant_that_the_model_beats():
    points = (Expected(1.0, 100, 0.3, 0.1, 2.0), Expected(2.0, 200, 0.2, 0.1, 5.0))
    outlook = Outlook((), points, floor=(0.1, 0.0, 0.2))
    found = widened(outlook, Interval(0.3, 0.2, 4.0), top=1.02)
    assert [one.upper for one in found.expected] == pytest.approx([1.02, 1.02])
    assert found.floor == pytest.approx((0.1, 0.0, 1.02))


def test_the_rows_for_an_error_are_those_of_the_printed_intervals():
    rng = np.random.default_rng(8)
    sizes = (50, 100, 200, 400, 800)
    curve = [
        CurvePoint(n, tuple((0.02 + 2 * n**-0.6) * (1 + 0.05 * rng.standard_normal(5))))
        for n in sizes
    ]
    plain = outlook_of(curve, 1000, error=0.04)
    error = Interval(0.05, 0.03, 0.09)
    twice = widened(plain, error, top=1.0).expected[1]
    assert twice.lower < plain.expected[1].lower
    assert twice.upper > plain.expected[1].upper
    # Each end reaches, at twice the rows, the error that is printed there.
    for name, end in (("samples", twice.error), ("fewest", twice.lower), ("most", twice.upper)):
        needed = widened(outlook_of(curve, 1000, error=end), error, top=1.0).needed
        assert getattr(needed, name) == pytest.approx(2000, rel=1e-6)
        assert needed.fewest <= needed.samples <= (needed.most or np.inf)
    wider = widened(plain, error, top=1.0).needed
    assert wider.samples == pytest.approx(plain.needed.samples)
    assert wider.fewest < plain.needed.fewest
    assert (wider.most or np.inf) > plain.needed.most
