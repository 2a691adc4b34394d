"""Sentences and table cells that describe the named model, errors and forecast."""

from __future__ import annotations

import math

import numpy as np

from solvable.forecast.view import needed_sentence
from solvable.learn.competitors import BLEND, CONSTANT, LEARNED
from solvable.learn.request import METRICS
from solvable.learn.results import Expected, Learned, MethodScore, Outlook
from solvable.learn.row_errors import class_sentence
from solvable.plots.numbers import format_number
from solvable.plots.words import percent, percents

RULE = "The method with the best score on held-out rows is used; of two equal ones, the simpler."
BLENDED = (
    "The method with the smallest error on held-out rows is used; of two equal ones, the simpler. A "
    "blend is used instead if its squared error is smaller than that of choosing one method for each "
    "fold by the other folds."
)


def recommendation(found: Learned) -> str:
    """Name the model to use and the reason, in one sentence."""
    chosen = found.chosen
    if chosen.key == CONSTANT:
        return f"Use none of these models: none is clearly better than predicting {chosen.title}."
    rival = found.learned if chosen.key not in (LEARNED, BLEND) else _next_best(found)
    why = "" if rival is None else f"; {_compared(rival, chosen, found)}"
    return f"Use {chosen.phrase or chosen.title}: {score_clause(chosen, found)}{why}."


def reason_sentences(found: Learned) -> list[str]:
    """List the methods that are not clearly worse, and state which model is stored."""
    chosen = found.chosen
    tied = [score for score in found.methods if score.tied]
    sentences = []
    if tied:
        listed = "; ".join(f"{score.title} ({value_text(score, found)})" for score in tied)
        sentences.append(f"Not clearly worse on these {chosen.test_rows} rows: {listed}.")
    constant = next(score for score in found.methods if score.key == CONSTANT)
    tied_errors = not any(score.beats_constant for score in found.methods)
    if found.metric == "log-loss" and tied_errors and chosen.key != CONSTANT:
        sentences.insert(
            0,
            "No method has clearly fewer wrong predictions than always predicting "
            f"{constant.title}, so the log loss of the probabilities decides.",
        )
    if chosen.auc is not None and not found.metric:
        sentences.append(
            "Choose the output above which a row is assigned to the smaller class by the cost of the two "
            "kinds of errors."
        )
    stored = name(chosen) if chosen.key != CONSTANT else f"always predicts {chosen.title}"
    sentences.append(f"The stored model ({stored}) is fitted to all {found.n_samples} rows.")
    return sentences


def rule(found: Learned) -> str:
    """State how the method is chosen."""
    by_error = not found.metric and found.chosen.auc is None
    return BLENDED if by_error and any(one.key == BLEND for one in found.methods) else RULE


def name(score: MethodScore) -> str:
    """Return the name of a method in a sentence, such as "a Gaussian kernel"."""
    return "a blend" if score.key == BLEND else score.phrase or score.title


def with_the(score: MethodScore) -> str:
    """Return the name of a method after its first mention: "the Gaussian kernel", "boosted trees"."""
    article, _, rest = name(score).partition(" ")
    if article in ("a", "an", "the"):
        return f"the {rest}"
    return f"the {name(score)}" if score.key == LEARNED else name(score)


def is_plural(score: MethodScore) -> bool:
    """Return True if the name is a plural, such as "boosted trees"."""
    return name(score).partition(" ")[0] not in ("a", "an", "the")


def value_text(score: MethodScore, found: Learned) -> str:
    """Write the number by which methods are chosen: the error, the AUC or the metric."""
    if found.metric:
        return "–" if score.metric is None else format_number(score.metric, 3)
    if found.chosen.auc is not None:
        return "–" if score.auc is None else f"{score.auc:.3f}"
    return percent(score.error)


def score_clause(score: MethodScore, found: Learned) -> str:
    """State the score of a method on held-out rows, such as "3.1 % of its predictions are wrong"."""
    value, its = value_text(score, found), "their" if is_plural(score) else "its"
    if found.metric:
        return f"{its} {METRICS[found.metric].title} on held-out rows is {value}"
    if score.auc is not None:
        return f"{its} AUC on held-out rows is {value}"
    if found.is_regression:
        leaves = "they leave" if is_plural(score) else "it leaves"
        return f"{leaves} {value} of the variance unexplained on held-out rows"
    return f"{value} of {its} predictions are wrong on held-out rows"


def _next_best(found: Learned) -> MethodScore | None:
    """Return the best method other than the recommended one and the constant."""
    others = [score for score in found.methods if not score.recommended and score.key != CONSTANT]
    return min(others, key=lambda score: _order(score, found), default=None)


def _order(score: MethodScore, found: Learned) -> float:
    """Return a number that is smaller for better methods."""
    value = score.metric if found.metric else score.error
    if not found.metric and found.chosen.auc is not None:
        value = score.auc
    if value is None:
        return math.inf
    largest = METRICS[found.metric].largest if found.metric else found.chosen.auc is not None
    return -value if largest else value


def _compared(rival: MethodScore, chosen: MethodScore, found: Learned) -> str:
    """Compare the recommended method with another, such as "learned features are no better here"."""
    are = "are" if is_plural(rival) else "is"
    value = value_text(rival, found)
    if chosen.key == BLEND and _order(rival, found) < _order(chosen, found):
        have = "have" if is_plural(rival) else "has"
        singles = [score for score in found.methods if score.key not in (BLEND, CONSTANT)]
        count = sum(_order(score, found) < math.inf for score in singles)
        return (
            f"{name(rival)} {have} {value}, but the smallest of {count} errors is partly luck, and a "
            "method that is picked without the rows that judge it predicts worse than the blend"
        )
    if chosen.key == BLEND:
        return f"of the single methods, {name(rival)} {are} the best ({value})"
    subject = name(rival) if rival.key == LEARNED else f"the next best, {name(rival)},"
    if math.isclose(_order(rival, found), _order(chosen, found), rel_tol=1e-12):
        return f"{subject} {are} equally good, but less simple"
    if rival.tied:
        better = "no better here" if rival.key == LEARNED else "not clearly worse"
        return f"{subject} {are} {better} ({value})"
    return f"{subject} {are} worse here ({value})"


VERDICTS = {"worse": "worse", "better": "better", "no difference": "no clear difference"}
"""Words for the comparison of a method's error with the learned features' error."""


WIDER = (
    "This interval includes the choice of the method and the training rows that the folds share; those "
    "of the other methods do not."
)

NO_INTERVAL = (
    "There is no interval: the tails of the errors or columns are so heavy that the mean squared error "
    "may be infinite, and a few new rows decide it."
)


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


def ends_of(score: MethodScore, found: Learned) -> tuple[float | None, float | None]:
    """Return the ends of a method's interval; that of the recommended method is the same everywhere."""
    return found.ends if score.recommended else (score.lower, score.upper)


def metric_text(score: MethodScore) -> tuple[str, str]:
    """Write the metric and its interval, or a dash if there is none."""
    if score.metric is None or score.metric_lower is None or score.metric_upper is None:
        return "–", ""
    ends = (format_number(end, 3) for end in (score.metric_lower, score.metric_upper))
    return format_number(score.metric, 3), " to ".join(ends)


def metric_title(found: Learned) -> str:
    """Return the title of the metric that was asked for; "" without one."""
    return METRICS[found.metric].title if found.metric else ""


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
    """State the error of the recommended method in a sentence."""
    score = found.chosen
    who = with_the(score)
    value, interval = percents(score.error, *found.ends)
    wider = found.ends != (score.lower, score.upper)
    note = f" {WIDER}" if wider else ""
    if found.is_regression:
        assert score.error is not None
        typical = format_number((found.target_deviation or 0.0) * score.error**0.5, 3)
        within = f" (95 % interval: {interval})"
        if found.ends[1] == math.inf:
            advice = "" if found.metric else " --metric mae depends less on such rows."
            within, note = "", f" {NO_INTERVAL}{advice}"
        return (
            f"On unseen rows, {who} {'leave' if is_plural(score) else 'leaves'} {value} of the variance "
            f"of {found.target!r} unexplained{within}. The typical error is {typical}.{note}"
        )
    return (
        f"On unseen rows, {value} of the predictions of {who} are wrong (95 % interval: {interval})."
        f"{note}"
    )


def comparison_sentences(found: Learned) -> list[str]:
    """List the worse, the better and the not clearly different methods, in one sentence each."""
    sentences = []
    if not any(score.beats_constant for score in found.methods):
        constant = next(score for score in found.methods if score.key == "constant")
        what = "has a clearly smaller error" if found.metric else "is clearly better"
        sentences.append(f"No method {what} than predicting {constant.title}.")
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
    low, high = found.ends
    if high is not None and test["lower"] > high:
        sentences.append(
            "That is more than on the held-out rows of the training table, so the test rows are of "
            "another kind."
        )
    elif low is not None and test["upper"] < low:
        sentences.append("That is less than on the held-out rows of the training table.")
    elif high != math.inf:
        sentences.append("That agrees with the error on held-out rows of the training table.")
    sentences += filter(None, [class_sentence(test)])
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
        f"Probabilities of {with_the(found.chosen)}, calibrated on held-out folds, deviate from observed "
        f"shares by {100 * calibration.deviation:.1f} percentage points on average; "
        f"{100 * calibration.chance:.1f} are expected by chance. Their log loss is "
        f"{format_number(calibration.log_loss, 3)}; that of the shares of the classes is "
        f"{format_number(calibration.constant_log_loss, 3)}."
    )


def confusion_rows(found: Learned) -> list[tuple[str, ...]]:
    """Return the number of unseen rows of each class by predicted class; empty for many classes."""
    count = len(found.class_labels)
    if not 2 <= count <= 12 or not len(found.truth):
        return []
    counts = np.zeros((count, count), dtype=int)
    np.add.at(counts, (found.truth.astype(int), found.predictions.astype(int)), 1)
    pairs = zip(found.class_labels, counts.tolist(), strict=True)
    return [(label, *map(str, row)) for label, row in pairs]


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
    who = next((with_the(one) for one in found.methods if one.key == outlook.method), "")
    subject = (
        f"With twice the rows ({twice.rows}), the {what} of {who or 'the model'} is expected to"
    )
    rest = _floor_text(outlook, level)
    if outlook.needed is not None:
        error = percent(outlook.needed.error)
        now_rows = found.n_samples
        rest += " " + needed_sentence(outlook.needed, level, now_rows, error=error, what="rows")
    if outlook.unclear:
        return (
            f"{subject} be {value} ({level}: {interval}); it is about {gained} now. Whether it falls at "
            f"all is not clear.{rest}"
        )
    return f"{subject} fall from about {gained} to {value} ({level}: {interval}).{rest}"


def _floor_text(outlook: Outlook, level: str) -> str:
    """State the error that remains for any number of rows."""
    if outlook.floor is None:
        return ""
    value, interval = percents(*outlook.floor)
    return f" The floor, which remains for any number of rows, is {value} ({level}: {interval})."
