"""The printed summary of learning: sentences and tables in the order of its three questions."""

from __future__ import annotations

from solvable.learn import words
from solvable.learn.files import LearnFiles
from solvable.learn.results import Learned
from solvable.learn.tables import method_table, outlook_table, rests_table, signal_table
from solvable.plots.tables import Cell, Table


def summary(found: Learned, files: LearnFiles) -> list[str | Cell | Table]:
    """Everything that the command prints of its results."""
    return [
        Cell(words.subject(found), "bold"),
        *(Cell(f"- {treatment}", "dim") for treatment in found.treatments),
        *(Cell(f"! {warning}.", "yellow") for warning in found.warnings),
        "",
        Cell(words.recommendation(found), "bold"),
        "",
        *_signal(found),
        "",
        *_errors(found),
        "",
        *_outlook(found),
        "",
        f"report   {files.report}",
        f"model    {files.model}",
        f"predict  solvable predict {files.model} NEW.csv",
    ]


def _signal(found: Learned) -> list[str | Cell | Table]:
    parts: list[str | Cell | Table] = [Cell("Which features can these rows teach?", "bold")]
    for layer in found.found:
        parts.append(Cell(words.signal_sentence(layer, found)))
        if layer.directions:
            parts += ["", signal_table(layer)]
        made = words.kinds_sentence(layer, found)
        if made:
            parts += ["", Cell(made), "", rests_table(layer)]
    return parts


def _errors(found: Learned) -> list[str | Cell | Table]:
    sentences = [
        words.headline(found),
        *words.class_sentences(found),
        *words.comparison_sentences(found),
    ]
    remarks = [f"{score.title}: {score.remark}" for score in found.methods if score.remark]
    return [
        Cell("How good are they on rows that were not seen?", "bold"),
        *map(Cell, sentences),
        "",
        method_table(found),
        "",
        *(Cell(sentence, "dim") for sentence in (*remarks, found.protocol)),
    ]


def _outlook(found: Learned) -> list[str | Cell | Table]:
    parts: list[str | Cell | Table] = [
        Cell("What would more data buy?", "bold"),
        Cell(words.outlook_sentence(found)),
    ]
    if found.outlook.expected:
        sentences = (found.outlook.verdict, *found.outlook.notes)
        parts += ["", outlook_table(found), "", *(Cell(sentence, "dim") for sentence in sentences)]
    return parts
