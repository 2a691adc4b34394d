"""Figures of phase diagrams: labels within cells, colours of neighbours, edges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from solvable.plots.figure import Figure
from solvable.plots.recording_backend import record
from solvable.scale.exponents.network_reader import network_of_flags
from solvable.scale.figures import mark, phase_figure
from solvable.scale.phases.diagram import PhaseDiagram
from solvable.scale.phases.exponent_ranges import phases_of
from solvable.scale.phases.polygons import contains

F = Fraction
REQUESTS = [
    ("erf:n1,erf:n2", "he3", 7),
    ("relu:n1,erf:n2", "he3", 4),
    ("poly3:n1,erf:n2", "he5", 5),
]


def diagram_of(layers: str, target: str, top: int) -> PhaseDiagram:
    box = {name: (F(0), F(top)) for name in ("n1", "n2")}
    found = phases_of(network_of_flags(layers, target), "n1", "n2", box=box)
    assert isinstance(found, PhaseDiagram)
    return found


def pieces_around(diagram: PhaseDiagram, x: float, y: float) -> list[int]:
    point = (F(x), F(y))
    return [
        number
        for number, cell in enumerate(diagram.cells)
        if any(contains(piece, point) for piece in cell.pieces)
    ]


@pytest.mark.parametrize(("layers", "target", "top"), REQUESTS)
def test_marks_are_inside_their_own_cells(layers: str, target: str, top: int) -> None:
    diagram = diagram_of(layers, target, top)
    figure = phase_figure(diagram)
    cells = [region for region in figure.regions if not region.hatched]
    assert len(cells) == len(diagram.cells)
    for number, region in enumerate(cells):
        if region.at is None:
            assert mark(number) in figure.caption
            continue
        assert region.mark == mark(number)
        # The letter, 0.07 by 0.13 inches on axes of 5.2 by 3.5.
        for across in (-0.5, 0.5):
            for up in (-0.5, 0.5):
                corner = (
                    region.at[0] + across * 0.07 / 5.2 * top,
                    region.at[1] + up * 0.13 / 3.5 * top,
                )
                assert pieces_around(diagram, *corner) == [number]


@pytest.mark.parametrize(("layers", "target", "top"), REQUESTS)
def test_neighbours_of_another_exponent_have_another_colour(
    layers: str, target: str, top: int
) -> None:
    diagram = diagram_of(layers, target, top)
    regions = phase_figure(diagram).regions
    for edge in diagram.edges:
        first, second = edge.cells
        same = diagram.cells[first].form == diagram.cells[second].form
        assert (regions[first].colour == regions[second].colour) == same


def test_every_edge_is_drawn_solid_or_dashed() -> None:
    diagram = diagram_of("erf:n1,erf:n2", "he3", 7)
    figure = phase_figure(diagram)
    drawn = {
        (series.kind, *np.round([*ends], 9))
        for series in figure.series
        for ends in np.column_stack([series.x, series.y]).reshape(-1, 3, 2)[:, :2].reshape(-1, 4)
    }
    assert len(drawn) == len(diagram.edges)
    for edge in diagram.edges:
        first, second = (diagram.cells[number].form for number in edge.cells)
        kind = "line" if first != second else "dashed"
        assert (kind, *np.round([float(x) for x in (*edge.start, *edge.end)], 9)) in drawn


def test_where_the_theory_ends_is_hatched_and_named() -> None:
    canvas = record(phase_figure(diagram_of("erf:n1,erf:n2", "he3", 7)))
    (hatched,) = [call for call in canvas.named("region") if call["hatched"]]
    assert hatched["label"] == "hatched: width of layer 1 below d and width of layer 2 below d"
    assert [polygon.max(axis=0).tolist() for polygon in hatched["polygons"]] == [[1, 7], [7, 1]]


def test_a_line_has_its_breakpoints_as_markers() -> None:
    line = phases_of(network_of_flags("erf:1", "he3"), "n", box={"n": (F(1), F(7))})
    figure: Figure = phase_figure(line)
    assert [(marker.x, marker.label) for marker in figure.markers] == [(5.0, "n = 5")]
    np.testing.assert_allclose(figure.series[0].y, [1, 3, 3])


def test_marks_go_on_after_z() -> None:
    assert [mark(number) for number in (0, 25, 26, 53)] == ["A", "Z", "A1", "B2"]
