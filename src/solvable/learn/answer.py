"""Answer of learning: the recommended model, its error, columns, directions and forecast."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from solvable.answers.sections import Answer, Folded, Items, Part, Picture, Section
from solvable.answers.sections import figures_of as figures_in
from solvable.learn import feature_words, words
from solvable.learn.figures import (
    CAPTION,
    curve_figure,
    draw_pictures,
    effect_figures,
    judged_figures,
    strength_figure,
)
from solvable.learn.results import LayerFound, Learned
from solvable.learn.tables import (
    confusion_table,
    method_table,
    outlook_table,
    rests_table,
    signal_table,
)
from solvable.plots.figure import Figure
from solvable.plots.tables import Cell, Table
from solvable.plots.words import percents

ALL_METHODS = (
    "All methods use the same rows and folds, and differences are computed row by row. A method is "
    "called better or worse if its difference is significant at 5 % after correction for all methods "
    "(Holm), and some method beats {}. Intervals assume independent rows; they are too narrow if rows "
    "belong together (one patient, one day) and no column of the file shows it."
)

DIRECTION = (
    "A direction is a linear combination of random features of the columns. Its null is the strength "
    "of the strongest direction with shuffled targets, after all stronger directions are removed. The "
    "null falls as the inverse square root of the number of rows; a direction emerges at the number of "
    "rows at which its null equals its strength."
)

BY_CLASS = "Unseen rows by class (line) and predicted class (column):"


def answer(found: Learned, *, command: str = "", model: str = "model.safetensors") -> Answer:
    """Return the answer; `command` repeats the run, and `model` is the path of the stored model."""
    predicts = f"This command predicts new rows with {words.with_the(found.chosen)}"
    commands = [("This command repeats the run:", command)] if command else []
    commands.append((f"{predicts}, fitted to all rows:", f"solvable predict {model} NEW.csv"))
    sections = [_errors(found), _columns(found), _signal(found), _outlook(found)]
    network = Section("Network", [found.network], "network", on_page=True)
    return Answer(
        f"{found.name}: {found.chosen.title}",
        [
            Cell(words.recommendation(found), "bold"),
            *words.reason_sentences(found),
            *(Cell(f"{warning}.", "yellow") for warning in found.warnings),
            "",
            words.subject(found),
            Items(found.treatments, "dim"),
        ],
        [*(section for section in sections if section.parts), network],
        _cards(found),
        commands,
        {"seed": found.seed, "seconds": f"{found.seconds:.0f}", **found.versions},
    )


def _errors(found: Learned) -> Section:
    remarks = [f"{score.title}: {score.remark}" for score in found.methods if score.remark]
    confusion = confusion_table(found)
    return Section(
        "How good are the models on unseen rows?",
        [
            words.headline(found),
            *words.class_sentences(found),
            *words.comparison_sentences(found),
            *words.test_sentences(found),
            *filter(None, [words.probability_sentence(found)]),
            method_table(found),
            *(Cell(sentence, "dim") for sentence in [words.rule(found), *remarks]),
            Cell(found.protocol, "hint"),
            Folded(
                "how methods are compared",
                [Cell(ALL_METHODS.format(found.methods[-1].title), "hint")],
            ),
            *([Folded("unseen rows by class", [BY_CLASS, confusion])] if confusion.rows else []),
            *judged_figures(found),
        ],
        "error",
    )


def _columns(found: Learned) -> Section:
    sentences = feature_words.importance_sentences(found)
    table = feature_words.importance_table(found)
    verb = "do" if words.is_plural(found.chosen) else "does"
    title = f"Which columns {verb} {words.with_the(found.chosen)} use?"
    parts: list[Part] = [*sentences]
    if sentences and table.rows:
        parts += [table, Cell(feature_words.HINT, "dim")]
    return Section(title, [*parts, *effect_figures(found)] if sentences else [], "columns")


def _signal(found: Learned) -> Section:
    parts: list[Part] = [*filter(None, [feature_words.owner_sentence(found)])]
    for layer in found.found:
        parts += _layer(layer, found)
        if layer.number == 1 and found.pictures is not None and len(found.pictures):
            title = "Pictures of the strongest directions"
            parts.append(Picture(title, lambda: _address(found), CAPTION, "learn-filters"))
    return Section("Which features carry signal?", parts, "signal")


def _address(found: Learned) -> str:
    """Return the pictures of directions as the address of an image."""
    return f"data:image/svg+xml;base64,{b64encode(draw_pictures(found)).decode()}"


def _layer(layer: LayerFound, found: Learned) -> Iterator[Part]:
    yield feature_words.signal_sentence(layer, found)
    if layer.directions:
        hint = Cell(DIRECTION, "hint")
        yield Folded("strengths of the directions", [signal_table(layer), hint])
    rests = feature_words.kinds_sentence(layer, found)
    if rests:
        yield from (rests, rests_table(layer), Cell(feature_words.RESTS_ON, "hint"))
    if layer.signals:
        yield strength_figure(found, layer)


def _outlook(found: Learned) -> Section:
    outlook = found.outlook
    parts: list[Part] = [words.outlook_sentence(found)]
    if outlook.expected:
        notes = [Cell(note, "dim") for note in outlook.notes]
        parts += [outlook_table(found), Cell(outlook.verdict, "hint"), *notes]
    curve = [curve_figure(found)] if len(outlook.curve) > 1 else []
    return Section("What error is expected with more rows?", [*parts, *curve], "more")


def _cards(found: Learned) -> list[tuple[str, str, str]]:
    """Return the number, name and interval of each of the page's three answers."""
    score, name = found.chosen, words.error_name(found)
    value, interval = percents(score.error, *found.ends)
    named = [one for one in found.explained.importance if one.named]
    if found.explained.importance:
        many = f"of {len(found.explained.importance)}, for {words.with_the(score)}"
        second = (str(len(named)), "columns or groups of correlated ones matter", many)
    else:
        held = " and ".join(str(_held(layer)) for layer in found.found)
        rows = f"in {found.n_samples} rows, learned features"
        second = (held, "directions carry signal", rows)
    third = ("–", f"{name} with twice the rows", "no forecast")
    if found.outlook.expected:
        twice = found.outlook.expected[1]
        expected, ends = percents(twice.error, twice.lower, twice.upper)
        third = (expected, third[1], ends)
    return [(value, name, f"{interval} on unseen rows, {score.title}"), second, third]


def _held(layer: LayerFound) -> int:
    """Return the number of directions that hold on unseen rows, or of all if that was not measured."""
    looked = [one.confirmed for one in layer.strongest if one.confirmed is not None]
    return sum(looked) if looked else layer.directions


def line(found: Learned) -> str:
    """Return one line: the model to use, the data set and its target."""
    return f"{words.recommendation(found)} {found.name}: {words.subject(found)}"


def tables(found: Learned) -> list[Table]:
    """Return tables of directions, of the errors of all methods, and of the forecast."""
    directions = [signal_table(layer) for layer in found.found if layer.directions]
    if feature_words.kinds_sentence(found.found[0], found):
        directions.append(rests_table(found.found[0]))
    outlook = [outlook_table(found)] if found.outlook.expected else []
    return [*directions, method_table(found).printed(details=True), *outlook]


def rows(found: Learned) -> list[dict[str, Any]]:
    """Return a data frame with one row per method, learned features first."""
    return [asdict(score) for score in found.methods]


def figures(found: Learned) -> list[Figure]:
    """Return the figures of errors, effects, strengths of directions, and the learning curve."""
    return figures_in(answer(found))
