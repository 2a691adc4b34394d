"""Theory lines within a budget of CPU time."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Point
from solvable.frame.system import System
from solvable.frame.theory_lines import interpolated, refining_order, smoothed
from solvable.frame.traces import Trace
from solvable.plots.figure import Series

NAN = float("nan")


class SlowParameters(Parameters):
    samples: int = 100
    """Number of samples."""


def slow_system(seconds):
    """Return a system whose predictions take this CPU time each, and the list of its calls."""
    calls = []

    def predict(parameters):
        calls.append(parameters.samples)
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        error = 1 / parameters.samples
        return {"error": error, "overlaps": [1 - error, 0.5], "phase": "I"}

    system = System(
        name="slow", title="A slow theory", version="1", parameters=SlowParameters,
        measure=lambda parameters, rng: {"error": 0.0}, predict=predict,
        axis=Axis("samples", "samples n", resolution=40),
        panels=[Panel("error", "Error", "error", [Trace("error"), Trace("overlaps", "feature")])],
    )  # fmt: skip
    return system, calls


def points_of(system, sizes):
    found = []
    for samples in sizes:
        error = 1 / samples
        prediction = {"error": error, "overlaps": [1 - error, 0.5], "phase": "I"}
        found.append(Point({"samples": samples}, [prediction, prediction], prediction))
    return found


def line_of(figure, label):
    (series,) = [one for one in figure.series if one.kind == "line" and label in one.label]
    return np.asarray(series.x), np.asarray(series.y)


def test_a_slow_theory_line_stays_within_its_seconds_and_the_caption_says_so():
    system, calls = slow_system(0.05)
    start = time.process_time()
    (figure,) = system.drawn(points_of(system, [100, 400, 1600]), seconds=0.4).figures
    # Forty predictions would take two seconds.
    assert time.process_time() - start < 0.4 + 0.05 + 0.5
    assert 2 <= len(calls) <= 8
    assert f"interpolated between {len(calls) + 3} predictions" in figure.caption
    x, y = line_of(figure, "feature 1")
    assert x.size == 4 * 40 - 3
    np.testing.assert_allclose(1 - y, 1 / x, rtol=0.1)


def test_a_fast_theory_line_is_predicted_everywhere():
    system, calls = slow_system(0.0)
    (figure,) = system.drawn(points_of(system, [100, 1600]), seconds=5.0).figures
    assert len(calls) == 40
    assert "interpolated" not in figure.caption
    assert len(system.figures(points_of(system, [100]))) == 1


def test_curves_share_the_seconds():
    system, calls = slow_system(0.04)
    curves = system.curves(points_of(system, [100]), seconds=0.2)
    budget = curves[0].budget
    budget.curves = 4
    curves[0].line("error")
    # Each of four curves has a quarter of the seconds, and at least one prediction.
    assert 1 <= len(calls) <= 2
    assert budget.curves == 3
    assert budget.seconds == pytest.approx(0.2 - 0.04 * len(calls), abs=0.02)


@given(st.integers(1, 70))
def test_every_place_is_reached_and_gaps_are_halved(count):
    order = refining_order(count)
    assert sorted(order) == list(range(count))
    if count > 8:
        assert np.diff(sorted(order[:5])).max() <= np.ceil((count - 1) / 4) + 1


def test_monotone_predictions_have_a_monotone_line():
    nodes = {x: {"m": y} for x, y in [(1.0, 0.0), (2.0, 0.01), (3.0, 0.9), (8.0, 1.0)]}
    line = [row["m"] for row in interpolated(nodes, np.geomspace(1, 8, 50), log=True)]
    assert (np.diff(line) >= -1e-12).all()
    assert (np.min(line), np.max(line)) == pytest.approx((0, 1))


def test_a_line_has_a_gap_where_nothing_is_predicted():
    nodes = {
        1.0: {"m": 1.0, "list": [1.0, 2.0]},
        2.0: {"m": 2.0, "list": [1.0, None]},
        3.0: {"m": None, "list": [None, None]},
    }
    rows = interpolated(nodes, np.array([1.0, 1.4, 2.0, 2.4, 2.8]), log=False)
    m = np.array([row["m"] for row in rows], dtype=float)
    assert np.isfinite(m).tolist() == [True, True, True, False, False]
    second = np.array([row["list"][1] for row in rows], dtype=float)
    assert np.isfinite(second).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize(("log_x", "log_y"), [(False, False), (True, False), (True, True)])
def test_smooth_lines_follow_a_curve_through_its_computed_places(log_x, log_y):
    x = np.geomspace(1, 1000, 40)
    y = 1 / (1 + (x / 30) ** 4)
    drawn = smoothed(Series("s", x, y), log_x=log_x, log_y=log_y)
    assert len(drawn.x) == 4 * 40 - 3
    np.testing.assert_allclose(drawn.y[::4], y)
    exact = 1 / (1 + (np.asarray(drawn.x) / 30) ** 4)
    straight = np.interp(np.log(drawn.x), np.log(x), y)
    if log_x:
        assert np.abs(drawn.y - exact).max() < 0.25 * np.abs(straight - exact).max()
    if log_y:
        np.testing.assert_allclose(drawn.y, exact, rtol=0.01)
    assert (np.diff(drawn.y) <= 0).all()  # no overshoot


def test_smooth_lines_keep_gaps_and_leave_other_series():
    x, y = np.arange(12.0), np.array([*range(5), np.nan, np.nan, *range(5)])
    drawn = smoothed(Series("s", x, y), log_x=False, log_y=False)
    np.testing.assert_array_equal(np.isfinite(drawn.y[::4]), np.isfinite(y))
    assert np.isnan(drawn.y[17:28]).all()
    for other in (
        Series("few", [1.0, 2.0], [1.0, 2.0]),
        Series("points", x, x, "points"),
        Series("back", x[::-1], x),
    ):
        assert smoothed(other, log_x=False, log_y=False) is other
