"""Calls that each back end receives, recorded by a back end that draws nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.plots.recording_backend import record
from solvable.systems.base import Figure, Marker, Series

NAN = float("nan")


def figure(*series: Series, **properties: Any) -> Figure:
    return Figure("f", "Title", "n", "error", series, **properties)


def notes(drawn: Figure) -> list[str]:
    return [call["text"] for call in record(drawn).named("note")]


def frame(drawn: Figure) -> Any:
    return record(drawn).named("begin")[0]["frame"]


def test_gaps_reach_the_back_end_and_do_not_move_the_limits() -> None:
    whole = figure(Series("a", [1, 2, 3], [1.0, 5.0, 9.0]))
    gappy = figure(Series("a", [1, 2, 3], [1.0, NAN, 9.0]))
    np.testing.assert_array_equal(record(gappy).named("line")[0]["y"], [1.0, NAN, 9.0])
    assert frame(gappy) == frame(whole)


def test_an_infinity_is_a_gap() -> None:
    drawn = figure(Series("a", [1, 2, 3], [1.0, float("inf"), 9.0]))
    assert np.isnan(record(drawn).named("line")[0]["y"][1])
    assert np.isfinite(frame(drawn).y_limits).all()


@pytest.mark.parametrize("kind", ["line", "dashed", "points", "histogram"])
def test_an_empty_series_is_drawn_and_explained(kind: Any) -> None:
    assert "No values to show." in notes(figure(Series("a", [], [], kind)))


def test_a_figure_without_series_is_drawn() -> None:
    assert frame(figure()).x_limits == (0.0, 1.0)
    assert notes(figure()) == ["No values to show."]


def test_series_of_nothing_but_gaps_is_explained() -> None:
    assert notes(figure(Series("a", [1, 2], [NAN, NAN], "points"))) == ["No values to show."]


def test_points_without_error_have_no_bar_and_others_keep_theirs() -> None:
    both = figure(
        Series("a", [1, 2], [3.0, 4.0], "points"),
        Series("b", [1, 2], [3.0, 4.0], "points", [0.5, NAN], colour=1),
    )
    bare, half = record(both).named("points")
    assert np.isnan(bare["error"]).all()
    assert np.isnan(bare["lower"]).all()
    np.testing.assert_array_equal(half["lower"], [2.5, NAN])
    np.testing.assert_array_equal(half["upper"], [3.5, NAN])


def test_a_negative_error_is_not_drawn() -> None:
    drawn = figure(Series("a", [1], [3.0], "points", [-1.0]))
    assert np.isnan(record(drawn).named("points")[0]["error"]).all()


def test_values_at_or_below_zero_leave_a_logarithmic_axis_and_are_counted() -> None:
    drawn = figure(
        Series("a", [0.0, 1.0, 10.0, 100.0], [1.0, 0.0, -3.0, 2.0]), x_scale="log", y_scale="log"
    )
    np.testing.assert_array_equal(record(drawn).named("line")[0]["y"], [1.0, NAN, NAN, 2.0])
    assert notes(drawn) == ["3 values at or below zero are not shown on a logarithmic axis."]
    assert min(frame(drawn).x_limits + frame(drawn).y_limits) > 0


def test_an_error_bar_that_reaches_zero_ends_at_the_lower_limit_of_a_logarithmic_axis() -> None:
    drawn = figure(Series("a", [1, 2], [1.0, 0.1], "points", [0.1, 0.3]), y_scale="log")
    bars = record(drawn).named("points")[0]
    assert bars["lower"][0] == pytest.approx(0.9)
    assert bars["lower"][1] == frame(drawn).y_limits[0] > 0
    # The stored error stays the true one; only the drawn bar is cut.
    np.testing.assert_array_equal(bars["error"], [0.1, 0.3])


def test_all_values_negative_on_a_logarithmic_axis() -> None:
    drawn = figure(Series("a", [-1, -2], [-1.0, -2.0], "points"), x_scale="log", y_scale="log")
    assert any("at or below zero" in text for text in notes(drawn))
    assert frame(drawn).y_limits == (0.1, 1.0)


def test_theory_far_below_the_measurement_does_not_flatten_it() -> None:
    drawn = figure(
        Series("theory", [1, 2, 3], [1.0, 1e-9, 1e-30]),
        Series("measured", [1, 2], [1.0, 0.5], "points"),
        y_scale="log",
    )
    assert 1e-3 < frame(drawn).y_limits[0] < 0.5


def test_limits_hold_values_and_error_bars() -> None:
    low, high = frame(figure(Series("a", [1, 2], [0.0, 1.0], "points", [0.5, 0.5]))).y_limits
    assert low < -0.5
    assert high > 1.5


def test_bars_stand_on_zero() -> None:
    drawn = figure(Series("a", [0, 1, 2], [3.0, 4.0], "histogram"))
    assert frame(drawn).y_limits[0] == 0.0
    call = record(drawn).named("histogram")[0]
    np.testing.assert_array_equal(call["edges"], [0, 1, 2])
    np.testing.assert_array_equal(call["heights"], [3, 4])


def test_a_bar_from_zero_leaves_a_logarithmic_axis() -> None:
    drawn = figure(Series("a", [0, 1, 10], [3.0, 4.0], "histogram"), x_scale="log")
    call = record(drawn).named("histogram")[0]
    np.testing.assert_array_equal(call["edges"], [1, 10])
    np.testing.assert_array_equal(call["heights"], [4])
    assert notes(drawn) == ["1 value at or below zero is not shown on a logarithmic axis."]


def test_a_histogram_that_has_no_bar_right_of_zero_is_explained() -> None:
    drawn = figure(Series("a", [-2, -1, 0], [3.0, 4.0], "histogram"), x_scale="log")
    assert len(record(drawn).named("histogram")[0]["heights"]) == 0
    assert notes(drawn) == [
        "No values to show.",
        "2 values at or below zero are not shown on a logarithmic axis.",
    ]


def test_a_theory_label_reaches_the_back_end_without_its_end() -> None:
    drawn = figure(Series("a, theory", [1], [1.0]), Series("a", [1], [1.0], "points", [0.1]))
    assert record(drawn).named("line")[0]["label"] == "a"


def test_errors_of_a_histogram_stand_at_the_centres() -> None:
    drawn = figure(Series("a", [0, 1, 3], [3.0, 4.0], "histogram", [0.5, 0.5]))
    np.testing.assert_array_equal(record(drawn).named("points")[0]["x"], [0.5, 2.0])


def test_the_error_of_a_curve_is_a_band() -> None:
    drawn = figure(Series("a", [0, 1], [3.0, 4.0], error=[0.5, 1.0]))
    assert [call.name for call in record(drawn).calls] == ["begin", "band", "line", "legend"]
    np.testing.assert_array_equal(record(drawn).named("band")[0]["upper"], [3.5, 5.0])


def test_y_range_is_taken_as_given() -> None:
    assert frame(figure(Series("a", [0, 1], [-9, 9]), y_range=(-0.5, 1.5))).y_limits == (-0.5, 1.5)


@pytest.mark.parametrize("y_range", [(1.0, 1.0), (2.0, 1.0), (NAN, 1.0), (0.0, float("inf"))])
def test_an_impossible_y_range_is_refused(y_range: tuple[float, float]) -> None:
    with pytest.raises(InvalidParameter, match="y_range"):
        record(figure(y_range=y_range))


def test_a_y_range_from_zero_is_refused_on_a_logarithmic_axis() -> None:
    with pytest.raises(InvalidParameter, match="positive on a logarithmic axis"):
        record(figure(y_range=(0.0, 1.0), y_scale="log"))


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (Series("a", [1, 2], [1.0]), r"\(2,\) x, \(1,\) y"),
        (Series("a", [1, 2], [1.0, 2.0], "histogram"), "bin edges"),
        (Series("a", [1, 2], [1.0, 2.0], "points", [0.1]), "as many errors"),
        (Series("a", [[1, 2]], [[1.0, 2.0]]), "equal length"),  # type: ignore[list-item]
        (Series("a", [1, 3, 2], [1.0, 2.0], "histogram"), "increasing order"),
        (Series("a", [1, NAN, 2], [1.0, 2.0], "histogram"), "finite numbers"),
        (Series("a", [1], [1.0], "bars"), "Did you mean|allowed"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_place(series: Series, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said) as caught:
        record(figure(series))
    assert "'a'" in str(caught.value)
    assert "'f'" in str(caught.value)


@pytest.mark.parametrize("axis", ["x_scale", "y_scale"])
def test_an_unknown_scale_is_refused(axis: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{axis} is 'logarithmic'; allowed: linear, log"):
        record(figure(**{axis: "logarithmic"}))


def test_the_arrays_of_the_caller_are_left_alone() -> None:
    x, y = np.array([0.0, 1.0]), np.array([-1.0, np.inf])
    x.setflags(write=False)
    y.setflags(write=False)
    record(figure(Series("a", x, y), x_scale="log", y_scale="log"))


def test_markers_near_the_data_widen_the_axis_and_far_ones_are_named() -> None:
    drawn = figure(
        Series("a", [0.0, 10.0], [1, 2]),
        markers=[Marker(12.0, "near"), Marker(90.0, "far"), Marker(NAN, "nowhere")],
    )
    assert [call["label"] for call in record(drawn).named("marker")] == ["near"]
    assert frame(drawn).x_limits[1] > 12
    assert notes(drawn) == ["Outside the range shown: far at 90."]


def test_a_marker_at_zero_cannot_stand_on_a_logarithmic_axis() -> None:
    drawn = figure(Series("a", [1, 10], [1, 2]), markers=[Marker(0.0, "origin")], x_scale="log")
    assert not record(drawn).named("marker")
    assert notes(drawn) == ["Outside the range shown: origin at 0."]


def test_markers_alone_make_an_axis() -> None:
    low, high = frame(figure(markers=[Marker(2.0), Marker(4.0)])).x_limits
    assert low < 2 < 4 < high


def test_prediction_and_measurement_share_colour_and_name(
    overlap_figure: Callable[..., Figure],
) -> None:
    drawn = record(overlap_figure(4))
    lines, points = drawn.named("line"), drawn.named("points")
    assert [one["style"] for one in lines] == [one["style"] for one in points]
    assert [one["label"] for one in lines] == [one["label"] for one in points]
    # The marker of a threshold has the colour of its feature.
    assert [one["colour"] for one in drawn.named("marker")] == [
        one["style"].colour for one in lines
    ]


def test_theory_lies_under_measurement_and_over_bars() -> None:
    drawn = figure(
        Series("p", [1], [1.0], "points"),
        Series("d", [1], [1.0], "dashed"),
        Series("l", [1], [1.0]),
        Series("h", [0, 1], [1.0], "histogram"),
    )
    assert [call.name for call in record(drawn).calls[1:-1]] == [
        "histogram",
        "line",
        "line",
        "points",
    ]
    assert [call["dashed"] for call in record(drawn).named("line")] == [False, True]


def test_a_long_legend_stands_outside_the_axes(overlap_figure: Callable[..., Figure]) -> None:
    short = record(figure(Series("a", [1], [1.0]))).named("legend")[0]
    long = record(overlap_figure(11)).named("legend")[0]
    assert not short["beside"]
    assert long["beside"]
    assert [entry.label for entry in long["entries"][:2]] == ["feature 1", "feature 2"]


def test_many_flags_become_a_note(overlap_figure: Callable[..., Figure]) -> None:
    few, many = record(overlap_figure(3)), record(overlap_figure(11))
    assert [call["row"] for call in few.named("marker")] == [2, 1, 0]
    assert {call["row"] for call in many.named("marker")} == {-1}
    assert many.named("note")[0]["text"] == (
        "Coloured vertical lines, from the left: n of feature 1, n of feature 2, ..., "
        "n of feature 11."
    )
    assert not few.named("note")


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)


@example(
    values=[(0.0, 0.0, 0.0), (1.2e-308, 0.0, 0.0)],
    kind="line",
    x_scale="linear",
    y_scale="linear",
    marker=3.0,
)
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.tuples(numbers, numbers, numbers), max_size=8),
    kind=st.sampled_from(["line", "dashed", "points"]),
    x_scale=st.sampled_from(["linear", "log"]),
    y_scale=st.sampled_from(["linear", "log"]),
    marker=numbers,
)
def test_any_numbers_give_finite_limits_that_hold_what_is_drawn(
    values: list[tuple[float, float, float]], kind: Any, x_scale: Any, y_scale: Any, marker: float
) -> None:
    x, y, error = zip(*values, strict=True) if values else ((), (), ())
    drawn = figure(
        Series("a", x, y, kind, error),
        markers=[Marker(marker, "m")],
        x_scale=x_scale,
        y_scale=y_scale,
    )
    canvas = record(drawn)
    axes = canvas.named("begin")[0]["frame"]
    for low, high in (axes.x_limits, axes.y_limits):
        assert np.isfinite([low, high]).all()
        assert low < high
    if x_scale == "log":
        assert axes.x_limits[0] > 0
    for call in canvas.named("marker"):
        assert axes.x_limits[0] <= call["x"] <= axes.x_limits[1]


def test_hollow_points_are_drawn_as_outlines():
    series = Series("measured", [1, 2, 3], [1, 2, 3], "points", [0.1] * 3, 2, [False, True, False])
    drawn = record(Figure("f", "F", "x", "y", [series]))
    filled, hollow = drawn.named("points")
    assert (list(filled["x"]), list(hollow["x"])) == ([1, 3], [2])
    assert (filled["style"].hollow, hollow["style"].hollow) == (False, True)
    assert filled["style"].colour == hollow["style"].colour
    (entry,) = drawn.named("legend")[0]["entries"]
    assert not entry.style.hollow
    with pytest.raises(InvalidParameter, match="equal length"):
        record(Figure("f", "F", "x", "y", [Series("s", [1, 2], [1, 2], "points", hollow=[True])]))
