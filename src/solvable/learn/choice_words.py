"""Sentences that name the model to use, and say why."""

from __future__ import annotations

import math

from solvable.learn.competitors import BLEND, CONSTANT, LEARNED
from solvable.learn.request import METRICS
from solvable.learn.results import Learned, MethodScore
from solvable.plots.numbers import format_number
from solvable.plots.words import percent

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
