"""matplotlib and plotly draw the same values as the recording back end receives."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from solvable.plots.figure import Region
from solvable.plots.matplotlib_backend import draw_matplotlib
from solvable.plots.palette import pale, style
from solvable.plots.plotly_backend import draw_plotly
from solvable.plots.print_settings import settings
from solvable.plots.recording_backend import record
from solvable.systems.base import Figure, Marker, Series

NAN = float("nan")
HOSTILE = "<script>alert(1)</script> $x^2$ %{x} & <b>bold</b>"


def kinds_figure(x_scale: Any = "linear", y_scale: Any = "linear") -> Figure:
    """Return a figure with all kinds of series, gaps, missing errors, and markers in and out of range."""
    return Figure(
        "all",
        "Title",
        "n",
        "value",
        [
            Series("theory", [1, 2, 3, 4], [1.0, 2.0, NAN, 3.0], colour=0),
            Series("band", [1, 2, 3, 4], [2.0, 2.0, NAN, 3.0], error=[0.1] * 4, colour=1),
            Series("variant", [1, 4], [1.5, 2.5], "dashed", colour=2),
            Series("measured", [1, 2, 3], [1.1, NAN, 2.2], "points", [0.1, 0.1, NAN], 3),
            Series("bare", [1, 2, 3], [0.5, 0.0, 0.6], "points", colour=4),
            Series("bars", [1, 2, 3], [0.2, 0.4], "histogram", colour=5),
        ],
        markers=[Marker(2.5, "edge"), Marker(3.5, "feature", 0), Marker(900.0, "far")],
        x_scale=x_scale,
        y_scale=y_scale,
    )


def array(values: Any) -> np.ndarray:
    """Return the values of a plotly trace, decoding arrays stored in base64."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).astype(float)
    return np.array([np.nan if one is None else one for one in values], dtype=float)


def plotly_traces(figure: Figure, mode: str) -> list[Any]:
    """Return the traces with data; traces that only make legend entries contain a single None."""
    return [
        trace
        for trace in draw_plotly(figure).data
        if trace.type == "scatter" and trace.mode == mode and not trace.showlegend
    ]


@pytest.mark.parametrize("scales", [("linear", "linear"), ("log", "linear"), ("log", "log")])
def test_curves_agree(scales: tuple[str, str]) -> None:
    figure = kinds_figure(*scales)
    asked = record(figure).named("line")
    with_plotly = [one for one in plotly_traces(figure, "lines") if one.fill is None]
    with_matplotlib = [
        line
        for line in draw_matplotlib(figure).axes[0].lines
        if line.get_marker() == "None" and line.get_transform() == line.axes.transData
    ]
    assert len(asked) == len(with_plotly) == len(with_matplotlib) == 3
    for call, trace, line in zip(asked, with_plotly, with_matplotlib, strict=True):
        np.testing.assert_array_equal(array(trace.x), call["x"])
        np.testing.assert_array_equal(array(trace.y), call["y"])
        np.testing.assert_array_equal(line.get_xdata(), call["x"])
        np.testing.assert_array_equal(line.get_ydata(), call["y"])
        assert trace.line.color == line.get_color() == call["style"].colour
        assert (trace.line.dash == "dash") == call["dashed"] == line.is_dashed()


@pytest.mark.parametrize("y_scale", ["linear", "log"])
def test_points_and_their_errors_agree(y_scale: str) -> None:
    figure = kinds_figure("linear", y_scale)
    asked = record(figure).named("points")
    traces = plotly_traces(figure, "markers")
    containers = draw_matplotlib(figure).axes[0].containers
    assert len(asked) == len(traces) == len(containers) == 2
    for call, trace, container in zip(asked, traces, containers, strict=True):
        np.testing.assert_array_equal(array(trace.y), call["y"])
        np.testing.assert_array_equal(container.lines[0].get_ydata(), call["y"])
        assert trace.marker.color == container.lines[0].get_color() == call["style"].colour
        if np.isnan(call["error"]).all():
            assert trace.error_y.array is None
            assert not container.has_yerr
            continue
        kept = np.isfinite(call["error"])
        np.testing.assert_allclose(
            array(trace.y)[kept] + array(trace.error_y.array)[kept], call["upper"][kept]
        )
        np.testing.assert_allclose(
            array(trace.y)[kept] - array(trace.error_y.arrayminus)[kept], call["lower"][kept]
        )
        bars = [segment for segment in container.lines[2][0].get_segments() if len(segment)]
        drawn = [bar for bar in bars if np.isfinite(bar).all()]
        np.testing.assert_allclose(
            [bar[:, 1] for bar in drawn], np.c_[call["lower"], call["upper"]][kept]
        )


def test_the_log_axes_agree() -> None:
    figure = kinds_figure("log", "log")
    frame = record(figure).named("begin")[0]["frame"]
    axes, layout = draw_matplotlib(figure).axes[0], draw_plotly(figure).layout
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (layout.xaxis.type, layout.yaxis.type) == ("log", "log")
    np.testing.assert_allclose(axes.get_xlim(), frame.x_limits)
    np.testing.assert_allclose(axes.get_ylim(), frame.y_limits)
    np.testing.assert_allclose(layout.xaxis.range, np.log10(frame.x_limits))
    np.testing.assert_allclose(layout.yaxis.range, np.log10(frame.y_limits))


@pytest.mark.parametrize("x_scale", ["linear", "log"])
def test_markers_stand_at_their_places(x_scale: str) -> None:
    figure = kinds_figure(x_scale)
    asked = record(figure).named("marker")
    assert [call["x"] for call in asked] == [2.5, 3.5]
    layout = draw_plotly(figure).layout
    assert [one.x0 for one in layout.shapes if one.y1 == 1] == [2.5, 3.5]
    places = [one.x for one in layout.annotations if one.xref == "x"]
    # On a logarithmic axis, plotly places annotations by the logarithm, but shapes by the value.
    expected = np.log10([2.5, 3.5]) if x_scale == "log" else [2.5, 3.5]
    np.testing.assert_allclose(places, expected)
    axes = draw_matplotlib(figure).axes[0]
    vertical = [line for line in axes.lines if line.get_transform() != axes.transData]
    assert [line.get_xdata()[0] for line in vertical] == [2.5, 3.5]
    assert [line.get_color() for line in vertical] == [call["colour"] for call in asked]


@pytest.mark.parametrize("y_scale", ["linear", "log"])
def test_bars_agree(y_scale: str) -> None:
    figure = kinds_figure("linear", y_scale)
    call = record(figure).named("histogram")[0]
    bars = next(trace for trace in draw_plotly(figure).data if trace.type == "bar")
    np.testing.assert_allclose(array(bars.x) - array(bars.width) / 2, call["edges"][:-1])
    np.testing.assert_allclose(array(bars.x) + array(bars.width) / 2, call["edges"][1:])
    np.testing.assert_array_equal(array(bars.y), call["heights"])
    stairs = draw_matplotlib(figure).axes[0].patches[0].get_data()
    np.testing.assert_array_equal(stairs.values, call["heights"])
    np.testing.assert_array_equal(stairs.edges, call["edges"])


def test_legends_agree_and_leave_the_data_free(overlap_figure: Callable[..., Figure]) -> None:
    figure = overlap_figure(11)
    entries = [entry.label for entry in record(figure).named("legend")[0]["entries"]]
    assert len(entries) == 13
    drawn = draw_matplotlib(figure)
    legend = drawn.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == entries
    shown = [trace.name for trace in draw_plotly(figure).data if trace.showlegend]
    assert shown == entries
    with settings():
        drawn.draw_without_rendering()
        assert not legend.get_window_extent().overlaps(drawn.axes[0].get_window_extent())


def test_a_click_on_the_legend_reaches_prediction_and_measurement(
    overlap_figure: Callable[..., Figure],
) -> None:
    groups: dict[str, int] = {}
    for trace in draw_plotly(overlap_figure(3)).data:
        groups[trace.legendgroup] = groups.get(trace.legendgroup, 0) + 1
    # Each group has three traces: curve, points, and the legend entry.
    assert sorted(groups.values()) == [1, 1, 3, 3, 3]


def test_texts_stay_on_the_picture(overlap_figure: Callable[..., Figure]) -> None:
    """Title, labels of markers, legend and remarks lie within the figure."""
    drawn = draw_matplotlib(overlap_figure(5))
    with settings():
        drawn.draw_without_rendering()
        box = drawn.get_tightbbox()
    width, height = drawn.get_size_inches()
    assert -0.05 < box.x0 < box.x1 < width + 0.05
    assert -0.05 < box.y0 < box.y1 < height + 0.05
    # The figure is still readable when scaled to the text width of a two-column paper.
    assert width < 9


def test_texts_are_literal() -> None:
    curve = Series(HOSTILE, [1, 2], [1, 2])
    figure = Figure("f", HOSTILE, HOSTILE, HOSTILE, [curve], markers=[Marker(1.5, HOSTILE)])
    axes = draw_matplotlib(figure).axes[0]
    assert axes.get_xlabel() == HOSTILE
    assert not axes.xaxis.label.get_parse_math()
    assert not axes.get_legend().get_texts()[0].get_parse_math()
    layout = draw_plotly(figure).layout
    said = [layout.title.text, layout.xaxis.title.text, layout.yaxis.title.text]
    said += [label.text for label in layout.annotations]
    for trace in draw_plotly(figure).data:
        said += [trace.name, trace.hovertemplate or ""]
    assert len(said) == 3 + 1 + 2 * 2
    for markup in ("<script", "<b>bold", "$x", "%{x} "):
        assert not any(markup in one for one in said), markup


def test_remarks_and_title_can_be_left_to_the_page() -> None:
    figure = kinds_figure("log", "log")
    assert draw_plotly(figure).layout.title.text == "<b>Title</b>"
    assert draw_plotly(figure, texts=False).layout.title.text is None

    def said(texts: bool) -> str:
        drawn = draw_matplotlib(figure, texts=texts).axes[0]
        return " ".join(one.get_text() for one in drawn.texts)

    assert "Title" in said(True)
    assert "Outside the range shown" in said(True)
    assert "Title" not in said(False)
    assert "Outside" not in said(False)
    assert "edge" in said(False)


@pytest.mark.parametrize(
    "figure",
    [
        Figure("f", "", "", "", []),
        Figure("f", "t", "x", "y", [Series("", [], [])]),
        Figure("f", "t", "x", "y", [Series("h", [], [], "histogram")], y_scale="log"),
        Figure("f", "t", "x", "y", [Series("h", [0, 1, 2], [0.0, NAN], "histogram")]),
        Figure("f", "t", "x", "y", [Series("h", [0, 1, 2], [0, 1], "histogram")], x_scale="log"),
        Figure("f", "t", "x", "y", [Series("h", [-1, 0], [1], "histogram", [1])], x_scale="log"),
        Figure("f", "t", "x", "y", [Series("p", [1], [NAN], "points", [NAN])], x_scale="log"),
        Figure("f", "t", "x", "y", [Series("p", [0.0], [-1.0], "points", [2.0])], y_scale="log"),
        Figure("f", "t", "x", "y", [Series("b", [1, 2], [NAN, 1.0], error=[1.0, NAN])]),
        Figure("f", "t", "x", "y", [Series("p", [1e300, -1e300], [1e-300, 1e300], "points")]),
        Figure("f", "t", "x", "y", [], markers=[Marker(NAN), Marker(float("inf"), "m")]),
    ],
    ids=str,
)
def test_poor_figures_are_drawn_by_both(figure: Figure) -> None:
    with settings():
        draw_matplotlib(figure).draw_without_rendering()
    assert draw_plotly(figure).to_json()


def test_settings_of_the_user_are_ignored_and_restored() -> None:
    import matplotlib

    figure = Figure("f", "t", "x", "y", [Series("a", [1, 2], [1, 2])])
    with matplotlib.rc_context({"axes.grid": False, "lines.linewidth": 9, "font.size": 30}):
        drawn = draw_matplotlib(figure)
        assert matplotlib.rcParams["font.size"] == 30
    assert drawn.axes[0].xaxis.label.get_fontsize() == 9
    assert draw_matplotlib(figure).axes[0].xaxis.get_gridlines()[0].get_visible()


def test_drawing_leaves_no_window_behind() -> None:
    import sys

    draw_matplotlib(Figure("f", "t", "x", "y", [Series("a", [1, 2], [1, 2])]))
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def region_figure() -> Figure:
    """Return a figure with two filled triangles, a hatched one over them, and marks inside."""
    lower = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    upper = np.array([[4.0, 0.0], [4.0, 2.0], [0.0, 2.0]])
    regions = [
        Region("A: lazy <b>", [lower], 0, mark="A\n<i>", at=(1.0, 0.5)),
        Region("B: specialised", [upper], 1, mark="B", at=(3.0, 1.5)),
        Region("hatched: narrow", [lower / 2], -1, hatched=True),
    ]
    border = Series("", [0.0, 4.0], [2.0, 0.0], colour=-1)
    return Figure("regions", "Phases", "n1", "n2", [border], regions=regions)


def test_regions_set_the_limits_and_stand_in_the_legend() -> None:
    canvas = record(region_figure())
    frame = canvas.named("begin")[0]["frame"]
    np.testing.assert_allclose([frame.x_limits, frame.y_limits], [[0, 4], [0, 2]], atol=1e-8)
    entries = canvas.named("legend")[0]["entries"]
    assert [(entry.label, entry.patch, entry.hatched) for entry in entries] == [
        ("A: lazy <b>", True, False),
        ("B: specialised", True, False),
        ("hatched: narrow", True, True),
    ]
    # Filled regions are lowest, then lines, then marks.
    names = [call.name for call in canvas.calls]
    assert names.index("region") < names.index("line") < names.index("text")
    assert canvas.named("note") == []


def test_matplotlib_fills_and_hatches_regions() -> None:
    (axes,) = draw_matplotlib(region_figure()).axes
    patches = axes.patches
    assert [patch.get_fill() for patch in patches] == [True, True, False]
    assert [patch.get_hatch() for patch in patches] == [None, None, "////"]
    assert patches[0].get_facecolor() != patches[1].get_facecolor()
    np.testing.assert_allclose(patches[1].get_xy()[:3], [[4, 0], [4, 2], [0, 2]])
    assert [text.get_text() for text in axes.texts if text.get_text() in ("A\n<i>", "B")] == [
        "A\n<i>",
        "B",
    ]


def test_plotly_fills_regions_and_reads_their_names() -> None:
    drawn = draw_plotly(region_figure())
    filled = [trace for trace in drawn.data if trace.fill == "toself"]
    assert [trace.text for trace in filled] == ["A: lazy &lt;b&gt;", "B: specialised", None]
    assert filled[2].fillpattern.shape == "/"
    np.testing.assert_array_equal(array(filled[0].x), [0, 4, 0, 0])
    assert [label.text for label in drawn.layout.annotations][:2] == ["A<br>&lt;i&gt;", "B"]


def test_a_pale_colour_is_lighter_in_every_part() -> None:
    assert pale("#000000") == "#ADADAD"
    assert pale("#FFFFFF") == "#FFFFFF"


@pytest.mark.parametrize("high", [1.04, 1.3, 2.5, 9.0, 25.0, 60.0])
@pytest.mark.parametrize("low", [0.0013, 0.2, 1.0, 37.0, 8e5])
def test_short_log_axes_have_the_same_plain_labels_on_paper_and_on_screen(low, high) -> None:
    curve = Series("a", [low, low * high], [low, low * high])
    figure = Figure("f", "t", "x", "y", [curve], x_scale="log", y_scale="log")
    drawn = draw_matplotlib(figure)
    layout = draw_plotly(figure).layout
    drawn.canvas.draw()
    for paper, screen in ((drawn.axes[0].xaxis, layout.xaxis), (drawn.axes[0].yaxis, layout.yaxis)):
        if screen.tickmode != "array":  # from two decades on, whole decades are labelled
            assert np.diff(screen.range)[0] >= 2 - 1e-9
            continue
        assert [label.get_text() for label in paper.get_ticklabels()] == list(screen.ticktext)
        numbers = [float(text) for text in screen.ticktext]
        np.testing.assert_allclose(numbers, screen.tickvals, rtol=1e-6)
        assert 3 <= len(numbers) <= 9
        assert screen.minor.ticks is None  # plotly would draw about a hundred
        assert (np.diff(numbers) > 0).all()
        inside = np.log10(numbers)
        assert screen.range[0] - 1e-9 <= inside[0] < inside[-1] <= screen.range[1] + 1e-9


def test_hollow_points_are_white_inside_in_both_back_ends():
    series = Series("s", [1.0, 2.0], [1.0, 2.0], "points", colour=1, hollow=[False, True])
    figure = Figure("f", "F", "x", "y", [series])
    colour = style(1, 2).colour
    lines = [line for line in draw_matplotlib(figure).axes[0].lines if len(line.get_xdata())]
    faces = [(line.get_xdata()[0], line.get_markerfacecolor()) for line in lines]
    assert faces == [(1.0, colour), (2.0, "white")]
    traces = [trace for trace in draw_plotly(figure).data if trace.x[0] is not None]
    faces = [(trace.x[0], trace.marker.color, trace.marker.line.color) for trace in traces]
    assert faces == [(1.0, colour, "white"), (2.0, "white", colour)]


@pytest.mark.parametrize("limits", [(1e-7, 1e-2), (1.0, 1e6), (1e-4, 1e20)])
def test_powers_of_ten_are_labelled_as_long_as_other_ticks(limits):
    figure = Figure("f", "T", "x", "y", [Series("a", [1.0, 2.0], limits)], y_scale="log")
    axis = draw_plotly(figure)["layout"]["yaxis"]
    # plotly's own powers of ten are in larger letters
    assert axis["tickmode"] == "array"
    assert len(axis["ticktext"]) == len(axis["tickvals"]) >= 3
    for text, value in zip(axis["ticktext"], axis["tickvals"], strict=True):
        exponent = text[2:].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        known = float(text) if "⁻" not in text and text[-1] in "01" else 10.0 ** int(exponent)
        assert known == pytest.approx(value)
