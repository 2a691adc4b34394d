"""Terminal output of ``solvable diagnose``."""

from __future__ import annotations

from typing import Any

from solvable.diagnose import words
from solvable.diagnose.attention import words as attention
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.pruning import words as pruning
from solvable.diagnose.pruning.results import Pruning
from solvable.diagnose.report import DiagnoseFiles
from solvable.diagnose.tables import matrix_table, small_table
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
    ]
    if found.pruning is not None:
        parts += _pruned(found.pruning, width)
    if found.fitted:
        table, dropped = matrix_table(found, width, details=details)
        parts += _shown(table, width, words.legend(found, details=details))
        if dropped:
            out = f"Not shown in a terminal of this width: {', '.join(dropped)}."
            parts.append(Cell(out, "dim"))
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
        if title == words.REFUSED and any(row.norm is not None for row in found.refused):
            sizes, more = small_table(found)
            legend = [f"result.json has {more} more."] if more else []
            parts += _shown(sizes, width, legend)[: None if more else -1]
    return [*parts, "", f"report   {files.report}", f"result   {files.result}"]


def _pruned(found: Pruning, width: int | None) -> list[Part]:
    """Print the ranking by the measured loss."""
    parts: list[Part] = ["", Cell(pruning.title(found), "bold"), Cell(pruning.answer(found))]
    if found.variants:
        parts += _shown(pruning.variant_table(found), width, [])
        rows = [*pruning.faults(found), *pruning.sentences(found)]
        parts += [Cell(f"- {row}") for row in rows]
    return parts


def _shown(table: Table, width: int | None, legend: list[str]) -> list[Part]:
    """Print a table between empty lines, and below it the meaning of the columns."""
    return ["", table if width else table.to_text(), "", *(Cell(row, "dim") for row in legend)]
