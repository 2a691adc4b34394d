"""Files that ``solvable scale`` writes: numbers as JSON, an HTML page, and pictures of the phases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from solvable.pages.environment import GENERATOR, drawings, page_environment, picture
from solvable.pages.result_directory import RESULT, ResultDirectory
from solvable.paths import whole_directory
from solvable.plots.figure import Figure
from solvable.plots.files import draw_all, write_atomically, write_figures
from solvable.plots.recording_backend import record
from solvable.plots.tables import Table
from solvable.scale import words
from solvable.scale.answers import Answer
from solvable.scale.exponents.linear_forms import about, power
from solvable.scale.exponents.sample_exponent import scaling_of
from solvable.scale.figures import line_figure, mark, phase_figure
from solvable.scale.phases.diagram import Cell, PhaseDiagram, PhaseLine
from solvable.scale.phases.polygons import Point, centroid, sides, turn
from solvable.scale.prefactors import words as number_words

REPORT = "report.html"

FORMAT = "solvable-scale-1"  # marks a file as a result of this command

FIGURES = tuple(
    f"{name}.{kind}" for name in ("phase-diagram", "phase-line") for kind in ("svg", "pdf")
)

DIRECTORY = ResultDirectory("scale", "network", FORMAT, (REPORT, RESULT, *FIGURES))


class ScaleFiles(NamedTuple):
    """Paths of the written files."""

    report: Path  # path of the HTML page
    result: Path  # path of the JSON file with the numbers
    figures: tuple[Path, ...]  # paths of the pictures, SVG and PDF

    def to_dict(self) -> dict[str, Any]:
        """Return the paths as text."""
        figures = [str(path) for path in self.figures]
        return {"report": str(self.report), "result": str(self.result), "figures": figures}


def write_answer(
    answer: Answer, directory: Path | None, *, command: str, request: Sequence[object]
) -> ScaleFiles:
    """Write the numbers, the page and the pictures; the default directory is named after the request."""
    fingerprint = hashlib.sha256(f"{FORMAT} {tuple(request)!r}".encode()).hexdigest()
    directory = directory or DIRECTORY.default(answer.title, fingerprint)
    DIRECTORY.check(directory, fingerprint)
    content = {
        "format": FORMAT,
        "command": command,
        "fingerprint": fingerprint,
        "version": version("solvable"),
        **answer.to_dict(),
    }
    figures = answer_figures(answer)
    with whole_directory(directory) as draft:
        # The numbers are written first, because their file marks the directory if writing the page fails.
        text = json.dumps(content, allow_nan=False) + "\n"
        write_atomically(draft / RESULT, text.encode())
        pictures = write_figures(figures, draft, drawn=draw_all(figures))
        write_atomically(draft / REPORT, _html(answer, figures, command).encode())
    names = tuple(directory / path.relative_to(draft) for path in pictures)
    return ScaleFiles(directory / REPORT, directory / RESULT, names)


def answer_figures(answer: Answer) -> list[Figure]:
    """Draw the phase diagram, or the exponent along a line; return no figure without phases."""
    if answer.phases is None:
        return []
    if isinstance(answer.phases, PhaseDiagram):
        figure = phase_figure(answer.phases, comparison=answer.comparison is not None)
    else:
        figure = line_figure(answer.phases)
    return [_rounded_figure(figure) if answer.is_rounded else figure]


def phase_tables(answer: Answer) -> list[Table]:
    """Build the tables of cells and edges; exponents are rounded if the sizes are rounded."""
    if answer.phases is None:
        return []
    found = [cell_table(answer.phases)]
    if isinstance(answer.phases, PhaseDiagram) and answer.phases.edges:
        found.append(edge_table(answer.phases))
    return [_rounded_table(table) for table in found] if answer.is_rounded else found


def _rounded_table(table: Table) -> Table:
    rows = [[about(cell.text) for cell in cells] for cells, _ in table.rows]
    return Table.of(*table.columns, rows=rows, title=table.title)


def _rounded_figure(figure: Figure) -> Figure:
    """Round the exponents in the marks, labels and caption of a figure."""
    regions = [
        replace(region, label=about(region.label), mark=about(region.mark))
        for region in figure.regions
    ]
    markers = [replace(marker, label=about(marker.label)) for marker in figure.markers]
    return replace(figure, caption=about(figure.caption), regions=regions, markers=markers)


def cell_table(phases: PhaseDiagram | PhaseLine) -> Table:
    """Build the table of cells with exponent, winning patterns and position."""
    if isinstance(phases, PhaseLine):
        table = Table("from", "to", "samples", "attained by")
        for cell in phases.cells:
            (low,), (high,) = min(cell.pieces[0]), max(cell.pieces[0])
            table.add(str(low), str(high), power("d", cell.form), ", ".join(cell.names))
        return table
    table = Table("cell", "samples", "attained by", "corners")
    for number, cell in enumerate(phases.cells):
        table.add(mark(number), power("d", cell.form), ", ".join(cell.names), _corners(cell))
    return table


def edge_table(diagram: PhaseDiagram) -> Table:
    """Build the table of edges with equation, neighbouring cells and change of the exponent."""
    table = Table("edge", "in powers of d", "cells", "from", "to", "what changes")
    for edge in diagram.edges:
        cells = " | ".join(mark(number) for number in edge.cells)
        ends = (f"({x}, {y})" for x, y in (edge.start, edge.end))
        table.add(edge.equation, edge.powers, cells, *ends, edge.change)
    return table


def cell_sentences(answer: Answer) -> list[tuple[str, list[str]]]:
    """Describe the layers at a point inside each cell of one network's diagram."""
    if answer.comparison is not None or not isinstance(answer.phases, PhaseDiagram):
        return []
    diagram, found = answer.phases, []
    model, point = answer.found[0].network.symbolic()
    for number, cell in enumerate(diagram.cells):
        x, y = _inside(cell)
        values = {**point, **diagram.point, diagram.x: x, diagram.y: y}
        there = scaling_of(model, {s: v for s, v in values.items() if s in model.symbols})
        place = f"{mark(number)}, at {diagram.x} = {x} and {diagram.y} = {y}"
        for winner in there.winners:
            layers = words.layer_sentences(winner)
            if answer.is_rounded:
                place, layers = about(place), [about(text) for text in layers]
            if layers:
                found.append((f"{place}: {winner.name}", layers))
    return found


def _inside(cell: Cell) -> Point:
    """Return a point inside a cell: the simplest fractions near the centre of its largest piece."""
    middle = centroid(cell.pieces[0])
    for below in (2**k for k in range(12)):
        point = tuple(Fraction(round(x * below), below) for x in middle)
        if all(turn(*side, point) > 0 for side in sides(cell.pieces[0])):
            return point
    return middle


def _corners(cell: Cell) -> str:
    return "; ".join(" ".join(f"({x}, {y})" for x, y in piece) for piece in cell.pieces)


def _html(answer: Answer, figures: list[Figure], command: str) -> str:
    from plotly.offline import get_plotlyjs

    return (
        page_environment("solvable.scale")
        .get_template("scale.html.jinja")
        .render(
            answer=answer,
            words=words,
            number_words=number_words,
            generator=f"{GENERATOR} {version('solvable')}",
            shown=[
                (figure, picture(figure), [call["text"] for call in record(figure).named("note")])
                for figure in figures
            ],
            tables=phase_tables(answer),
            layers=cell_sentences(answer),
            command=command,
            drawings=drawings(figures),
            plotly=get_plotlyjs() if figures else "",
        )
    )
