"""Results of learning in plain words, for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from solvable.learn.request import LEAST_ROWS
from solvable.learn.results import (
    ColumnShare,
    Expected,
    LayerFound,
    Learned,
    MethodScore,
    SignalOfClass,
)
from solvable.networks.permutation import DRAWS
from solvable.plots.numbers import format_number
from solvable.plots.words import percent, percents

VERDICTS = {"worse": "worse", "better": "better", "no difference": "not told apart"}
"""Whether the data tell a method from the learned features, in a word or two."""


def error_name(found: Learned) -> str:
    """What the error is called."""
    return "variance not explained" if found.is_regression else "wrong predictions"


def subject(found: Learned) -> str:
    """What was learned from, such as "1797 images of 8 x 8 pixels, 10 classes of 'digit'"."""
    if found.image_shape:
        shape = " x ".join(str(side) for side in found.image_shape[:2])
        what = f"{found.n_samples} images of {shape} pixels"
    else:
        columns = "column" if found.n_columns == 1 else "columns"
        what = f"{found.n_samples} rows, {found.n_columns} {columns}"
    if found.is_regression:
        return f"{what}, a number to predict: {found.target!r}"
    return f"{what}, {len(found.class_labels)} classes of {found.target!r}"


def recommendation(found: Learned) -> str:
    """The method to use, and why, in a sentence or two."""
    chosen = next((score for score in found.methods if score.recommended), None)
    if chosen is None:
        constant = next(score for score in found.methods if score.key == "constant")
        return f"Use none of these models: none is shown to do better than {constant.title}."
    stored = "" if chosen is found.learned else _stored(chosen, found)
    if chosen.auc is not None:
        best = max(found.methods, key=lambda score: score.auc or 0.0)
        value, least = area_text(chosen), f"the largest AUC ({best.title}, {area_text(best)})"
        reason = f"the AUC of {value} is the largest"
        stored = (
            " Its outputs order the rows; choose the output from which a row counts as of the smaller "
            f"class by what errors cost.{stored}"
        )
    else:
        best = min(found.methods, key=lambda one: math.inf if one.error is None else one.error)
        value, least = percent(chosen.error), f"the smallest ({best.title}, {percent(best.error)})"
        reason = f"the error of {value} is the smallest"
    if chosen is not best:
        reason = (
            f"{reason.split(' is ')[0]} is within one standard error of {least}, and it is the simplest "
            "of such methods"
        )
    return f"Use {chosen.title}: {reason}.{stored}"


def _stored(chosen: MethodScore, found: Learned) -> str:
    """That the stored model is another one than the chosen method, and what that costs."""
    if chosen.auc is not None:
        return f" The stored model holds the learned features (AUC {area_text(found.learned)})."
    error = percent(found.learned.error)
    if error == percent(chosen.error):
        return " The stored model holds the learned features, which do as well."
    if chosen.verdict == "better":
        return f" The stored model holds the learned features, which do worse ({error})."
    return (
        f" The stored model holds the learned features: {error}, a difference that these rows do not "
        "tell from chance."
    )


def area_text(score: MethodScore) -> str:
    """The area under the ROC curve, or a dash."""
    return "–" if score.auc is None else f"{score.auc:.3f}"


def class_sentences(found: Learned) -> list[str]:
    """What the error hides where one class has nearly all rows."""
    shown = [score for score in found.methods if score.balanced_error is not None]
    if not shown:
        return []
    sentences = [
        "One class has more than 80 % of the rows, so that predicting it alone is seldom wrong: see the "
        "balanced error, the mean of the errors of the classes"
        + (", and the AUC." if any(score.auc is not None for score in shown) else ".")
    ]
    blind: dict[tuple[str, ...], list[str]] = {}
    for score in shown:
        if score.never and score.key != "constant":
            blind.setdefault(score.never, []).append(score.title)
    for classes, titles in blind.items():
        named = ", ".join(map(repr, classes[:3])) + (" and others" if len(classes) > 3 else "")
        sentences.append(f"Never predicted is {named} by: {'; '.join(titles)}.")
    return sentences


def headline(found: Learned) -> str:
    """The error of the learned features in a sentence."""
    score = found.learned
    value, interval = percents(score.error, score.lower, score.upper)
    if found.is_regression:
        assert score.error is not None
        typical = format_number((found.target_deviation or 0.0) * score.error**0.5, 3)
        return (
            f"On rows that they have not seen, the learned features leave {value} of the variance of "
            f"{found.target!r} unexplained ({interval}): a typical error of {typical}."
        )
    return (
        f"On rows that they have not seen, the learned features are wrong {value} of the time "
        f"({interval})."
    )


def comparison_sentences(found: Learned) -> list[str]:
    """Which methods are worse, better, or cannot be told apart: a sentence per outcome."""
    sentences = []
    if not any(score.beats_constant for score in found.methods):
        constant = next(score for score in found.methods if score.key == "constant")
        sentences.append(f"No method is shown to do better than {constant.title}.")
    outcomes = {
        "worse": "Learned features do better than: {}.",
        "better": "Learned features do worse than: {}.",
        "no difference": "No difference that this data can show to: {}.",
    }
    for verdict, sentence in outcomes.items():
        names = [score.title for score in found.methods[1:] if score.verdict == verdict]
        if names:
            sentences.append(sentence.format("; ".join(names)))
    return sentences


def difference_text(score: MethodScore) -> str:
    """Difference to the learned features in points, with interval, such as "+4.7 (3.6 to 5.9)"."""
    if score.difference is None:
        return ""
    assert score.difference_lower is not None
    assert score.difference_upper is not None
    precision = score.difference_upper - score.difference_lower
    ends = score.difference, score.difference_lower, score.difference_upper
    value, lower, upper = (percent(end, precision).removesuffix(" %") for end in ends)
    sign = "+" if score.difference > 0 and float(value) else ""
    return f"{sign}{value} ({lower} to {upper})"


def signal_sentence(layer: LayerFound, found: Learned) -> str:
    """How many directions carry signal, in a sentence."""
    where = f"Filter {layer.number}" if len(found.found) > 1 else "The filter"
    if layer.number > 1 and not found.found[layer.number - 2].directions:
        return (
            f"{where} was not tested: below it the filter found nothing, and what that kept was chosen "
            "to go with the target."
        )
    if layer.directions == 0:
        kept = "the strongest one alone" if layer.kept == 1 else f"{layer.kept} of them"
        return (
            f"{where} found no direction that carries signal about {found.target!r} at this sample "
            f"size: none is stronger than in all of {DRAWS} shuffles of the target. The model keeps "
            f"{kept}; do not read anything into it."
        )
    verb = "direction that carries" if layer.directions == 1 else "directions that carry"
    low, high = min(layer.directions_in_folds), max(layer.directions_in_folds)
    folds = f"{low}" if low == high else f"{low} to {high}"
    inside, rough = f" (of the rows outside one fold: {folds})", ""
    if not low <= layer.directions <= high:
        inside = ""
        more = " and more rows tell more" if layer.directions > high else ""
        rough = (
            f" The count is rough, as some are hardly above that limit{more}: the rows outside one fold "
            f"give {folds}."
        )
    limit = ""
    if any(_is_open(signal, layer) for signal in layer.signals):
        limit = " The weakest tested is still above the threshold, so there may be more."
    return (
        f"{where} found {layer.directions} {verb} signal about {found.target!r} in "
        f"{found.n_samples} rows{inside}: each is more than "
        f"{layer.threshold:g} times as strong as with shuffled targets.{rough}{limit}"
    )


def _is_open(signal: SignalOfClass, layer: LayerFound) -> bool:
    return bool(signal.ratios) and signal.ratios[-1] > layer.threshold


def ratio_text(value: float | None) -> str:
    """Strength over null, such as "5.3 times"."""
    return "" if value is None else f"{format_number(value, 2)} times"


def emergence_text(rows: float | None) -> str:
    """Rows at which a direction is expected to be found, in two digits; small ones are no number."""
    if rows is None:
        return "–"
    return f"below {LEAST_ROWS}" if rows < LEAST_ROWS else f"{float(f'{rows:.1e}'):.0f}"


def expected_rows(found: Learned) -> list[tuple[str, str, str, str]]:
    """Table of the outlook: how much data, rows, error, interval."""
    return [
        (_times(point), str(point.rows), *percents(point.error, point.lower, point.upper))
        for point in found.outlook.expected
    ]


def _times(point: Expected) -> str:
    return "all rows at hand" if point.factor == 1 else f"{point.factor:g} times the rows"


def outlook_sentence(found: Learned) -> str:
    """What twice the data is expected to buy, or why nothing can be said."""
    outlook = found.outlook
    if not outlook.expected:
        reason = outlook.verdict.removeprefix("Extrapolation is refused: ")
        return f"No forecast can be made: {reason}"
    now, twice = outlook.expected[:2]
    value, interval = percents(twice.error, twice.lower, twice.upper)
    gained = percents(now.error, now.lower, now.upper)[0]
    what = f"the {error_name(found)} is" if found.is_regression else f"{error_name(found)} are"
    return (
        f"With twice the rows ({twice.rows}), {what} expected to fall from about {gained} to "
        f"{value} ({interval})."
    )


def lost_text(part: ColumnShare) -> str:
    """What is lost without a column, such as "'age' 23 %"."""
    # Estimates of a whole may be above it.
    return f"{part.column!r} {100 * min(part.lost or 0.0, 1.0):.0f} %"


def _named(columns: Sequence[ColumnShare], count: int) -> list[str]:
    """Columns on which a signal rests, those that take most of it first."""
    named = sorted((part for part in columns if part.named), key=lambda part: -(part.lost or 0.0))
    return [lost_text(part) for part in named[:count]]


def kinds_sentence(layer: LayerFound, found: Learned) -> str:
    """What there can be more of than columns, and on which columns they rest; empty if unknown."""
    if found.image_shape or not layer.columns:
        return ""
    columns = found.n_columns
    more = ""
    if layer.directions > columns:
        more = (
            f"There are more directions than the {columns} columns because a direction is a function of "
            f"columns: {columns} can be straight lines, {columns * (columns + 1) // 2} squares and "
            f"products of two, and others bend more; these rows tell {layer.directions} apart. "
        )
    looked = [one for one in layer.strongest if one.confirmed is not None]
    if not looked:
        return more.strip()
    count = sum(bool(one.confirmed) for one in looked)
    seen = (
        f"Of the {len(looked)} directions listed, {count} are told from chance on unseen rows too. "
    )
    if len(looked) == 1:
        seen = f"It is {'also' if count else 'not'} told from chance on unseen rows. "
    largest = ", ".join(_named(layer.columns, 5))
    if not largest:
        return f"{more}{seen}No column alone is shown to carry what all directions together tell there."
    return (
        f"{more}{seen}What all directions together tell there rests on {largest}: these shares are lost "
        "where the column is shuffled."
    )


def rest_rows(layer: LayerFound) -> list[tuple[str, str, str, str, str]]:
    """Table of directions: number, signal on unseen rows, columns it rests on, straight, found again."""
    rows = []
    for direction in layer.strongest:
        if direction.number > layer.directions or not direction.columns:
            continue
        unseen = "–"
        if direction.unseen is not None:
            shown = f"{100 * direction.unseen:.0f} %"
            unseen = shown if direction.confirmed else "not shown"
        rests = ", ".join(_named(direction.columns, 3)) or "–"
        shares = (direction.straight, direction.again)
        straight, again = ("–" if one is None else f"{100 * one:.0f} %" for one in shares)
        rows.append((str(direction.number), unseen, rests, straight, again))
    return rows


RESTS_ON = (
    "On unseen rows: what is left of the signal of the likest direction of models that lack the rows on "
    'which it is measured; "not shown" where it is not told from zero, all directions taken '
    "together: do not read anything into those. Rests on: the part of it that is lost where a column is "
    "shuffled among those rows, for columns where that is told from zero, all of them taken "
    "together. Columns that go together can stand in for each other, and then each takes little or none. "
    "A straight direction is a line in the columns, the rest of it is products and bends. Found "
    "again: squared correlation with that likest direction, median over folds; where it is low, it is "
    "mixed with its neighbours. Nothing here says what would happen if a column were changed."
)
"""What the table of directions tells."""


def class_rows(layer: LayerFound) -> Sequence[tuple[str, str, str, str]]:
    """Table of signals: name, strongest ratio, rows at which it emerges, directions."""
    rows = []
    for signal in layer.signals:
        more = "more than " if _is_open(signal, layer) else ""
        strongest = ratio_text(signal.strongest)
        emergence = emergence_text(signal.emergence_rows)
        rows.append((signal.label, strongest, emergence, f"{more}{signal.directions}"))
    return rows
