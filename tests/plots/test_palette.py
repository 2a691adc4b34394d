from __future__ import annotations

import numpy as np
import pytest

from solvable.plots.legend import legend_entries, paired
from solvable.plots.palette import COLOURS, NEUTRAL, SCALE, SYMBOLS, style
from solvable.systems.base import Series


def rgb(colour: str) -> np.ndarray:
    """Return the linear RGB values of an sRGB colour."""
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(rgb(colour) @ [0.2126, 0.7152, 0.0722])


# Viénot, Brettel and Mollon (1999): linear RGB as seen with the two common kinds of dichromacy.
PROTAN = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
DEUTAN = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])


def lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    ratio = to_xyz @ np.clip(linear, 0, 1) / (to_xyz @ np.ones(3))
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", [np.eye(3), PROTAN, DEUTAN], ids=["all", "protan", "deutan"])
def test_few_colours_stay_apart_for_the_colour_blind(seen: np.ndarray) -> None:
    places = [lab(seen @ rgb(colour)) for colour in COLOURS]
    distances = [np.linalg.norm(a - b) for i, a in enumerate(places) for b in places[:i]]
    # Adjacent areas differ noticeably from 2.3 on; separate thin lines need several times that.
    assert min(distances) > 10


@pytest.mark.parametrize("seen", [np.eye(3), PROTAN, DEUTAN], ids=["all", "protan", "deutan"])
def test_many_colours_get_lighter_in_order_for_the_colour_blind(seen: np.ndarray) -> None:
    lightness = [lab(seen @ rgb(style(i, 11).colour))[0] for i in range(11)]
    assert np.all(np.diff(lightness) > 1.5)


@pytest.mark.parametrize("colour", [*COLOURS, *SCALE, NEUTRAL])
def test_every_colour_reads_on_white(colour: str) -> None:
    # 1.05 / (L + 0.05) is the contrast ratio of WCAG; symbols and legend also identify curves.
    assert 1.05 / (luminance(colour) + 0.05) > 2.2


@pytest.mark.parametrize("count", range(1, 13))
def test_styles_of_a_figure_differ(count: int) -> None:
    styles = [style(i, count) for i in range(count)]
    assert len(set(styles)) == count


def test_neighbours_differ_in_symbol() -> None:
    assert all(style(i, 30).symbol != style(i + 1, 30).symbol for i in range(30))
    assert len({style(i).symbol for i in range(7)}) == len(SYMBOLS)


def test_negative_numbers_are_grey() -> None:
    assert style(-1) == style(-7, 11) == (NEUTRAL, "circle", False)


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
