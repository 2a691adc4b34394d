"""Intervals compared with SciPy, and their coverage in simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.fitting.intervals import (
    CENTRAL_LIMIT_ROWS,
    loss_of_clusters,
    mean_interval,
    paired_rate_difference,
    wilson_interval,
)


@settings(deadline=None)
@given(st.integers(1, 5000), st.data())
def test_wilson_is_that_of_scipy(rows, data):
    from scipy.stats import binomtest

    wrong = data.draw(st.integers(0, rows))
    other = binomtest(wrong, rows).proportion_ci(0.95, method="wilson")
    found = wilson_interval(wrong, rows)
    assert found.value == wrong / rows
    # Ends at zero and one differ only by rounding.
    assert found.lower == pytest.approx(other.low, abs=1e-12)
    assert found.upper == pytest.approx(other.high, abs=1e-12)
    assert 0 <= found.lower <= found.value <= found.upper <= 1


@pytest.mark.parametrize(("rows", "first", "second"), [(60, 0.1, 0.1), (150, 0.03, 0.08)])
def test_differences_cover(rows, first, second):
    rng = np.random.default_rng(0)
    covered = 0
    trials = 2000
    for _ in range(trials):
        # Half of the rows that one method has wrong are wrong by the other too.
        shared = rng.random(rows) < min(first, second) / 2
        a = shared | (rng.random(rows) < (first - min(first, second) / 2))
        b = shared | (rng.random(rows) < (second - min(first, second) / 2))
        rates = [
            min(first, second) / 2 + (1 - min(first, second) / 2) * (one - min(first, second) / 2)
            for one in (first, second)
        ]
        found = paired_rate_difference(a, b)
        assert found.value == pytest.approx(a.mean() - b.mean())
        covered += found.lower <= rates[0] - rates[1] <= found.upper
    # The nominal coverage is 95 %, and its standard error over 2000 trials is 0.5 %.
    assert covered / trials > 0.95 - 3 * 0.005


def test_a_difference_is_antisymmetric():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 80)) < 0.2
    one, other = paired_rate_difference(a, b), paired_rate_difference(b, a)
    assert one.lower == pytest.approx(-other.upper)
    assert one.upper == pytest.approx(-other.lower)


def test_means_of_skewed_values_are_covered():
    rng = np.random.default_rng(2)
    trials = 300
    covered = percentile = 0
    for trial in range(trials):
        # Squared errors with a heavy tail: log-normal with mean exp(1/2)
        x = rng.lognormal(size=60)
        found = mean_interval(x, seed=trial)
        covered += found.lower <= np.exp(0.5) <= found.upper
        half = 1.96 * x.std(ddof=1) / np.sqrt(60)
        percentile += abs(x.mean() - np.exp(0.5)) <= half
    # A normal interval would cover about 88 %; three standard errors over 300 trials are 4 %.
    assert covered / trials > 0.89
    assert covered > percentile


def test_many_rows_take_the_normal_interval():
    x = np.random.default_rng(3).exponential(size=CENTRAL_LIMIT_ROWS + 1)
    found = mean_interval(x)
    half = 1.959963984540054 * x.std(ddof=1) / np.sqrt(len(x))
    assert found.upper - found.value == pytest.approx(half)


def test_constant_values_have_no_width():
    assert mean_interval(np.full(10, 2.0)) == pytest.approx((2.0, 2.0, 2.0))


@pytest.mark.parametrize("rows", [60, CENTRAL_LIMIT_ROWS + 1])
def test_means_of_squares_have_an_interval_above_zero_however_skewed(rows):
    below = 0
    for seed in range(40):
        x = np.random.default_rng(seed).standard_t(1.2, rows) ** 2
        plain, found = mean_interval(x), mean_interval(x, positive=True)
        below += plain.lower < 0
        assert 0 < found.lower < found.value < found.upper
        assert found.upper == pytest.approx(plain.upper, rel=1e-12)
    assert below > 3


def test_the_lower_end_for_positive_values_is_that_of_their_logarithm():
    # For many values of small scatter both are the normal interval.
    x = 5 + np.random.default_rng(4).random(400)
    plain, found = mean_interval(x), mean_interval(x, positive=True)
    assert found.lower == pytest.approx(plain.lower, abs=0.03 * (plain.upper - plain.lower))


@pytest.mark.parametrize("rows", [240, 900])
def test_an_outlook_without_mistakes_at_all_rows_is_no_error_of_zero(rows):
    from solvable.learn.results import CurvePoint
    from solvable.learn.scoring import outlook_of
    from solvable.plots.words import percents

    shares = [0.2, 0.09, 0.04, 0.01, 0.0]
    fold = rows // 5
    curve = [
        CurvePoint(
            size, tuple(round(p * fold + k % 2) / fold * (p > 0) for k in range(5)), (3,) * 5
        )
        for size, p in zip((24, 48, 96, 160, 4 * fold), shares, strict=True)
    ]
    expected = outlook_of(curve, rows, shared=1 / (20 * fold), tested=rows).expected
    assert len(expected) == 3
    for point in expected:
        assert 0 <= point.lower <= point.error <= point.upper < 3 / rows
        assert point.upper > 0.5 / rows
        assert percents(point.error, point.lower, point.upper)[1] != "0.00 to 0.00 %"


def test_clusters_of_one_row_are_rows():
    rng = np.random.default_rng(0)
    clusters, squares = np.arange(400), rng.standard_normal(400) ** 2
    np.testing.assert_allclose(
        loss_of_clusters(squares, clusters, rate=False), mean_interval(squares, positive=True)
    )
    wrong = rng.random(400) < 0.03
    np.testing.assert_allclose(
        loss_of_clusters(wrong.astype(float), clusters, rate=True),
        wilson_interval(int(wrong.sum()), 400),
        rtol=0.01,
    )


@pytest.mark.parametrize("rate", [True, False])
def test_intervals_of_skewed_losses_in_clusters_cover(rate):
    # Each row has one to four copies. Losses are wrong rows (5 %), or squares of mean 1 and kurtosis 15.
    rng, covered, repeats = np.random.default_rng(2), 0, 400
    for _ in range(repeats):
        clusters = np.repeat(np.arange(120), rng.integers(1, 5, 120))
        each = (rng.random(120) < 0.05).astype(float) if rate else rng.standard_normal(120) ** 2
        found = loss_of_clusters(each[clusters], clusters, rate=rate)
        covered += found.lower <= (0.05 if rate else 1.0) <= found.upper
    # A coverage near 0.95 has a standard error of 0.011.
    assert 0.95 - 3 * 0.011 < covered / repeats < 0.95 + 3 * 0.011
