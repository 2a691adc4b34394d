"""Forecasts: predictions, sentences and refusals."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.forecast import LearningCurve, forecast
from solvable.forecast.choice import HeldOut, held_out_sizes, model_weights, spread_inflation
from solvable.forecast.families import Cascade, PowerLaw
from solvable.forecast.fit_quality import fit_chance
from solvable.forecast.fitting import fit_family
from solvable.forecast.noise import replicate_noise
from solvable.forecast.view import summary

SIZES = np.geomspace(50, 6400, 8)
FAST = {"resamples": 100, "band_points": 0}


def measured(truth, relative=0.02, replicates=5, seed=0, sizes=SIZES):
    rng = random_stream("forecasting", seed)
    errors = truth * (1 + relative * rng.standard_normal((replicates, sizes.size)))
    return LearningCurve(np.tile(sizes, replicates), np.abs(errors).ravel())


def staircase(n):
    """Three strong features with distant thresholds, unlike a power law."""
    return (
        0.02 + Cascade().shapes(np.array([[1.5, 60.0, 3]]), np.atleast_1d(np.asarray(n, float)))[0]
    )


def power(n):
    return 0.05 + 2 * np.asarray(n, float) ** -0.6


@pytest.fixture(scope="module")
def power_forecast():
    return forecast(measured(power(SIZES)), at=(12_800, 25_600), band_points=12)


@pytest.fixture(scope="module")
def staircase_forecast():
    return forecast(measured(staircase(SIZES), 0.03), **FAST)


def test_a_power_law_is_extrapolated_with_its_parameters(power_forecast):
    for one, truth in zip(power_forecast.predictions, power([12_800, 25_600]), strict=True):
        assert one.lower < truth < one.upper
        assert one.lower < one.mean < one.upper
        assert one.upper / one.lower < 1.25
    law = power_forecast.parameters["power law"]
    for name, truth in {"offset": 0.05, "amplitude": 2.0, "exponent": 0.6}.items():
        assert law[name].lower <= law[name].value <= law[name].upper
        # Twice the half-width is far outside a 90 % interval.
        reach = max(law[name].upper - law[name].value, law[name].value - law[name].lower)
        assert abs(law[name].value - truth) < 2.5 * reach
    assert set(power_forecast.parameters["cascade"]) == {
        "offset", "amplitude", "decay", "first_threshold", "features",
    }  # fmt: skip
    # The number of features is a count: its interval has whole ends from 1 to 256.
    features = power_forecast.parameters["cascade"]["features"]
    for value in (features.lower, features.value, features.upper):
        assert value == int(value)
        assert 1 <= value <= 256


def test_a_smooth_curve_is_said_to_fit_both(power_forecast):
    assert not power_forecast.distinguishable
    assert power_forecast.verdict.startswith("The data do not decide between ")
    assert "The intervals cover both" in power_forecast.verdict
    assert power_forecast.diagnostics.held_out == pytest.approx((3200.0, 6400.0))
    shares = [one.weight for one in power_forecast.scores.values()]
    assert sum(shares) == pytest.approx(1)
    assert max(shares) < 0.95


def test_a_staircase_is_told_from_a_power_law(staircase_forecast):
    found = staircase_forecast
    assert found.distinguishable
    assert found.model == "cascade"
    assert "better than the power law" in found.verdict
    assert found.scores["cascade"].weight > 0.95
    assert found.scores["power law"].misfit > 0.05
    for one in found.predictions:
        assert one.lower < staircase(one.samples)[0] < one.upper


def test_the_band_runs_from_the_data_to_the_target_and_narrows_on_the_data(power_forecast):
    band = power_forecast.band
    assert len(band) == 12
    assert (band[0].samples, band[-1].samples) == pytest.approx((50.0, 25_600.0))
    ratio = [one.upper / one.lower for one in band]
    assert min(ratio[:8]) < ratio[-1]
    assert band[-1].upper == pytest.approx(power_forecast.predictions[-1].upper, rel=1e-9)


@pytest.fixture(scope="module")
def first():
    return forecast(measured(power(SIZES)), **FAST)


def test_the_same_seed_gives_the_same_forecast(first):
    curve = measured(power(SIZES))
    again = forecast(curve, **FAST)
    other = forecast(curve, seed=1, **FAST)
    assert first == again
    assert other.predictions != first.predictions
    # Resampling noise is much smaller than the interval.
    one, two = first.predictions[0], other.predictions[0]
    assert abs(one.upper - two.upper) < 0.3 * (one.upper - one.lower)


def test_intervals_grow_with_confidence_distance_and_noise():
    curve = measured(power(SIZES))
    near = {level: forecast(curve, confidence=level, **FAST).predictions for level in (0.5, 0.95)}
    for narrow, wide in zip(near[0.5], near[0.95], strict=True):
        assert wide.lower < narrow.lower < narrow.upper < wide.upper
    first, second = near[0.95]
    assert second.upper / second.lower > first.upper / first.lower
    noisy = forecast(measured(power(SIZES), 0.2), confidence=0.95, **FAST).predictions[0]
    assert noisy.upper / noisy.lower > first.upper / first.lower
    new = forecast(curve, of="measurement", confidence=0.95, **FAST)
    assert new.of == "measurement"
    assert new.predictions[0].upper > first.upper
    assert new.predictions[0].mean == first.mean


def test_units_of_error_and_of_samples_do_not_matter(first):
    curve, factor = measured(power(SIZES)), 1e3
    plain = first.predictions
    scaled = LearningCurve(factor * curve.samples, curve.errors / factor)
    for one, other in zip(plain, forecast(scaled, **FAST).predictions, strict=True):
        # The grid of first thresholds starts at the smallest size, so results scale up to rounding.
        assert other.samples == pytest.approx(factor * one.samples)
        assert other.upper == pytest.approx(one.upper / factor, rel=1e-3)
        assert other.lower == pytest.approx(one.lower / factor, rel=1e-3)


def test_single_errors_are_forecast_with_a_warning():
    found = forecast(measured(power(SIZES), 0.02, replicates=1), **FAST)
    assert found.predictions[0].lower < power(12_800.0) < found.predictions[0].upper
    assert "No sample size has two replicates" in found.diagnostics.notes[0]
    assert found.scores["power law"].chi_square is None
    assert found.diagnostics.noise is None
    assert set(found.diagnostics.standard_errors) == {0.0}


def test_exact_errors_do_not_break_anything():
    found = forecast(LearningCurve(SIZES, power(SIZES)), **FAST)
    assert found.predictions[0].lower <= power(12_800.0) * 1.001
    assert found.predictions[0].upper >= power(12_800.0) * 0.999
    twice = LearningCurve(np.tile(SIZES, 2), np.tile(power(SIZES), 2))
    assert forecast(twice, **FAST).refusal is None


def test_errors_of_zero_are_allowed():
    errors = power(SIZES) - 0.05
    errors[-1] = 0.0
    samples, all_errors = np.tile(SIZES, 3), np.concatenate([errors, 0.9 * errors, 1.1 * errors])
    found = forecast(LearningCurve(samples, all_errors, tested=500), **FAST)
    assert found.refusal is None
    assert all(0 <= one.lower <= one.mean <= one.upper for one in found.predictions)


@pytest.mark.parametrize("sizes", [4, 5])
def test_few_sizes_give_wide_intervals(sizes):
    n = np.geomspace(100, 1600, sizes)
    found = forecast(measured(power(n), sizes=n), **FAST)
    assert found.refusal is None
    assert found.predictions[0].lower < power(3200.0) < found.predictions[0].upper


REFUSED = {
    "three sizes": ([100, 200, 400], [0.5, 0.4, 0.3], "3 distinct sample sizes"),
    "one point": ([100], [0.5], "1 distinct sample size;"),
    "rising": ([1, 2, 4, 8], [0.1, 0.2, 0.3, 0.4], "the error rises, from 0.1 at n = 1"),
    "double descent": ([1, 2, 4, 8], [0.5, 0.3, 0.2, 0.45], "the error rises, from 0.2 at n = 4"),
    "flat": ([1, 2, 4, 8], [0.5, 0.5, 0.5, 0.5], "no fall has been measured"),
    "zero": ([1, 2, 4, 8], [0.0, 0.0, 0.0, 0.0], "every error is zero"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("replicates", [1, 4])
def test_some_curves_are_refused_in_words(name, replicates):
    samples, errors, said = REFUSED[name]
    scatter = np.linspace(0.97, 1.03, replicates) if replicates > 1 else np.ones(1)
    curve = LearningCurve(np.tile(samples, replicates), np.outer(scatter, errors).ravel())
    found = forecast(curve)
    assert said in found.refusal
    assert found.refusal.startswith("Extrapolation is refused")
    assert found.verdict == found.refusal
    assert (found.model, found.predictions, found.band) == (None, (), ())
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["refusal"] == found.refusal


def test_a_rise_within_the_noise_is_not_refused():
    rng = random_stream("rise", 0)
    truth = np.array([0.5, 0.3, 0.2, 0.15, 0.151])
    errors = np.abs(truth * (1 + 0.1 * rng.standard_normal((6, 5))))
    curve = LearningCurve(np.tile([1.0, 2, 4, 8, 16], 6), errors.ravel())
    assert forecast(curve, **FAST).refusal is None


def test_sizes_are_sorted_and_distinct_and_what_is_far_away_or_below_is_noted():
    found = forecast(measured(power(SIZES)), at=(1e6, 20, 12_800), factors=(2,), **FAST)
    assert [one.samples for one in found.predictions] == pytest.approx([20.0, 12_800.0, 1e6])
    notes = " ".join(found.diagnostics.notes)
    assert "more than 10 times the largest" in notes
    assert "n = 20 is below the smallest" in notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": (0,)}, "at holds 0"),
        ({"at": (np.nan,)}, "at holds nan"),
        ({"factors": (-2,)}, "factors holds -2"),
        ({"factors": ()}, "`at` and `factors` are both empty"),
        ({"confidence": 1.0}, "confidence is 1.0; allowed: 0.5 to 0.99"),
        ({"confidence": float("nan")}, "confidence is nan"),
        ({"of": "median"}, "of is 'median'; allowed: mean, measurement"),
        ({"resamples": 10}, "resamples is 10"),
        ({"seed": -1}, "seed is -1"),
        ({"band_points": -1}, "band_points is -1"),
    ],
)
def test_bad_arguments_are_named(options, said):
    with pytest.raises(InvalidParameter, match=said.replace("(", r"\(")):
        forecast(measured(power(SIZES)), **options)


@pytest.mark.slow
def test_a_curve_of_eight_sizes_takes_little_time():
    curve = measured(power(SIZES))
    start = time.process_time()
    forecast(curve)
    # Measured: about 1 s; `learn` allows 3 s.
    assert time.process_time() - start < 3


def test_the_result_is_plain_json(power_forecast):
    told = json.loads(json.dumps(power_forecast.to_dict(), allow_nan=False))
    assert told["model"] == power_forecast.model
    assert told["predictions"][0]["upper"] == power_forecast.predictions[0].upper
    assert told["diagnostics"]["replicates"] == [5] * 8


def outcome(score, distance):
    pair = np.array([0.1, 0.2])
    return HeldOut(pair, pair, pair, score, distance)


def test_weights_are_predictive_densities():
    weights = model_weights({"a": outcome(np.log(3.0), 2), "b": outcome(0.0, 2)})
    assert weights == pytest.approx({"a": 0.75, "b": 0.25})
    far = model_weights({"a": outcome(-1e4, 2), "b": outcome(1e4, 2)})
    assert far == pytest.approx({"a": 0.0, "b": 1.0})


def test_surprises_widen_and_agreement_does_not_narrow():
    weights = {"a": 0.5, "b": 0.5}
    assert spread_inflation({"a": outcome(0, 0), "b": outcome(0, 1)}, weights) == pytest.approx(1)
    wide = spread_inflation({"a": outcome(0, 10), "b": outcome(0, 18)}, weights)
    assert wide == pytest.approx(2.0)


def test_at_least_three_sizes_are_left_to_fit():
    for count in range(4, 40):
        assert count - held_out_sizes(count) >= 3
    assert [held_out_sizes(count) for count in (4, 5, 6, 8, 12)] == [1, 1, 2, 2, 3]


def test_a_surprise_is_told():
    # The error drops at the last two sizes, which neither model predicts.
    truth = 0.4 + 0.2 * (SIZES / 50) ** -0.5
    truth[-2:] = [0.25, 0.1]
    found = forecast(measured(truth, 0.01), **FAST)
    assert found.diagnostics.inflation > 1.5
    assert any("widened by" in note for note in found.diagnostics.notes)


@pytest.mark.parametrize(("size", "error"), [(1e20, 1.0), (1e-12, 1.0), (1.0, 1e22), (1.0, 1e-22)])
def test_the_units_of_sizes_and_errors_do_not_matter(size, error):
    n = np.repeat([30.0, 60, 120, 240, 480], 2)
    e = (0.1 + n**-0.7) * np.tile([0.98, 1.02], 5)
    plain, other = (
        forecast(LearningCurve(n * a, e * b), resamples=100).predictions[0]
        for a, b in ((1.0, 1.0), (size, error))
    )
    expected = [plain.samples * size, plain.mean * error, plain.lower * error, plain.upper * error]
    found = [other.samples, other.mean, other.lower, other.upper]
    np.testing.assert_allclose(found, expected, rtol=0.05)


@pytest.mark.parametrize("size", [3e299, 1e31, 1e-200])
def test_sizes_that_no_number_can_square_are_refused(size):
    n, e = np.array([1.0, 2, 4, 8]), np.array([0.4, 0.3, 0.2, 0.15])
    with pytest.raises(InvalidData, match="in another unit"):
        LearningCurve(n * size, e)
    with pytest.raises(InvalidData, match="in another unit"):
        LearningCurve(n, e * size)
    with pytest.raises(InvalidParameter, match="requested sample size"):
        forecast(LearningCurve(100 * n, e), at=[size])


def curve_without_mistakes(rows, tested):
    """Error rate that reaches zero in five replicates, with `rows` test rows in total."""
    n = np.array([50.0, 100, 200, 400, 800])
    counts = np.array(
        [[9, 11, 10, 8, 12], [4, 6, 5, 5, 5], [2, 1, 2, 3, 2], [1, 0, 0, 1, 0], 5 * [0]]
    )
    errors = counts.T / (rows / 5)
    return LearningCurve(np.tile(n, 5), errors.ravel(), tested=tested)


@pytest.mark.parametrize("rows", [200, 1000])
def test_no_mistake_among_m_rows_is_no_error_of_zero(rows):
    from scipy.stats import binom

    found = forecast(curve_without_mistakes(rows, rows), factors=(1, 4), resamples=100)
    at_hand, later = found.predictions
    # With the true error at the upper end, zero wrong predictions are not improbable.
    assert 0.01 < binom.pmf(0, rows, at_hand.upper) < 0.35
    assert at_hand.lower < 1 / rows
    assert 0.3 / rows < later.upper < 3 / rows
    blind = forecast(curve_without_mistakes(rows, None), resamples=100)
    assert "may be as large as 3 / m" in blind.refusal


def test_forecasts_of_rates_of_mistakes_stay_below_one():
    rng = np.random.default_rng(8)
    n = np.repeat([20.0, 40, 80, 160], 5)
    errors = np.minimum(1, 0.97 * (n / 20) ** -0.05 + 0.03 * rng.standard_normal(20))
    found = forecast(LearningCurve(n, errors, tested=60), at=(5.0, 20.0), resamples=100)
    if found.refusal is None:
        assert all(point.upper <= 1 for point in found.predictions)


def test_tested_rows_are_those_of_rates():
    from solvable.errors import InvalidData

    with pytest.raises(InvalidData, match="errors of at most 1"):
        LearningCurve([1.0, 2.0], [3.0, 1.0], tested=10)


def test_a_jump_that_neither_model_has_is_named():
    jump = np.where(SIZES > 1000, 0.5, 1.0) * power(SIZES)
    found = forecast(measured(jump), **FAST)
    assert found.diagnostics.fit_chance < 1e-4
    assert found.diagnostics.notes[0].startswith("Neither model fits")
    assert "neither model fits" in str(summary(found, "curve")[0])


def test_a_true_model_is_improbable_as_rarely_as_stated():
    # A probability is below 0.1 in at most one of ten curves, within four standard errors.
    found = []
    for truth, family in ((power, PowerLaw(500.0)), (staircase, Cascade())):
        for seed in range(10, 30):
            curve = measured(truth(SIZES), seed=seed, replicates=4)
            noise = replicate_noise(curve)
            fitted = fit_family(
                family, sizes=curve.sizes, means=curve.expected, noise=noise, resamples=1,
                rng=random_stream(seed),
            )  # fmt: skip
            found.append(fit_chance([fitted], noise))
    assert np.mean([chance < 0.1 for chance in found]) < 0.1 + 4 * (0.09 / len(found)) ** 0.5
    assert min(found) > 1e-4
    assert max(found) > 0.5


def test_the_fit_is_not_judged_with_as_many_parameters_as_sizes():
    found = forecast(measured(power(SIZES[:5]), sizes=SIZES[:5]), **FAST)
    assert found.diagnostics.fit_chance is None
    single = LearningCurve(SIZES, power(SIZES))
    assert forecast(single, **FAST).diagnostics.fit_chance is None
