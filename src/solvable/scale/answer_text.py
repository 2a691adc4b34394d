"""Text and JSON that ``solvable scale`` prints for an answer."""

from __future__ import annotations

from typing import Any

from solvable.plots.prose import Part, section
from solvable.plots.tables import Cell
from solvable.scale import words
from solvable.scale.answers import Answer
from solvable.scale.comparison import Comparison
from solvable.scale.prefactors import words as number_words
from solvable.scale.report import ScaleFiles, phase_tables


def answer_text(
    answer: Answer, *, symbolic: bool, files: ScaleFiles | None, details: bool = False
) -> list[Part]:
    """Compose an answer's sentences and tables, and the names of the written files."""
    symbolic = symbolic or not (answer.found[0].winners or answer.phases)
    parts = (
        _of_network(answer, symbolic=symbolic, details=details)
        if answer.comparison is None
        else _of_comparison(answer.comparison)
    )
    if answer.phases is not None:
        parts += section("Phases", ())
        for table in phase_tables(answer):
            parts += ["", table]
    if files is not None:
        parts += ["", f"report   {files.report}", f"result   {files.result}"]
        parts += [f"figure   {path}" for path in files.figures]
    return parts


def answer_json(answer: Answer, *, symbolic: bool, files: ScaleFiles | None) -> dict[str, Any]:
    """Return the JSON that ``--json`` prints."""
    table = {"table": words.symbolic_rows(answer.found[0])} if symbolic else {}
    return answer.to_dict() | table | ({"files": files.to_dict()} if files else {})


def _of_comparison(comparison: Comparison) -> list[Part]:
    first, *rest = comparison.sentences()
    parts: list[Part] = [Cell(first, "bold"), *map(Cell, rest)]
    for title, found in zip(comparison.titles, comparison.found, strict=True):
        parts += ["", Cell(f"{title}: {words.subject(found.network)}", "dim")]
        parts.append(Cell(words.headline(found)))
    return parts + (section("Warnings", comparison.warnings) if comparison.warnings else [])


def _of_network(answer: Answer, *, symbolic: bool, details: bool) -> list[Part]:
    found, tie, sums = answer.found[0], answer.tie, answer.sums
    at_sizes = "" if sums is None else f" {number_words.samples_sentence(sums)}"
    parts: list[Part] = [Cell(words.headline(found) + at_sizes, "bold")]
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
        parts += ["", words.pattern_table(found, details=details)]
        if tie is not None:
            parts += ["", Cell(number_words.tie_sentence(tie))]
        first = answer.cheapest
        sentences_of_winner = words.winner_sentences(found, first, details=details)
        parts += section(f"Layers of the pattern {first.name}", sentences_of_winner)
    if symbolic:
        parts += ["", words.symbolic_table(found)]
    if sums is not None:
        parts += ["", number_words.number_table(sums), ""]
        parts += [Cell(row) for row in number_words.number_sentences(sums)]
    return parts + (section("Warnings", answer.warnings) if answer.warnings else [])
