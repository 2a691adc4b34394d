"""Terminal output of ``solvable diagnose``."""

from __future__ import annotations

from typing import Any

from solvable.diagnose import words
from solvable.diagnose.attention import words as attention
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.report import DiagnoseFiles
from solvable.diagnose.tables import matrix_table
from solvable.plots.prose import Part, section
from solvable.plots.tables import Cell, Table, window


def diagnosis_text(
    found: Diagnosed, files: DiagnoseFiles, stream: Any, *, details: bool = False
) -> list[Part]:
    """Print the answer, tables and sentences, fitted to the terminal's width, and the files written."""
    width = window(stream)
    parts: list[Part] = [
        Cell(f"{found.name}: {words.answer(found)}", "bold"),
        Cell(f"Read: {words.subject(found)}.", "dim"),
        *(Cell(line, "bold") for line in words.alarms(found)),
    ]
    if any(row.norm is not None for row in found.matrices):
        table, dropped = matrix_table(found, width, details=details)
        parts += _shown(table, width, words.legend(found, details=details))
        if dropped:
            out = f"Not shown in a terminal of this width: {', '.join(dropped)}."
            parts.append(Cell(out, "dim"))
    if not found.quick:
        parts += section("What did the matrices learn?", ())
        parts += [Cell(words.headline(found)), *(Cell(f"- {row}") for row in words.meanings(found))]
    if sentences := attention.sentences(found):
        title, *answers = section(attention.QUESTION, sentences, single=True)[1:]
        parts += ["", title]
        if found.heads:
            parts += [*_shown(attention.head_table(found), width, [attention.legend()]), ""]
        parts += answers
    for title, rows in words.sections(found):
        parts += section(title, rows, single=True)
    return [*parts, "", *(f"{name:<8} {path}" for name, path in files.to_dict().items())]


def _shown(table: Table, width: int | None, legend: list[str]) -> list[Part]:
    """Print a table between empty lines, and below it the meaning of the columns."""
    return ["", table if width else table.to_text(), "", *(Cell(row, "dim") for row in legend)]
