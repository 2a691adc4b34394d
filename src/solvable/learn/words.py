"""Sentences and table cells that describe the results of learning, for terminal and report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from solvable.learn.request import LEAST_ROWS, METRICS
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

VERDICTS = {"worse": "worse", "better": "better", "no difference": "no clear difference"}
"""Words for the comparison of a method's error with the learned features' error."""


def error_name(found: Learned) -> str:
    """Return the name of the error measure."""
    return "variance not explained" if found.is_regression else "wrong predictions"


def subject(found: Learned) -> str:
    """Describe the data, for example "1797 images of 8 x 8 pixels, 10 classes of 'digit'"."""
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
    """Recommend a method and give the reason, in two or three sentences."""
    chosen = next((score for score in found.methods if score.recommended), None)
    if chosen is None:
        constant = next(score for score in found.methods if score.key == "constant")
        return f"Use none of these models: none is clearly better than predicting {constant.title}."
    if found.metric:
        return _by_metric(chosen, found)
    stored = "" if chosen is found.learned else _stored(chosen, found)
    if chosen.auc is not None:
        best = max(found.methods, key=lambda score: score.auc or 0.0)
        least = f"the largest AUC ({best.title}, {area_text(best)})"
        reason, most = f"the AUC on unseen rows is {area_text(chosen)}", "the largest AUC"
        stored = (
            " Choose the output above which a row is assigned to the smaller class by the cost of the "
            f"two kinds of errors.{stored}"
        )
    else:
        best = min(found.methods, key=lambda one: math.inf if one.error is None else one.error)
        least = f"the smallest error ({best.title}, {percent(best.error)})"
        reason, most = _error_clause(chosen, found), "the smallest error"
    why = f"{reason}, {most} of all methods."
    if chosen is not best:
        why = f"{reason}. This is the simplest method within one standard error of {least}."
    return f"Use {chosen.title}: {why}{stored}"


def _by_metric(chosen: MethodScore, found: Learned) -> str:
    kind = METRICS[found.metric]
    known = [score for score in found.methods if score.metric is not None]
    best = (max if kind.largest else min)(known, key=lambda score: score.metric or 0.0)
    what = f"Use {chosen.title}: its {kind.title} on unseen rows is {metric_text(chosen)[0]}"
    if chosen is best:
        what += ", the best of all methods."
    else:
        what += (
            ". This is the simplest method within one standard error of the best "
            f"({best.title}, {metric_text(best)[0]})."
        )
    if chosen is found.learned:
        return what
    return f"{what} The stored model uses the learned features ({metric_text(found.learned)[0]})."


def metric_text(score: MethodScore) -> tuple[str, str]:
    """Write the metric and its interval, or a dash if there is none."""
    if score.metric is None or score.metric_lower is None or score.metric_upper is None:
        return "–", ""
    ends = (format_number(end, 3) for end in (score.metric_lower, score.metric_upper))
    return format_number(score.metric, 3), " to ".join(ends)


def metric_title(found: Learned) -> str:
    """Return the title of the metric that was asked for; "" without one."""
    return METRICS[found.metric].title if found.metric else ""


def _error_clause(score: MethodScore, found: Learned) -> str:
    error = percent(score.error)
    if found.is_regression:
        return f"{error} of the variance on unseen rows is not explained"
    return f"{error} of the predictions on unseen rows are wrong"


def _stored(chosen: MethodScore, found: Learned) -> str:
    """Report the error of the stored model, if another method is recommended."""
    if chosen.auc is not None:
        return f" The stored model uses the learned features (AUC {area_text(found.learned)})."
    error = percent(found.learned.error)
    if error == percent(chosen.error):
        return " The stored model uses the learned features, whose error is the same."
    if chosen.verdict == "better":
        return f" The stored model uses the learned features, whose error is larger ({error})."
    return (
        f" The stored model uses the learned features: their error is {error}, and a difference of this "
        "size may be due to chance."
    )


def area_text(score: MethodScore) -> str:
    """Write the area under the ROC curve, or a dash if there is none."""
    return "–" if score.auc is None else f"{score.auc:.3f}"


def class_sentences(found: Learned) -> list[str]:
    """Name the balanced error and the classes never predicted, if one class has most rows."""
    shown = [score for score in found.methods if score.balanced_error is not None]
    if not shown:
        return []
    sentences = [
        "One class has more than 80 % of the rows, so always predicting it is seldom wrong. Look at the "
        "balanced error, which is the mean of the errors of the classes"
        + (", and the AUC." if any(score.auc is not None for score in shown) else ".")
    ]
    blind: dict[tuple[str, ...], list[str]] = {}
    for score in shown:
        if score.never and score.key != "constant":
            blind.setdefault(score.never, []).append(score.title)
    for classes, titles in blind.items():
        named = ", ".join(map(repr, classes[:3])) + (" and others" if len(classes) > 3 else "")
        sentences.append(f"These methods never predict {named}: {'; '.join(titles)}.")
    return sentences


def headline(found: Learned) -> str:
    """State the error of the learned features in a sentence."""
    score = found.learned
    value, interval = percents(score.error, score.lower, score.upper)
    if found.is_regression:
        assert score.error is not None
        typical = format_number((found.target_deviation or 0.0) * score.error**0.5, 3)
        return (
            f"On unseen rows, the learned features leave {value} of the variance of {found.target!r} "
            f"unexplained (95 % interval: {interval}). The typical error is {typical}."
        )
    return (
        f"On unseen rows, {value} of the predictions from learned features are wrong (95 % interval: "
        f"{interval})."
    )


def comparison_sentences(found: Learned) -> list[str]:
    """List the worse, the better and the not clearly different methods, in one sentence each."""
    sentences = []
    if not any(score.beats_constant for score in found.methods):
        constant = next(score for score in found.methods if score.key == "constant")
        sentences.append(f"No method is clearly better than predicting {constant.title}.")
    outcomes = {
        "worse": "The learned features have a smaller error than: {}.",
        "better": "The learned features have a larger error than: {}.",
        "no difference": "Not clearly different from the learned features: {}.",
    }
    for verdict, sentence in outcomes.items():
        names = [score.title for score in found.methods[1:] if score.verdict == verdict]
        if names:
            sentences.append(sentence.format("; ".join(names)))
    return sentences


def test_sentences(found: Learned) -> list[str]:
    """State the error of the stored model on the rows of another file; empty without such rows."""
    test = found.test
    if test is None:
        return []
    kind = "unexplained_variance" if found.is_regression else "wrong"
    rows = f"{test['rows']} test rows"
    if "lower" not in test:
        typical = format_number(test["root_mean_square"], 3)
        return [f"The typical error of the stored model on the {rows} is {typical}."]
    value, interval = percents(test[kind], test["lower"], test["upper"])
    what = (
        f"leaves {value} of the variance of {found.target!r} unexplained"
        if found.is_regression
        else f"predicts {value} wrongly"
    )
    sentences = [f"On the {rows}, the stored model {what} (95 % interval: {interval})."]
    score = found.learned
    if score.upper is not None and test["lower"] > score.upper:
        sentences.append(
            "That is more than on the held-out rows of the training table, so the test rows are of "
            "another kind."
        )
    elif score.lower is not None and test["upper"] < score.lower:
        sentences.append("That is less than on the held-out rows of the training table.")
    else:
        sentences.append("That agrees with the error on held-out rows of the training table.")
    if test["copies"]:
        sentences.append(
            f"{test['copies']} test rows are equal to a training row in all columns that are used; "
            "if they are copies, the error is too small."
        )
    sentences += [f"Test rows: {note}." for note in test["notes"]]
    return sentences


def probability_sentence(found: Learned) -> str:
    """State how well the calibrated probabilities agree with observed shares; "" for numbers."""
    calibration = found.reliability
    if calibration is None:
        return ""
    return (
        "Probabilities of the learned features, calibrated on held-out folds, deviate from observed "
        f"shares by {100 * calibration.deviation:.1f} percentage points on average; "
        f"{100 * calibration.chance:.1f} are expected by chance. Their log loss is "
        f"{format_number(calibration.log_loss, 3)}; that of the shares of the classes is "
        f"{format_number(calibration.constant_log_loss, 3)}."
    )


def difference_text(score: MethodScore) -> str:
    """Write the difference from the learned features in percentage points, as "+4.7 (3.6 to 5.9)"."""
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
    """State the number of directions that carry signal."""
    where = f"Filter {layer.number}: " if len(found.found) > 1 else ""
    if layer.number > 1 and not found.found[layer.number - 2].directions:
        return (
            f"{where}not tested. The filter below it found no signal and passed on the directions most "
            "correlated with the target, which would bias the test."
        )
    if layer.directions == 0:
        kept = "only the strongest one" if layer.kept == 1 else f"{layer.kept} of them"
        return (
            f"{where}no direction carries signal about {found.target!r} at this number of rows: none is "
            f"stronger than in all of {DRAWS} shuffles of the target. The model uses "
            f"{kept}; do not interpret it."
        )
    verb = "direction carries" if layer.directions == 1 else "directions carry"
    low, high = min(layer.directions_in_folds), max(layer.directions_in_folds)
    folds = f"{low}" if low == high else f"{low} to {high}"
    inside, rough = f" ({folds} in the training rows of a fold)", ""
    if not low <= layer.directions <= high:
        inside = ""
        more = ", and more rows show more directions" if layer.directions > high else ""
        rough = (
            f" The count is approximate, as some directions are just above that threshold{more}: the "
            f"training rows of a fold give {folds}."
        )
    limit = ""
    if any(_is_open(signal, layer) for signal in layer.signals):
        limit = " The weakest direction tested is above the threshold, so there may be more."
    return (
        f"{where}{layer.directions} {verb} signal about {found.target!r} in "
        f"{found.n_samples} rows{inside}: each is more than "
        f"{layer.threshold:g} times as strong as with shuffled targets.{rough}{limit}"
    )


def _is_open(signal: SignalOfClass, layer: LayerFound) -> bool:
    return bool(signal.ratios) and signal.ratios[-1] > layer.threshold


def ratio_text(value: float | None) -> str:
    """Write a strength divided by its null, such as "5.3 times"."""
    return "" if value is None else f"{format_number(value, 2)} times"


def emergence_text(rows: float | None) -> str:
    """Write the number of rows at which a direction emerges, rounded to two digits."""
    if rows is None:
        return "–"
    return f"below {LEAST_ROWS}" if rows < LEAST_ROWS else f"{float(f'{rows:.1e}'):.0f}"


def expected_rows(found: Learned) -> list[tuple[str, str, str, str]]:
    """Return the rows of the forecast table: data, rows, error, interval."""
    return [
        (_times(point), str(point.rows), *percents(point.error, point.lower, point.upper))
        for point in found.outlook.expected
    ]


def _times(point: Expected) -> str:
    return "all rows" if point.factor == 1 else f"{point.factor:g} times the rows"


def outlook_sentence(found: Learned) -> str:
    """State the error expected with twice the rows, or why there is no forecast."""
    outlook = found.outlook
    if not outlook.expected:
        reason = outlook.verdict.removeprefix("Extrapolation is refused: ")
        return f"There is no forecast: {reason}"
    now, twice = outlook.expected[:2]
    value, interval = percents(twice.error, twice.lower, twice.upper)
    gained = percents(now.error, now.lower, now.upper)[0]
    what = "variance not explained" if found.is_regression else "share of wrong predictions"
    level = f"{100 * outlook.confidence:g} % interval"
    return (
        f"With twice the rows ({twice.rows}), the {what} is expected to fall from about {gained} to "
        f"{value} ({level}: {interval})."
    )


def lost_text(part: ColumnShare) -> str:
    """Write the share of the signal lost when a column is shuffled, such as "'age' 23 %"."""
    # The estimate of a share may exceed 1.
    return f"{part.column!r} {100 * min(part.lost or 0.0, 1.0):.0f} %"


def _named(columns: Sequence[ColumnShare], count: int) -> list[str]:
    """List the columns that a signal needs, by the signal lost when the column is shuffled."""
    named = sorted((part for part in columns if part.named), key=lambda part: -(part.lost or 0.0))
    return [lost_text(part) for part in named[:count]]


def kinds_sentence(layer: LayerFound, found: Learned) -> str:
    """Explain why there are more directions than columns, and name the columns that the signal needs."""
    if found.image_shape or not layer.columns:
        return ""
    columns = found.n_columns
    more = ""
    if layer.directions > columns:
        more = (
            f"There are more directions ({layer.directions}) than columns ({columns}), because a "
            f"direction is a function of the columns: {columns} directions can be linear, "
            f"{columns * (columns + 1) // 2} can be quadratic, and others have a higher degree. "
        )
    looked = [one for one in layer.strongest if one.confirmed is not None]
    if not looked:
        return more.strip()
    count = sum(bool(one.confirmed) for one in looked)
    seen = (
        f"Of the {len(looked)} directions listed, {count} also carry signal on unseen rows, at 5 % "
        "significance. "
    )
    if len(looked) == 1:
        seen = f"It {'also carries' if count else 'carries no clear'} signal on unseen rows. "
    largest = ", ".join(_named(layer.columns, 5))
    if not largest:
        return f"{more}{seen}The signal of all directions there does not clearly rest on any one column."
    return (
        f"{more}{seen}The signal of all directions there rests on {largest}. Each number is the share of "
        "the signal that is lost when the column is shuffled."
    )


def rest_rows(layer: LayerFound) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of the table of directions: number, unseen signal, columns, linear, found again."""
    rows = []
    for direction in layer.strongest:
        if direction.number > layer.directions or not direction.columns:
            continue
        unseen = "–"
        if direction.unseen is not None:
            shown = f"{100 * direction.unseen:.0f} %"
            unseen = shown if direction.confirmed else "not clear"
        rests = ", ".join(_named(direction.columns, 3)) or "–"
        shares = (direction.straight, direction.again)
        straight, again = ("–" if one is None else f"{100 * one:.0f} %" for one in shares)
        rows.append((str(direction.number), unseen, rests, straight, again))
    return rows


RESTS_ON = (
    "Signal on unseen rows: each direction is matched with the most correlated direction of the model of "
    "each fold, and the signal of the match on the test rows is divided by its signal on the training "
    'rows. "Not clear" means not significantly above zero after correction for all directions; do '
    "not interpret these. Rests on: the share of that signal which is lost when a column is shuffled "
    "among the test rows, for columns with a significant loss. Correlated columns can replace each "
    "other, and then the loss of each is small. Linear: the share of the direction's variance that a "
    "linear function of the columns explains. Found again: the squared correlation with the match, "
    "median over folds; where it is low, directions of similar strength are mixed. These shares do not "
    "predict the effect of changing a column."
)
"""Explanation below the table of directions."""


def class_rows(layer: LayerFound) -> Sequence[tuple[str, str, str, str]]:
    """Return the rows of the table of classes: name, strongest ratio, emergence, directions."""
    rows = []
    for signal in layer.signals:
        more = "more than " if _is_open(signal, layer) else ""
        strongest = ratio_text(signal.strongest)
        emergence = emergence_text(signal.emergence_rows)
        rows.append((signal.label, strongest, emergence, f"{more}{signal.directions}"))
    return rows
