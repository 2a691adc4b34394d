from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.plots.layout import (
    MOST_ROWS,
    can_be_shown,
    flag_rows,
    label_width,
    padded_limits,
    place_flags,
    positions,
    short_log_ticks,
)
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.systems.base import Figure, Marker, Series

place = st.floats(0, 1)
width = st.one_of(st.just(0.0), st.floats(0.01, 0.6))


@given(st.lists(st.tuples(place, width), max_size=10))
def test_neither_flags_nor_poles_cross(flags: list[tuple[float, float]]) -> None:
    places, widths = [one for one, _ in flags], [one for _, one in flags]
    rows = flag_rows(places, widths)
    for i, row in enumerate(rows):
        assert (row == -1) == (widths[i] == 0)
        for j, other in enumerate(rows):
            # The stem of label j crosses label i unless i is in a higher row.
            if i != j and row >= 0 and other >= 0 and places[i] < places[j] < places[i] + widths[i]:
                assert row > other


def test_one_row_is_enough_for_flags_far_apart() -> None:
    assert flag_rows([0.1, 0.5, 0.9], [0.3, 0.3, 0.3]) == [0, 0, 0]
    # Labels at the same place are stacked, in any order.
    assert sorted(flag_rows([0.5, 0.5, 0.5], [0.1, 0.1, 0.1])) == [0, 1, 2]


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=6),
    st.sampled_from(["linear", "log"]),
)
def test_limits_hold_every_value_that_can_be_shown(values: list[float], scale: str) -> None:
    array = np.array(values)
    low, high = padded_limits(array, scale)  # type: ignore[arg-type]
    assert np.isfinite([low, high]).all()
    assert low < high
    shown = array[can_be_shown(array, scale)]  # type: ignore[arg-type]
    assert scale == "linear" or low > 0
    assert np.all((low <= shown) & (shown <= high))


def test_what_an_axis_can_show() -> None:
    values = np.array([-1e151, -2.0, 0.0, 1e-151, 2.0, 1e151, np.inf, np.nan])
    assert list(can_be_shown(values, "linear")) == [False] + [True] * 4 + [False] * 3
    assert list(can_be_shown(values, "log")) == [False] * 4 + [True] + [False] * 3


def test_a_single_value_gets_air_on_both_sides() -> None:
    assert padded_limits(np.array([5.0]), "linear") == (2.5, 7.5)
    assert padded_limits(np.array([0.0]), "linear") == (-0.5, 0.5)
    low, high = padded_limits(np.array([5.0]), "log")
    assert low * high == pytest.approx(25.0)


def test_values_that_differ_in_the_last_digit_have_distinct_limits() -> None:
    low, high = padded_limits(np.array([1.0, np.nextafter(1.0, 2.0)]), "linear")
    assert low < 1.0 < high


@given(st.floats(1e-3, 1e3), st.sampled_from(["linear", "log"]))
def test_positions_run_from_zero_to_one(value: float, scale: str) -> None:
    ends = positions(np.array([1e-4, 1e4]), scale, (1e-4, 1e4))  # type: ignore[arg-type]
    np.testing.assert_allclose(ends, [0, 1])
    inside = positions(np.array([value]), scale, (1e-4, 1e4))  # type: ignore[arg-type]
    assert 0 <= inside[0] <= 1


def test_a_label_at_the_right_end_asks_for_room() -> None:
    flags = place_flags([Marker(1.0, "a long label")], "linear", (0.0, 1.0))
    assert flags.overhang == pytest.approx(label_width("a long label"))
    assert place_flags([Marker(0.0, "short")], "linear", (0.0, 1.0)).overhang == 0.0


def test_grey_labels_stay_when_coloured_ones_become_a_note() -> None:
    markers = [Marker(0.5 + i / 1000, f"feature {i}", i) for i in range(MOST_ROWS + 1)]
    flags = place_flags([Marker(0.1, "bulk edge"), *markers], "linear", (0.0, 1.0))
    assert flags.rows == [0] + [-1] * len(markers)
    assert "feature 0" in flags.note
    assert "bulk edge" not in flags.note


def test_few_labels_in_a_note_are_spelled_out() -> None:
    grey = [Marker(0.5 + i / 1000, f"edge {i}") for i in range(MOST_ROWS)]
    flags = place_flags([*grey, Marker(0.52, "b", 1), Marker(0.51, "a", 0)], "linear", (0, 1))
    assert flags.note == "Coloured vertical lines, from the left: a, b."


def test_no_markers_need_no_room() -> None:
    flags = place_flags([], "log", (1.0, 10.0))
    assert (flags.rows, flags.overhang, flags.note, flags.height) == ([], 0.0, "", 0)


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("gap", [0.0, 2e-16, 1e-12, 1e-7])
def test_values_that_differ_in_their_last_digits_have_an_axis(scale, gap) -> None:
    """A range below double precision must not give an axis of zero width."""
    value = 0.7310585786300049
    curve = Series("a", [1.0, 2.0], [value, value * (1 + gap)])
    figure = Figure("f", "t", "x", "y", [curve], y_scale=scale)
    low, high = padded_limits(np.array(curve.y), scale)
    assert high / low > 1 + 1e-9
    draw_matplotlib(figure).canvas.draw()  # warnings are errors here
    if scale == "log":
        assert len(short_log_ticks((low, high))) >= 2
