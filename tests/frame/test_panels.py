"""Panels: each row gives the figures of a study, with theory as lines and measurements as points."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Point
from solvable.frame.system import System
from solvable.frame.traces import Trace, spread_entries
from solvable.plots.figure import Figure


class Setting(Parameters):
    samples: int = 10
    dimension: int = 4
    kind: str = "plain"
    seeds: int = 0


CALLS: list[int] = []


def predict(parameters):
    CALLS.append(parameters.samples)
    ratio = parameters.samples / parameters.dimension
    return {
        "overlap": [1 - 1 / (1 + ratio), 1 - 1 / (1 + ratio / 4)],
        "error": 1 / (1 + ratio),
        "threshold": [2.0 * parameters.dimension, 8.0 * parameters.dimension],
        "crossing": 3.0 * parameters.dimension,
    }


def measure(parameters, rng):
    return {"overlap": [0.5, 0.4], "error": 0.3, "never": None}


def system(panels, **axis):
    fields = {"parameter": "samples", "label": "samples n", "ignore": ("seeds",), "resolution": 9}
    return System(name="s", title="S", version="1", parameters=Setting, measure=measure,
                  predict=predict, axis=Axis(**fields | axis), panels=panels)  # fmt: skip


def points(**grid):
    """Return a point with two replicates for each size of each setting."""
    found = []
    for dimension in grid.get("dimension", (4,)):
        for kind in grid.get("kind", ("plain",)):
            for samples in (40, 10, 20):
                setting = Setting(samples=samples, dimension=dimension, kind=kind)
                prediction = predict(setting)
                metrics = [
                    {"overlap": [0.5 + x, 0.4], "error": 0.3 + x, "never": None} for x in (0.0, 0.1)
                ]
                found.append(Point(setting.model_dump(), metrics, prediction))
    return found


OVERLAP = Panel("overlap", "Features appear", "squared overlap", [Trace("overlap", "feature")],
                "Each at its own size.", {"threshold": "threshold"}, y_range=(0.0, 1.0))  # fmt: skip


def test_a_list_gives_a_line_and_points_for_each_entry():
    (figure,) = system([OVERLAP]).figures(points())
    assert isinstance(figure, Figure)
    assert (figure.name, figure.title, figure.x_label) == (
        "overlap",
        "Features appear",
        "samples n",
    )
    kinds = [(series.label, series.kind, series.colour) for series in figure.series]
    assert kinds == [
        ("feature 1, theory", "line", 0),
        ("feature 1", "points", 0),
        ("feature 2, theory", "line", 1),
        ("feature 2", "points", 1),
    ]
    line, dots = figure.series[:2]
    assert list(dots.x) == [10, 20, 40]
    np.testing.assert_allclose(dots.y, 0.55)
    np.testing.assert_allclose(dots.error, 0.05)
    grid = np.asarray(line.x)[::4]  # predicted places; three others between neighbours
    assert (grid[0], grid[-1]) == (pytest.approx(10 / 1.4), pytest.approx(40 * 1.4))
    # An integer parameter has predictions only at integers.
    np.testing.assert_allclose(line.y[::4], 1 - 1 / (1 + np.round(grid) / 4))
    assert [(marker.x, marker.label, marker.colour) for marker in figure.markers] == [
        (8.0, "threshold 1", 0), (32.0, "threshold 2", 1)
    ]  # fmt: skip


def test_predictions_are_made_once_for_all_panels():
    study = points()
    CALLS.clear()
    error = Panel("error", "Error", "error", [Trace("error", "learner")])
    assert len(system([OVERLAP, error]).figures(study)) == 2
    assert len(CALLS) == 9


def test_curves_that_differ_have_figures_of_their_own_or_share_one():
    error = Panel("error", "Error", "error", [Trace("error", "learner")], "", {"crossing": "half"})
    shared = Panel("shared", "Error", "error", [Trace("error")], "", {"crossing": "half"},
                   overlay=("dimension",))  # fmt: skip
    figures = system([error, shared], words={"dimension": "d = {}"}).figures(
        points(dimension=(4, 8), kind=("plain", "odd"))
    )
    names = [figure.name for figure in figures]
    assert names[:2] == ["error-d-4-kind-plain", "error-d-4-kind-odd"]
    assert names[4:] == ["shared-kind-plain", "shared-kind-odd"]
    assert figures[0].title == "Error (d = 4, kind plain)"
    labels = [series.label for series in figures[4].series]
    assert labels == ["d = 4, theory", "d = 4", "d = 8, theory", "d = 8"]
    assert [series.colour for series in figures[4].series] == [0, 0, 1, 1]
    assert [(marker.x, marker.colour) for marker in figures[4].markers] == [(12.0, 0), (24.0, 1)]


def test_what_was_never_measured_has_no_points_and_bounds_are_dashed():
    panel = Panel("p", "P", "y", [
        Trace("never", "baseline", theory=None),
        Trace("error", "bound", measured=False, dashed=True),
        Trace("overlap", "mean", mean=True),
    ])  # fmt: skip
    (figure,) = system([panel]).figures(points())
    kinds = [(series.label, series.kind) for series in figure.series]
    assert kinds == [("bound", "dashed"), ("mean, theory", "line"), ("mean", "points")]
    np.testing.assert_allclose(figure.series[2].y, (0.55 + 0.4) / 2)


def test_a_panel_may_be_for_some_curves_and_a_function_of_them():
    odd = Panel("odd", "Odd", "y", [Trace("error")], when=lambda curve: curve.setting.kind == "odd")
    counted = []
    study = system([odd, lambda curves: counted.append(len(curves)) or []])
    assert [figure.name for figure in study.figures(points(kind=("plain", "odd")))] == ["odd"]
    assert counted == [2]
    assert study.figures([]) == []


def test_lines_end_where_the_parameter_does():
    class Short(Parameters):
        samples: float = 1.0

        def model_post_init(self, context):
            if self.samples > 45:
                raise ValueError("at most 45")

    short = System(name="s", title="S", version="1", parameters=Short, measure=measure,
                   predict=lambda p: {"error": p.samples}, axis=Axis("samples", "n"),
                   panels=[Panel("e", "E", "y", [Trace("error")])])  # fmt: skip
    study = [Point({"samples": x}, [{"error": 1.0}], {"error": x}) for x in (10.0, 40.0)]
    (figure,) = short.figures(study)
    line = np.asarray(figure.series[0].y)
    assert np.isnan(line[-1])
    assert np.isfinite(line[0])


def test_rows_that_name_what_nothing_returns_are_refused():
    for trace in (
        Trace("overlop"),
        Trace("error", theory="overlop"),
        Trace("threshold", theory=None),
    ):
        with pytest.raises(InvalidParameter, match=r"Correct the panel's row"):
            system([Panel("p", "P", "y", [trace])]).figures(points())


def test_many_entries_are_spread_in_their_logarithm():
    assert spread_entries(4) == [0, 1, 2, 3]
    ranks = spread_entries(1_000)
    assert (ranks[0], ranks[-1]) == (0, 999)
    assert len(ranks) <= 11


def test_a_coordinate_of_zero_makes_the_axis_linear():
    (figure,) = system([Panel("e", "E", "e", [Trace("error")])]).figures(
        [*points(), Point(Setting(samples=0).model_dump(), [{"error": 1.0}], {"error": 1.0})]
    )
    assert figure.x_scale == "linear"
    assert np.isfinite(figure.series[0].x).all()
    assert (figure.series[0].x[0], figure.series[1].x[0]) == (0, 0)


def test_lists_may_grow_along_the_axis():
    grown = system([Panel("o", "O", "o", [Trace("overlap", "feature", theory=None)])])
    found = points()
    for metrics in found[1].metrics:  # the entry at the smallest size
        metrics["overlap"] = metrics["overlap"][:1]
    (figure,) = grown.figures(found)
    second = next(series for series in figure.series if series.label == "feature 2")
    assert np.isnan(second.y).tolist() == [True, False, False]


def test_one_point_on_a_linear_axis_has_a_line_around_it():
    linear = system([Panel("e", "E", "e", [Trace("error")])], scale="linear")
    (figure,) = linear.figures(points()[:1])
    assert figure.series[0].x[0] < 40 < figure.series[0].x[-1]


def test_a_marker_that_nothing_predicts_is_refused():
    with pytest.raises(InvalidParameter, match="'nowhere', which predict does not return"):
        system([Panel("e", "E", "e", [Trace("error")], markers={"nowhere": "n"})]).figures(points())
