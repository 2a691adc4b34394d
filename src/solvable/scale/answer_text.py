"""Text and JSON that ``solvable scale`` prints for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvable.plots.prose import Part, section
from solvable.plots.tables import Cell, Table
from solvable.scale import words
from solvable.scale.answers import Answer
from solvable.scale.exponents.linear_forms import about, power
from solvable.scale.figures import mark
from solvable.scale.phases.diagram import PhaseDiagram
from solvable.scale.prefactors import words as number_words

KIND = (
    "A lower bound on the number of samples as d grows, for networks that sample their posterior; it is "
    "no number of rows that is enough, and says nothing about optimisers."
)
"""First line of an answer: what kind of answer it is, and what it is not."""


def answer_text(answer: Answer, *, symbolic: bool, files: Sequence[Path] = ()) -> list[Part]:
    """Compose an answer's sentences and tables, and the names of the written files."""
    found, sums = answer.found, answer.sums
    at_sizes = "" if sums is None else f" {number_words.samples_sentence(sums)}"
    parts: list[Part] = [Cell(KIND, "dim"), Cell(words.headline(found) + at_sizes, "bold")]
    parts.append(Cell(words.subject(found.network), "dim"))
    if answer.enough:
        parts.append(Cell(f"{answer.have:,.0f} rows: {answer.enough}.", "bold"))
    if answer.classes is not None:
        parts.append(Cell(number_words.class_sentence(answer.classes)))
    if answer.real is not None:
        parts += section("What was read and measured", answer.real.words(numbers=sums is not None))
    if answer.overview is not None:
        sentences = (Cell(f"- {row}") for row in answer.overview.sentences())
        parts += ["", answer.overview.table(), "", *sentences]
    if found.winners:
        parts += ["", words.pattern_table(found)]
        first = found.winners[0]
        parts += section(
            f"Layers of the pattern {first.name}", words.winner_sentences(found, first)
        )
    if symbolic or not (found.winners or answer.phases):
        parts += ["", words.symbolic_table(found)]
    if sums is not None:
        parts += ["", number_words.number_table(sums), ""]
        parts.append(Cell(number_words.number_sentence(sums)))
    if answer.warnings:
        parts += section("Warnings", answer.warnings)
    if answer.phases is not None:
        parts += section("Phases", ())
        for table in phase_tables(answer.phases, rounded=found.is_rounded):
            parts += ["", table]
    return parts + (["", *(f"file     {path}" for path in files)] if files else [])


def answer_json(answer: Answer, *, symbolic: bool, files: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the JSON that ``--json`` prints."""
    table = {"table": words.symbolic_rows(answer.found)} if symbolic else {}
    return answer.to_dict() | table | ({"files": [str(path) for path in files]} if files else {})


def phase_tables(diagram: PhaseDiagram, *, rounded: bool) -> list[Table]:
    """Build the tables of cells and edges; exponents are rounded if the sizes are rounded."""
    text = about if rounded else str
    cells = Table("cell", "samples", "attained by", "corners")
    for number, cell in enumerate(diagram.cells):
        corners = "; ".join(
            " ".join(f"({', '.join(map(str, point))})" for point in piece) for piece in cell.pieces
        )
        held = (mark(number), power("d", cell.form), ", ".join(cell.names), corners)
        cells.add(*map(text, held))
    edges = Table("edge", "cells", "from", "to")
    for edge in diagram.edges:
        ends = (f"({x}, {y})" for x, y in (edge.start, edge.end))
        edges.add(*map(text, (edge.equation, " | ".join(map(mark, edge.cells)), *ends)))
    return [cells, edges] if diagram.edges else [cells]
