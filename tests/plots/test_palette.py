from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from solvable.plots import matplotlib_backend, plotly_backend
from solvable.plots.legend import legend_entries, paired
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.palette import COLOURS, NEUTRAL, SCALE, STROKES, SYMBOLS, stroke, style
from solvable.plots.plotly_backend import draw_plotly
from solvable.plots.recording_backend import record
from solvable.systems.base import Figure, Series


def rgb(colour: str) -> np.ndarray:
    """Return the linear RGB values of an sRGB colour."""
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(rgb(colour) @ [0.2126, 0.7152, 0.0722])


# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as seen with three kinds of dichromacy.
SEEN = {
    "all": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    ratio = to_xyz @ np.clip(linear, 0, 1) / (to_xyz @ np.ones(3))
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def lightness(colour: str) -> float:
    return float(lab(rgb(colour))[0])


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_nine_colours_stay_apart_for_the_colour_blind(seen: np.ndarray) -> None:
    places = [lab(seen @ rgb(colour)) for colour in COLOURS]
    distances = [np.linalg.norm(a - b) for i, a in enumerate(places) for b in places[:i]]
    # Adjacent areas differ noticeably from 2.3 on; separate thin lines need several times that.
    assert len(COLOURS) == 9
    assert min(distances) > 15


def test_nine_series_differ_in_grey() -> None:
    """Points differ by symbol; lines without points by stroke or clearly in lightness."""
    assert len({style(i, 9).symbol for i in range(9)}) == 9
    for i, j in combinations(range(9), 2):
        apart = abs(lightness(COLOURS[i]) - lightness(COLOURS[j]))
        assert apart > 3.5  # the difference just noticeable side by side is about 1
        assert stroke(i, 9) != stroke(j, 9) or apart > 8
    first = [lightness(colour) for colour in COLOURS[:3]]
    assert min(abs(a - b) for a, b in combinations(first, 2)) > 13


@pytest.mark.parametrize("seen", [SEEN["all"], SEEN["protan"], SEEN["deutan"]])
def test_many_colours_get_lighter_in_order_for_the_colour_blind(seen: np.ndarray) -> None:
    found = [lab(seen @ rgb(style(i, 11).colour))[0] for i in range(11)]
    assert np.all(np.diff(found) > 1.3)


@pytest.mark.parametrize("colour", [*COLOURS, *SCALE, NEUTRAL])
def test_every_colour_reads_on_white(colour: str) -> None:
    # 1.05 / (L + 0.05) is the contrast ratio of WCAG, which asks 3 of graphical objects.
    assert 1.05 / (luminance(colour) + 0.05) >= 3


def test_both_back_ends_use_one_look() -> None:
    from matplotlib.lines import lineStyles
    from matplotlib.markers import MarkerStyle
    from plotly.validator_cache import ValidatorCache

    known = ValidatorCache.get_validator("scatter.marker", "symbol").values
    assert set(SYMBOLS) <= set(known)
    assert set(matplotlib_backend.SYMBOLS) == set(SYMBOLS)
    assert all(mark in MarkerStyle.markers for mark in matplotlib_backend.SYMBOLS.values())
    assert len(matplotlib_backend.STROKES) == len(plotly_backend.STROKES) == STROKES
    assert matplotlib_backend.STROKES[0] in ("solid", *lineStyles)


def lines(count: int, *, dashed: bool = False, measured: bool = False) -> Figure:
    series = [Series(f"s{i}", [0, 1], [i, i + 1], colour=i) for i in range(count)]
    series += [Series(f"d{i}", [0, 1], [i, i], "dashed", colour=i) for i in range(count * dashed)]
    series += [Series(f"s{i}", [0], [i], "points", colour=i) for i in range(count * measured)]
    return Figure("f", "F", "x", "y", series)


def strokes(figure: Figure) -> list[int]:
    return [call["style"].stroke for call in record(figure).named("line") if not call["dashed"]]


def test_strokes_are_used_only_where_nothing_else_separates_lines() -> None:
    assert strokes(lines(3)) == [0, 0, 0]
    assert strokes(lines(9)) == [0, 0, 0, 1, 2, 1, 2, 1, 2]
    assert strokes(lines(12)) == [0, 1, 2] * 4
    assert strokes(lines(6, dashed=True)) == [0] * 6
    assert strokes(lines(7, dashed=True)) == [0, 0, 0, 1, 2, 1, 2]
    assert strokes(lines(9, measured=True)) == [0] * 9
    entries = record(lines(9)).named("legend")[0]["entries"]
    assert [entry.style.stroke for entry in entries] == strokes(lines(9))
    drawn = draw_matplotlib(lines(9)).axes[0].lines
    assert (
        len(
            {
                line._unscaled_dash_pattern[1] and tuple(line._unscaled_dash_pattern[1])
                for line in drawn
            }
        )
        == 3
    )
    dashes = {trace.line.dash for trace in draw_plotly(lines(9)).data if not trace.showlegend}
    assert dashes == set(plotly_backend.STROKES)


@pytest.mark.parametrize("count", range(1, 13))
def test_styles_of_a_figure_differ(count: int) -> None:
    styles = [style(i, count) for i in range(count)]
    assert len(set(styles)) == count


def test_neighbours_differ_in_symbol() -> None:
    assert all(style(i, 30).symbol != style(i + 1, 30).symbol for i in range(30))
    assert len({style(i).symbol for i in range(9)}) == len(SYMBOLS)


def test_negative_numbers_are_grey() -> None:
    assert style(-1) == style(-7, 11) == (NEUTRAL, "circle", False, 0)


def test_a_pair_has_one_entry_and_a_key() -> None:
    pair = [Series("a", [1], [1]), Series("a", [1], [1], "points")]
    labels = [entry.label for entry in legend_entries(pair)]
    assert labels == ["a", "line: theory", "points: measured ± s.e."]
    joint = legend_entries(pair)[0]
    assert joint.line == "solid"
    assert joint.symbol


def test_the_same_label_in_another_colour_is_another_entry() -> None:
    apart = [Series("a", [1], [1]), Series("a", [1], [1], "points", colour=1)]
    assert [entry.label for entry in legend_entries(apart)] == ["a", "a"]


def test_series_without_label_have_no_entry() -> None:
    assert legend_entries([Series("", [1], [1])]) == []


def test_a_histogram_and_its_law_share_a_patch_with_a_line() -> None:
    entry, *rest = legend_entries(
        [Series("bulk", [0, 1], [1], "histogram"), Series("bulk", [1], [1])]
    )
    assert entry.patch
    assert entry.line == "solid"
    assert not rest


def test_the_word_theory_is_left_out_only_beside_its_measurement() -> None:
    series = [
        Series("a, theory", [1], [1]),
        Series("a", [1], [1], "points"),
        Series("b, theory", [1], [1], colour=1),
        Series("a, theory", [1], [1], colour=2),
    ]
    assert [one.label for one in paired(series)] == ["a", "a", "b, theory", "a, theory"]
