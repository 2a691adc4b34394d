"""Figures at column width: nothing overprinted, nothing off the canvas, at exactly the width."""

from __future__ import annotations

import io
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.text import Text

import solvable
from solvable.errors import InvalidParameter
from solvable.plots.figure import Region
from solvable.plots.files import saved
from solvable.plots.paper import draw_paper
from solvable.systems.base import Figure, Marker, Series

LONG = "squared overlap with the span of all of the estimated directions of the target"


def boxes(drawn: Any) -> list[tuple[str, Any]]:
    """Return name and extent of every text, of the legend as a whole and of the axes."""
    drawn.set_dpi(100)
    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    (axes,) = drawn.axes
    found = [("axes", axes.get_window_extent(renderer))]
    for text in [*drawn.texts, *axes.texts]:
        if text.get_text():
            found.append((text.get_text(), text.get_window_extent(renderer)))
    view = axes.get_window_extent(renderer)
    for along, axis in enumerate((axes.xaxis, axes.yaxis)):
        for text in axis.get_ticklabels(which="both"):
            box = text.get_window_extent(renderer)
            middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)[along]
            if text.get_text() and view.min[along] <= middle <= view.max[along]:
                found.append((f"tick {text.get_text()}", box))
    for legend in [*drawn.legends, axes.get_legend()]:
        if legend is not None:
            inside = legend is axes.get_legend()
            found.append(("legend inside" if inside else "legend", legend.get_window_extent()))
            for text in legend.get_texts():
                box = text.get_window_extent(renderer)
                assert legend.get_window_extent().padded(1).contains(box.x0, box.y0)
                assert legend.get_window_extent().padded(1).contains(box.x1, box.y1)
    return found


def check(figure: Figure, width: float) -> None:
    drawn = draw_paper(figure, width)
    found = boxes(drawn)
    canvas = drawn.bbox
    assert drawn.get_size_inches()[0] == pytest.approx(width)
    for name, box in found:
        assert box.x0 >= -1, name
        assert box.y0 >= -1, name
        assert box.x1 <= canvas.x1 + 1, name
        assert box.y1 <= canvas.y1 + 1, name
    marks = {region.mark for region in figure.regions}
    for (name, box), (other, second) in combinations(found, 2):
        if {name, other} == {"axes", "legend inside"} or (
            "axes" in (name, other) and (name in marks or other in marks)
        ):
            continue
        assert not box.padded(-0.7).overlaps(second.padded(-0.7)), (name, other)
    sizes = [
        text.get_fontsize() for text in drawn.findobj(match=lambda a: hasattr(a, "get_fontsize"))
    ]
    assert min(sizes) >= 7
    assert max(sizes) <= 10


def curves(count: int, label: str = "feature {}") -> list[Series]:
    x = np.geomspace(0.3, 40, 9)
    lines = [Series(label.format(k), x, x / (x + k + 1), colour=k) for k in range(count)]
    points = [
        Series(label.format(k), x, x / (x + k + 1), "points", [0.02] * 9, k) for k in range(count)
    ]
    return lines + points


def phases() -> Figure:
    parts = [
        Region(f"{k}: n = d^{k} samples, a network", [np.array([[k, 0], [k + 1, 0], [k, 3.0]])], k,
               mark=f"{k}\nd^{k}", at=(k + 0.3, 0.8))
        for k in range(5)
    ]  # fmt: skip
    return Figure("phases", "Phases", "n1 (exponent of d)", "n2 (exponent of d)", [], regions=parts)


FIGURES = {
    "plain": Figure("f", "T", "samples n", "test error", curves(1)),
    "nine": Figure("f", LONG, "samples n", LONG, curves(9), "A caption.", x_scale="log"),
    "long names": Figure("f", "T", LONG, LONG, curves(3, LONG + " {}"), y_scale="log"),
    "markers": Figure(
        "f", "T", "samples n", "overlap", curves(4), x_scale="log",
        markers=[Marker(0.3 * 1.3**k, f"threshold {k + 1}", k) for k in range(9)],
    ),
    "markers at the ends": Figure(
        "f", "T", "eigenvalue", "density",
        [Series("law", [-1, 0, 1], [0.1, 3000, 0.1]), Series("bulk", [-1, 0, 1], [9, 7], "histogram")],
        markers=[Marker(-0.99, "bulk edge"), Marker(0.98, "bulk edge"), Marker(1.0, "feature 1", 0)],
        y_scale="log",
    ),
    "one word": Figure("f", "T", "x" * 90, "y" * 90, curves(2, "z" * 120 + "{}")),
    "short logs": Figure(
        "f", "T", "n", "y", [Series("a", [0.00131, 0.00132], [123456.0, 123999.0])],
        x_scale="log", y_scale="log",
    ),
    "many decades": Figure(
        "f", "T", "n", "y", [Series("a", [1e-30, 1e30], [1e-40, 1e40])], x_scale="log", y_scale="log"
    ),
    "large numbers": Figure("f", "T", "n", "y", [Series("a", [1234567, 1234568], [1e9, 1e9 + 1])]),
    "twenty series": Figure("f", "T", "n", "y", curves(20)),
    "phases": phases(),
    "wide ticks": Figure(
        "f", "T", "", "", [Series(f"{k}", [1.0] * 3, [1, 1, 946785.0 * k]) for k in range(2)]
    ),
    "empty": Figure("f", "T", "", "", []),
    "markup": Figure("f", "$T$", "$x^", "a_b^{", curves(1, "$\\frac{{")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "width"),
    [*((name, 1.7) for name in FIGURES), *((name, 3.4) for name in FIGURES), ("nine", 7.0)],
)
def test_nothing_overlaps_or_leaves_the_canvas(name: str, width: float) -> None:
    check(FIGURES[name], width)


words = st.text("abcdefgh ", max_size=40)
numbers = st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3)


@settings(max_examples=15)
@given(
    width=st.floats(1.7, 7),
    labels=st.tuples(words, words),
    series=st.lists(st.tuples(words, numbers, numbers, st.sampled_from(["line", "dashed", "points"])),
                    max_size=9),
    markers=st.lists(st.tuples(st.floats(1e-6, 1e6), words), max_size=6),
    scales=st.tuples(*[st.sampled_from(["linear", "log"])] * 2),
)  # fmt: skip
def test_random_figures_have_no_overlap(width, labels, series, markers, scales) -> None:
    drawn = [Series(name, x, y, kind, colour=k) for k, (name, x, y, kind) in enumerate(series)]
    lines = [Marker(x, name) for x, name in markers]
    figure = Figure("f", "T", *labels, drawn, markers=lines, x_scale=scales[0], y_scale=scales[1])
    check(figure, width)


def test_files_have_exactly_the_width_and_vector_fonts() -> None:
    drawn = draw_paper(FIGURES["nine"], 3.4)
    stream = io.BytesIO()
    drawn.savefig(stream, format="pdf")
    page = stream.getvalue()
    width, _ = (72 * size for size in drawn.get_size_inches())
    assert f"/MediaBox [ 0 0 {width:.6g} ".encode() in page or b"/MediaBox [ 0 0 244.8 " in page
    assert b"/FontFile2" in page  # an embedded TrueType font
    assert b"/Type3" not in page
    stream = io.BytesIO()
    drawn.savefig(stream, format="png")
    assert int.from_bytes(stream.getvalue()[16:20], "big") == round(3.4 * 300)
    assert b'width="244.8pt"' in saved(drawn, "svg")


def test_title_and_caption_are_left_to_the_paper() -> None:
    drawn = draw_paper(FIGURES["nine"])
    said = [text.get_text().replace("\n", " ") for text in [*drawn.texts, *drawn.axes[0].texts]]
    assert sorted(said) == sorted(["samples n", LONG])


def test_labels_without_room_become_a_sentence() -> None:
    drawn = draw_paper(FIGURES["markers"], 1.7)
    said = " ".join(text.get_text().replace("\n", " ") for text in drawn.texts)
    assert "Vertical lines, from the left: threshold 1, threshold 2" in said


@pytest.mark.parametrize("width", [0, 1.6, 7.1, float("nan"), float("inf")])
def test_a_width_out_of_range_is_refused(width: float) -> None:
    with pytest.raises(InvalidParameter, match=r"allowed: 1\.7 to 7"):
        draw_paper(FIGURES["plain"], width)


@pytest.fixture
def result():
    settings_ = {"preset": None, "dimension": 10, "samples": [40, 60], "seeds": 2, "workers": 1}
    return solvable.run("quadratic-network", **settings_)


def fonts(drawn: Any) -> set[str]:
    """Return the names of the fonts of all visible texts."""
    return {text.get_fontname() for text in drawn.findobj(Text) if text.get_text()}


def test_fonts_and_sizes_that_the_user_sets_are_kept_in_papers_alone(result):
    with rc_context({"font.family": "serif", "axes.labelsize": 6.0}):
        paper, report = result.figure("error", width=3.4), result.figure("error")
    assert fonts(paper) == {"DejaVu Serif"}
    assert fonts(report) == {"DejaVu Sans"}
    plain = result.figure("error", width=3.4)
    sizes = [
        {text.get_fontsize() for text in drawn.texts if "error" in text.get_text()}
        for drawn in (paper, plain)
    ]
    assert sizes == [{6.0}, {8.0}]


@pytest.mark.parametrize("width", [None, 3.4])
def test_own_points_are_added_with_their_name_and_colour(result, width):
    before = result.figure("error", width=width)
    after = result.figure("error", width=width, add={"mine": ([0.5, 0.6], [0.4, 0.3], [0.1, 0.1])})
    legends = [{t.get_text() for t in f.findobj(Legend)[0].get_texts()} for f in (before, after)]
    assert legends[1] - legends[0] == {"mine"}
    assert legends[0] < legends[1]


def test_own_points_of_unequal_length_are_refused(result):
    with pytest.raises(InvalidParameter, match="x and y"):
        result.figure("error", add={"mine": ([1.0, 2.0], [1.0])})
