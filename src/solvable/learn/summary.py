"""Printed summary of learning: the recommended method, the data, errors, features and forecast."""

from __future__ import annotations

from solvable.learn import choice_words, direction_words, importance_words, words
from solvable.learn.files import LearnFiles
from solvable.learn.results import Learned
from solvable.learn.tables import method_table, outlook_table, rests_table, signal_table
from solvable.plots.tables import Cell, Table


def summary(
    found: Learned, files: LearnFiles, *, details: bool = False
) -> list[str | Cell | Table]:
    """Return the summary that the command prints; `details` adds columns and methods."""
    return [
        Cell(choice_words.recommendation(found), "bold"),
        *map(Cell, choice_words.reason_sentences(found)),
        *(Cell(f"! {warning}.", "yellow") for warning in found.warnings),
        "",
        Cell(words.subject(found)),
        *(Cell(f"- {treatment}", "dim") for treatment in found.treatments),
        "",
        *_errors(found, details),
        "",
        *_columns(found),
        *_signal(found, details),
        "",
        *_outlook(found, details),
        "",
        f"report   {files.report}",
        f"model    {files.model}",
        f"predict  solvable predict {files.model} NEW.csv",
    ]


def _columns(found: Learned) -> list[str | Cell | Table]:
    sentences = importance_words.importance_sentences(found)
    if not sentences:
        return []
    table = importance_words.importance_table(found)
    title = f"Which columns does {choice_words.with_the(found.chosen)} use?"
    if choice_words.is_plural(found.chosen):
        title = f"Which columns do {choice_words.with_the(found.chosen)} use?"
    parts: list[str | Cell | Table] = [Cell(title, "bold"), *map(Cell, sentences)]
    if table.rows:
        parts += ["", table, "", Cell(importance_words.HINT, "dim")]
    return [*parts, ""]


def _signal(found: Learned, details: bool) -> list[str | Cell | Table]:
    parts: list[str | Cell | Table] = [Cell("Which features carry signal?", "bold")]
    owner = direction_words.owner_sentence(found)
    parts += [Cell(owner)] if owner else []
    for layer in found.found:
        parts.append(Cell(direction_words.signal_sentence(layer, found)))
        if layer.directions and details:
            parts += ["", signal_table(layer)]
        made = direction_words.kinds_sentence(layer, found)
        if made:
            parts += ["", Cell(made), "", rests_table(layer, details)]
    return parts


def _errors(found: Learned, details: bool) -> list[str | Cell | Table]:
    sentences = [
        words.headline(found),
        *words.class_sentences(found),
        *words.comparison_sentences(found),
        *words.test_sentences(found),
        *filter(None, [words.probability_sentence(found)]),
    ]
    remarks = [f"{score.title}: {score.remark}" for score in found.methods if score.remark]
    return [
        Cell("How good are the models on unseen rows?", "bold"),
        *map(Cell, sentences),
        "",
        method_table(found, details),
        "",
        *(Cell(sentence, "dim") for sentence in [choice_words.rule(found), *remarks]),
        *[Cell(found.protocol, "dim")] * details,
    ]


def _outlook(found: Learned, details: bool) -> list[str | Cell | Table]:
    parts: list[str | Cell | Table] = [
        Cell("What error is expected with more rows?", "bold"),
        Cell(words.outlook_sentence(found)),
    ]
    if found.outlook.expected:
        sentences = [*[found.outlook.verdict] * details, *found.outlook.notes]
        parts += ["", outlook_table(found), *([""] if sentences else [])]
        parts += [Cell(sentence, "dim") for sentence in sentences]
    return parts
