"""Figures from theory alone: lines, points of a run on top, and refinement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from solvable.explore.lines import Lines, theory_figures
from solvable.explore.nodes import FEWEST, nodes_within
from solvable.frame import registry
from solvable.systems.base import Axis, Panel, Parameters, System, Trace
from solvable.verbs import run


class Mean(Parameters):
    """Parameters of a mean."""

    samples: int = 4
    """Number of samples."""
    noise: float = 1.0
    """Standard deviation."""


def measure(parameters: Mean, rng: np.random.Generator) -> dict[str, Any]:
    """Return the squared mean of noise."""
    return {"square": float(rng.normal(0, parameters.noise, parameters.samples).mean() ** 2)}


CALLS: list[int] = []


def predict(parameters: Mean) -> dict[str, Any]:
    """Predict the squared mean."""
    CALLS.append(parameters.samples)
    return {"square": parameters.noise**2 / parameters.samples, "threshold": 20.0}


system = System(
    name="mean", title="A mean", version="1", parameters=Mean, measure=measure, predict=predict,
    axis=Axis("samples", "samples"),
    panels=[
        Panel("square", "Mean", "square", [Trace("square", "mean")], markers={"threshold": "here"}),
        Panel("measured", "Measured", "square", [Trace("square", "mean", theory=None)]),
    ],
)  # fmt: skip


def series(lines: Lines, kind: str) -> Any:
    """Return the first series of a kind in the first figure."""
    return next(part for part in lines.figures[0].series if part.kind == kind)


def test_theory_alone_draws_the_line_its_thresholds_and_the_setting():
    lines = theory_figures(system, {"samples": 30, "noise": 2.0})
    line = series(lines, "line")
    computed = slice(None, None, 4)  # three places between neighbours are interpolated
    np.testing.assert_allclose(line.y[computed], 4 / np.round(line.x[computed]))
    assert [part.kind for part in lines.figures[0].series] == ["line"]
    assert [marker.label for marker in lines.figures[0].markers] == ["here", "samples = 30"]
    assert lines.omitted == ["measured"]
    assert lines.refusal == ""
    assert lines.complete


def test_a_setting_that_is_seen_again_computes_nothing():
    theory_figures(system, {"noise": 3.0}, seconds=5)
    CALLS.clear()
    theory_figures(system, {"noise": 3.0}, seconds=5)
    assert CALLS == []


def test_points_of_a_run_lie_on_the_line_of_their_setting():
    result = run(system, preset=None, samples=[10, 40], noise=[1.0, 2.0], seeds=3, workers=1)
    lines = theory_figures(system, {"noise": 2.0, "samples": 12}, result)
    points = series(lines, "points")
    assert list(points.x) == [10, 40]
    assert lines.left_out == 2
    assert series(lines, "line").x[0] < 10
    assert [figure.name for figure in lines.figures] == ["square", "measured"]
    other = theory_figures(system, {"noise": 1.5}, result)
    assert other.left_out == 4
    assert [figure.name for figure in other.figures] == ["square"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"samples": "many"}, "samples is 'many'"), ({"sample": 3}, "allowed: ")],
)
def test_rubbish_is_refused_in_words(settings, words):
    lines = theory_figures(system, settings)
    assert words in lines.refusal
    assert lines.figures == []


def test_a_setting_without_prediction_says_why():
    setting = {"selection": "modulus", "second_layer": "in-sample"}
    found = theory_figures(registry.load("sequential-recovery"), setting, seconds=0.1)
    assert "allowed for predictions with selection=modulus" in found.refusal.replace("\n", " ")
    assert found.figures == []


def test_coarse_lines_are_close_and_refined_ones_exact():
    named = registry.load("kernel-staircase")
    coarse = series(theory_figures(named, {"noise": 0.2}, seconds=0.0), "line")
    whole = series(theory_figures(named, {"noise": 0.2}, seconds=20.0), "line")
    assert np.nanmax(np.abs(coarse.y - whole.y)) < 0.1 * np.ptp(whole.y[np.isfinite(whole.y)])


def test_nodes_gather_where_the_line_changes():
    def along(grid: np.ndarray) -> list[dict[str, Any]]:
        return [{"step": float(np.tanh(40 * (x - 0.7)))} for x in grid]

    grid = np.linspace(0, 1, 101)
    few = nodes_within(along, grid, 0.0)
    assert len(few.found) <= FEWEST + 1
    seen: list[float] = []

    def slow(places: np.ndarray) -> list[dict[str, Any]]:
        seen.extend(places)
        return along(places)

    nodes = nodes_within(slow, grid, 1.0)
    assert nodes.complete
    added = np.array(seen[FEWEST : FEWEST + 12])
    assert np.mean(np.abs(added - 0.7) < 0.15) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("name", [listing.name for listing in registry.available()])
def test_every_system_draws_its_default_from_theory_without_a_fault(name):
    lines = theory_figures(registry.load(name), {}, seconds=0.1)
    assert lines.refusal == ""
    assert lines.faults == []
    assert lines.figures


@pytest.mark.slow
def test_drawn_data_sets_give_a_smooth_line():
    # The second difference of a line of independent draws is 0.08 of its range here.
    named = registry.load("curse-of-detail")
    setting = named.parameters()
    places = np.geomspace(14, 28, 8)
    error = np.array([row["test_error"] for row in named.along(setting, places)])
    assert np.median(np.abs(np.diff(error, 2))) < 0.04 * np.ptp(error)
