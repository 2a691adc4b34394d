"""Display of a file's diagnoses in a terminal, in a notebook, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from solvable.diagnose import words
from solvable.diagnose.attention import words as attention
from solvable.diagnose.attention.words import head_table
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import Estimate, MatrixDiagnosis
from solvable.diagnose.figures import depth_figures, head_figure, spectrum_figure
from solvable.diagnose.outliers import dead_rows, outlier_text
from solvable.diagnose.tables import matrix_table
from solvable.plots.figure import Figure
from solvable.plots.prose import Part, section
from solvable.plots.tables import Cell, Table, window


def line(found: Diagnosed) -> str:
    """File name and main result."""
    return f"{found.name}: {words.answer(found)} Read: {words.subject(found)}."


def tables(found: Diagnosed) -> list[Table]:
    """Two tables: one row per matrix, and one row per attention head or layer."""
    shown = [matrix_table(found)[0]] if found.matrices else []
    return [*shown, head_table(found.heads)] if found.heads else shown


def rows(found: Diagnosed) -> list[dict[str, Any]]:
    """Records for a data frame, one per matrix; each estimate with the ends of its interval."""
    return [_row(row) | {"needed_rank": found.needed_rank(row)} for row in found.matrices]


def _row(row: MatrixDiagnosis) -> dict[str, Any]:
    estimates = {
        "noise": row.noise,
        "shrinkage": row.shrinkage,
        "strongest": row.features[0].strength if row.features else None,
        "tail_exponent": row.exponent.spectrum if row.exponent else None,
    }
    numbers: dict[str, float | None] = {}
    for name, estimate in estimates.items():
        numbers |= _ends(name, estimate)
    compared = row.initial
    difference = None if compared is None else compared.difference
    return {
        "matrix": row.name,
        "shape": "x".join(map(str, row.shape)),
        "stable_rank": row.stable_rank,
        "directions_at_least": row.directions,
        "change": None if compared is None else compared.relative_change,
        "rank_of_change": None if compared is None else compared.rank,
        "new_directions_at_least": None if difference is None else difference.directions,
        "outliers": "; ".join(map(outlier_text, row.outliers)),
        "dead_rows": dead_rows(row.outliers),
        "norm": row.norm,
        "largest": row.largest,
        "phase": row.phase,
        "phase_p_value": row.phase_p_value,
        "features": len(row.features) if row.fitted else None,
        **numbers,
        "reason": row.reason,
    }


def _ends(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    ends = (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), ends, strict=True))


def figures(found: Diagnosed) -> Iterator[Figure]:
    """Yield figures against depth, and one with its name for each fitted matrix and head."""
    yield from depth_figures(found)
    for row in found.fitted:
        yield replace(spectrum_figure(row), name=row.name)
    for head in found.heads:
        if head.fitted:
            yield head_figure(head)


def diagnosis_text(
    found: Diagnosed, files: Mapping[str, str], stream: Any, *, details: bool = False
) -> list[Part]:
    """Return the answer, tables and sentences, fitted to the terminal's width, and the files written."""
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
            parts += [*_shown(head_table(found.heads), width, [attention.legend()]), ""]
        parts += answers
    for title, rows in words.sections(found):
        parts += section(title, rows, single=True)
    return [*parts, "", *(f"{name:<8} {path}" for name, path in files.items())]


def _shown(table: Table, width: int | None, legend: list[str]) -> list[Part]:
    """Return a table between empty lines, and below it the meaning of the columns."""
    return ["", table if width else table.to_text(), "", *(Cell(row, "dim") for row in legend)]
