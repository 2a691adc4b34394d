"""Panels along another parameter than the axis, shared by curves, of lists over lists, and spectra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Point
from solvable.frame.spectrum import Law, Spectrum
from solvable.frame.system import System
from solvable.frame.traces import Trace
from solvable.plots.figure import Marker, Series
from solvable.plots.recording_backend import record


class Setting(Parameters):
    samples: int = 10
    dimension: int = 4
    decay: float = 0.0
    kind: str = "a"


def predict(parameters):
    ratio = parameters.samples / parameters.dimension
    return {
        "overlap": [ratio / (1 + ratio), ratio / (4 + ratio)],
        "error": 1 / (1 + ratio),
        "threshold": 2.0 * parameters.dimension * (1 + parameters.decay),
        "bound": 0.5,
    }


def system(*panels):
    return System(name="s", title="S", version="1", parameters=Setting, measure=lambda p, rng: {},
                  predict=predict, panels=panels,
                  axis=Axis("samples", "samples n", words={"samples": "n = {}", "decay": "decay {:g}"},
                            resolution=7))  # fmt: skip


def points(**grid):
    """Return points with two replicates at every setting of a grid."""
    found = []
    for dimension in grid.get("dimension", (16, 24)):
        for decay in grid.get("decay", (0.0,)):
            for kind in grid.get("kind", ("a",)):
                for samples in grid.get("samples", (10, 20, 40)):
                    setting = Setting(samples=samples, dimension=dimension, decay=decay, kind=kind)
                    prediction = predict(setting)
                    metrics = [
                        {"error": prediction["error"] + x, "overlap": prediction["overlap"],
                         "rank": [1.0, 5.0]}
                        for x in (0.0, 0.02)
                    ]  # fmt: skip
                    found.append(Point(setting.model_dump(), metrics, prediction))
    return found


ALONG = Panel("error-by-dimension", "Error", "error", [Trace("error", "")],
              along=Axis("dimension", "dimension d"))  # fmt: skip


def test_points_of_several_curves_share_a_figure_with_the_line_between_them():
    (figure,) = system(ALONG).figures(points())
    assert (figure.name, figure.title, figure.x_label) == (
        "error-by-dimension", "Error", "dimension d",
    )  # fmt: skip
    drawn = record(figure)
    assert [call["label"] for call in drawn.named("points")] == ["n = 10", "n = 20", "n = 40"]
    for call, samples in zip(drawn.named("points"), (10, 20, 40), strict=True):
        assert list(call["x"]) == [16, 24]
        np.testing.assert_allclose(call["y"], 1 / (1 + samples / call["x"]) + 0.01)
    line = drawn.named("line")[0]
    assert len(line["x"]) > 4
    assert (line["x"].min(), line["x"].max()) == (16, 24)
    np.testing.assert_allclose(line["x"], np.round(line["x"]))  # the dimension is an integer
    np.testing.assert_allclose(line["y"], 1 / (1 + 10 / line["x"]))


def test_the_figure_appears_only_where_the_parameter_varies():
    assert system(ALONG).figures(points(dimension=(16,))) == []


def test_places_that_only_some_values_have_are_not_drawn():
    study = [*points(dimension=(16,), samples=(10, 20)), *points(dimension=(24,), samples=(20, 40))]
    (figure,) = system(ALONG).figures(study)
    assert figure.title == "Error (n = 20)"
    assert [series.kind for series in figure.series] == ["line", "points"]


def test_overlaid_parameters_have_a_colour_and_places_a_figure():
    panel = Panel("error", "Error", "error", [Trace("error", "")], along="dimension",
                  overlay=("decay",), at=lambda places: places[-2:])  # fmt: skip
    figures = system(panel).figures(points(decay=(0.0, 0.8)))
    assert [figure.title for figure in figures] == ["Error (n = 20)", "Error (n = 40)"]
    labels = [(series.label, series.kind, series.colour) for series in figures[0].series]
    assert labels == [
        ("decay 0, theory", "line", 0), ("decay 0", "points", 0),
        ("decay 0.8, theory", "line", 1), ("decay 0.8", "points", 1),
    ]  # fmt: skip
    assert figures[0].x_label == "dimension"


def test_other_parameters_that_vary_have_figures_of_their_own():
    names = [figure.name for figure in system(ALONG).figures(points(kind=("a", "b")))]
    assert names == ["error-by-dimension-kind-a", "error-by-dimension-kind-b"]


def test_a_function_of_the_setting_is_the_axis():
    root = Axis("dimension", "sqrt(d)", value=lambda setting: setting.dimension**0.5)
    panel = Panel("p", "P", "error", [Trace("error")], along=root, at=lambda places: places[:1])
    (figure,) = system(panel).figures(points())
    line, dots = figure.series
    np.testing.assert_allclose(dots.x, [4, 24**0.5])
    np.testing.assert_allclose(line.y, 1 / (1 + 10 / np.asarray(line.x) ** 2))


def test_what_is_no_number_has_predictions_at_its_values_alone():
    order = Axis("kind", "kind", value=lambda setting: "ab".index(setting.kind) + 1.0)
    panel = Panel("p", "P", "error", [Trace("error")], along=order, at=lambda places: places[:1])
    (figure,) = system(panel).figures(points(kind=("a", "b"), dimension=(16,)))
    line, _ = figure.series
    assert list(line.x) == [1, 2]
    np.testing.assert_allclose(line.y, 1 / (1 + 10 / 16))


def test_a_whole_curve_may_give_one_point():
    def largest(found):
        return max(point.setting.samples for point in found) / 10, 0.5

    panel = Panel("t", "T", "samples", [Trace("threshold", "half", reduce=largest)],
                  along="dimension", overlay=("decay",))  # fmt: skip
    (figure,) = system(panel).figures(points(decay=(0.0, 1.0)))
    line, dots = figure.series[:2]
    np.testing.assert_allclose([dots.x, dots.y, dots.error], [[16, 24], [4, 4], [0.5, 0.5]])
    np.testing.assert_allclose(line.y, 2 * np.asarray(line.x))
    with pytest.raises(InvalidParameter, match="a panel with `along`"):
        system(Panel("t", "T", "y", [Trace("threshold", reduce=largest)])).figures(points())


def test_lines_along_a_parameter_keep_the_budget():
    curves = system(ALONG).curves(points(), seconds=1e-9)
    (figure,) = ALONG(curves)
    assert "interpolated between 2 predictions" in figure.caption
    np.testing.assert_allclose(figure.series[0].y[[0, -1]], [1 / (1 + 10 / 16), 1 / (1 + 10 / 24)])


def test_an_unknown_parameter_is_refused():
    with pytest.raises(InvalidParameter, match=r"along.*dimension"):
        system(Panel("t", "T", "y", [Trace("error")], along="dimensoin")).figures(points())


def test_the_axis_in_other_coordinates_keeps_the_lines():
    product = Axis("samples", "n d", value=lambda setting: setting.samples * setting.dimension)
    panel = Panel("p", "P", "error", [Trace("error", "")], along=product, overlay=("dimension",))
    (figure,) = system(panel).figures(points())
    assert [list(series.x) for series in figure.series[1::2]] == [[160, 320, 640], [240, 480, 960]]
    line = figure.series[0]
    known = np.isfinite(line.x)
    np.testing.assert_allclose(
        np.asarray(line.y)[known], 1 / (1 + np.asarray(line.x)[known] / 16**2)
    )
    assert system(panel).figures(points(dimension=(16,))) == []


def test_what_curves_share_is_drawn_once():
    panel = Panel(
        "p", "P", "error", [Trace("error", "")], overlay=("dimension",),
        once=[Trace("bound", "bound", measured=False, dashed=True, colour=7)],
        note=lambda curves: f"{len(curves)} curves.",
        also=lambda curves: [Series("more", [1.0], [2.0], "line", colour=-1)],
        markers=lambda curves: [Marker(20.0, "here")],
    )  # fmt: skip
    (figure,) = system(panel).figures(points())
    labels = [series.label for series in figure.series]
    assert (labels.count("bound"), labels.count("more"), len(labels)) == (1, 1, 6)
    assert (figure.caption, [m.label for m in figure.markers]) == ("2 curves.", ["here"])


def test_lists_are_drawn_against_lists_for_each_point():
    panel = Panel(
        "p", "P", "overlap",
        [Trace("overlap", ""), Trace("error", "level", theory=None, dashed=True)],
        against="rank", x_label="rank",
    )  # fmt: skip
    (figure,) = system(panel).figures(points(dimension=(16,), samples=(10, 20)))
    assert figure.x_label == "rank"
    kinds = [(series.label, series.kind, series.colour) for series in figure.series]
    assert kinds == [
        ("n = 10, theory", "line", 0), ("n = 10", "points", 0),
        ("n = 20, theory", "line", 1), ("n = 20", "points", 1),
        ("n = 10, level", "dashed", 0), ("n = 20, level", "dashed", 1),
    ]  # fmt: skip
    assert all(list(series.x) == [1, 5] for series in figure.series)


def test_a_number_is_drawn_against_another():
    panel = Panel("p", "P", "overlap", [Trace("overlap", mean=True, theory=None)], against="error")
    (figure,) = system(panel).figures(points(dimension=(16,)))
    (dots,) = figure.series
    np.testing.assert_allclose(dots.x, 1 / (1 + np.array([10, 20, 40]) / 16) + 0.01)


def test_a_spectrum_has_a_histogram_its_law_and_lines():
    def law(point, values):
        x = np.linspace(0, 2, 5)
        return Law([("law", x, np.full(5, 10.0), "line")], [Marker(1.5, "edge"), Marker(np.nan)],
                   np.linspace(0, 2, 5), "Two replicates.", quantile=1.0)  # fmt: skip

    panel = Spectrum(
        "spectrum", "Spectrum at n = {:.0f}", "eigenvalue",
        lambda point: [[0.2, 0.3, np.nan], [1.2]], law, lambda curve: curve.points[-1:], "See.",
        place="samples-{:.0f}",
    )  # fmt: skip
    figures = system(panel).figures(points(kind=("a", "b"), dimension=(16,)))
    figure = figures[0]
    assert [f.name for f in figures] == [
        "spectrum-kind-a-samples-40", "spectrum-kind-b-samples-40",
    ]  # fmt: skip
    assert figure.title == "Spectrum at n = 40 (kind a)"
    histogram, line = figure.series
    np.testing.assert_allclose(histogram.y, [1.0, 0, 0.5, 0])  # per replicate
    np.testing.assert_allclose(line.y, 5.0)  # eigenvalues per bin
    assert [marker.label for marker in figure.markers] == ["edge"]
    assert figure.caption == "Two replicates. See."
    assert record(figure).named("histogram")


def test_spectra_of_several_points_share_a_figure():
    def law(point, values):
        x = np.array([0.0, 1.0])
        return Law([("law", x, x, "line")], [Marker(0.5 + point.setting.samples, "edge")], 4)

    panel = Spectrum("spectra", "Spectra", "eigenvalue", lambda point: [[0.0, point.setting.samples]],
                     law, lambda curve: curve.points, together=True)  # fmt: skip
    figures = system(panel).figures(points(kind=("a", "b"), dimension=(16,)))
    assert [(f.name, f.title) for f in figures] == [
        ("spectra-kind-a", "Spectra (kind a)"), ("spectra-kind-b", "Spectra (kind b)"),
    ]  # fmt: skip
    parts = figures[0].series
    assert [part.kind for part in parts] == ["histogram", "line"] * 3
    assert [part.colour for part in parts] == [0, 0, 1, 1, 2, 2]
    assert [part.label for part in parts[::2]] == ["samples = 10", "samples = 20", "samples = 40"]
    # common bins, from 0 to the largest eigenvalue of all points
    for part in parts[::2]:
        np.testing.assert_allclose(part.x, [0, 10, 20, 30, 40])
    np.testing.assert_allclose(
        [part.y for part in parts[::2]], [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    )
    np.testing.assert_allclose(parts[1].y, [0, 10])  # eigenvalues per bin
    assert [m.x for m in figures[0].markers] == pytest.approx([10.5, 20.5, 40.5])
    assert [(m.label, m.colour) for m in figures[0].markers] == [("", 0), ("", 1), ("", 2)]
    assert record(figures[0]).named("histogram")
    # One point alone has the figure of its own.
    assert system(replace(panel, at=lambda c: c.points[:1])).figures(points(dimension=(16,))) == []


def test_curves_that_share_figures_show_one_spectrum_each():
    panel = Spectrum("spectrum", "At n = {:.0f}", "eigenvalue", lambda point: [[1.0]],
                     lambda point, values: Law(), lambda curve: curve.points, overlay=("kind",),
                     place="samples-{:.0f}")  # fmt: skip
    shared = system(panel).figures(points(kind=("a", "b"), dimension=(16,)))
    assert [figure.title for figure in shared] == ["At n = 20 (kind a)", "At n = 20 (kind b)"]
    assert len(system(panel).figures(points(dimension=(16,)))) == 3


def test_a_spectrum_that_raises_costs_its_figure_alone():
    def law(point, values):
        if point.setting.kind == "b":
            raise ZeroDivisionError("no law")
        return Law()

    panel = Spectrum("spectrum", "Spectrum", "eigenvalue", lambda point: [[1.0]], law,
                     lambda curve: curve.points[-1:])  # fmt: skip
    drawn = system(panel).drawn(points(kind=("a", "b"), dimension=(16,)))
    assert [figure.name for figure in drawn.figures] == ["spectrum-kind-a", "spectrum-kind-b"]
    assert [(fault.part, fault.name) for fault in drawn.faults] == [("panel", "spectrum-kind-b")]


def test_points_may_be_chosen_and_curves_keep_their_words():
    def chosen(point):
        return point.setting.kind == "a" and point.setting.samples > 10

    panel = Panel("p", "P", "error", [Trace("error")], where=chosen)
    (figure,) = system(panel).figures(points(kind=("a", "b"), dimension=(16,)))
    assert (figure.name, list(figure.series[1].x)) == ("p-kind-a", [20, 40])
