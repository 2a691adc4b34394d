"""Interval of the named model's error, with the choice of the model and the shared training rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from solvable.fitting.intervals import CONFIDENCE, Interval
from solvable.forecast.results import Needed
from solvable.learn.competitors import BLEND, CONSTANT, simplest_of_best
from solvable.learn.fold_fits import Measured
from solvable.learn.metrics import best_on_other_folds
from solvable.learn.request import Metric
from solvable.learn.results import CurvePoint, MethodScore, Outlook
from solvable.learn.scoring import Losses


def named_error(
    scores: Sequence[MethodScore],
    metric: Metric | None,
    measured: Mapping[str, Sequence[Measured]],
    losses: Losses,
    confidence: float = CONFIDENCE,
    *,
    curve: Sequence[CurvePoint] = (),
) -> Interval:
    """Return the error of the recommended method, and an interval for its fit to all rows on new rows.

    With the method's learning curve, the lower end accounts for the rows that a fold leaves out. If the
    squared errors seem to have no finite mean, the interval is from zero to infinity.
    """
    chosen = next(score for score in scores if score.recommended)
    known = {key: rows for key in measured if (rows := losses.of_all(measured[key])) is not None}
    if chosen.key == CONSTANT:
        # The constant hardly depends on the training rows, and is not named for its error.
        return losses.interval(known[CONSTANT], confidence)
    if metric is None and losses.is_unequal and chosen.auc is not None:
        metric = "auc"
    folds = losses.folds[losses.folds >= 0]
    if metric is None:
        singles = {key: rows for key, rows in known.items() if key != BLEND}
        picked = smallest_on_other_folds(singles, folds)
    else:
        fits = {key: of_key for key, of_key in measured.items() if key != BLEND}
        picked = best_on_other_folds(metric, fits, losses.y, losses.folds)
    # The smallest of several errors on the same rows is too small. For the upper end, each fold is
    # therefore scored with the single method that is the best on the other folds; the predictions of a
    # blend there have weights from this fold.
    inflation = inflation_of(measured[chosen.key], losses)
    own, of_pick = known[chosen.key], of_picked(known, folds, picked)
    found = losses.interval(own, confidence, inflation=inflation)
    ends = [found.upper, losses.interval(of_pick, confidence, inflation=inflation).upper]
    # Large squared errors may be so rare that the rows lack those that decide the mean.
    ends += [
        losses.end_of_tail(rows, confidence, inflation=inflation)
        for rows in ([own] if np.array_equal(own, of_pick) else [own, of_pick])
    ]
    if math.isinf(max(ends)):
        return found._replace(lower=0.0, upper=math.inf)
    lower = lower_end_with_all_rows(found, curve, len(losses.y), confidence)
    return found._replace(
        lower=lower, upper=min(max(ends), top_of(scores, measured, losses, confidence))
    )


def top_of(
    scores: Sequence[MethodScore],
    measured: Mapping[str, Sequence[Measured]],
    losses: Losses,
    confidence: float = CONFIDENCE,
) -> float:
    """Return the constant's upper end if the recommended method is clearly better, else infinity."""
    clear = next(score for score in scores if score.recommended).beats_constant
    rows = losses.of_all(measured[CONSTANT]) if clear else None
    return math.inf if rows is None else losses.interval(rows, confidence).upper


def lower_end_with_all_rows(
    error: Interval, curve: Sequence[CurvePoint], rows: int, confidence: float
) -> float:
    """Return the lower end for a model of all rows, by the last two points of the learning curve."""
    if len(curve) < 2 or error.lower <= 0 or curve[-1].rows >= rows:
        return error.lower
    (before, last), folds = curve[-2:], len(curve[-1].errors)
    first, second = (np.array(point.errors) for point in (before, last))
    # A learning curve e(n) = e_inf + sum_j c_j n^(-a_j) with c_j, a_j >= 0 is convex on log-log axes.
    # From its last two points n_1 < n_2 on, it therefore falls at most like the power law through both,
    # log e(n) >= log e(n_2) - g log(e(n_1) / e(n_2)) with g = log(n / n_2) / log(n_2 / n_1).
    reach = math.log(rows / last.rows) / math.log(last.rows / before.rows)
    above, below = (np.array([one.sum(), *(one.sum() - one)]) for one in (first, second))
    if min(above.min(), below.min()) <= 0:
        return error.lower
    fall, *without = reach * np.log(above / below)
    # standard error by the jackknife over folds
    variance = (folds - 1) / folds * float(np.sum((without - np.mean(without)) ** 2))
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    # The distances of both logarithms are added as squares (MOVER, Zou and Donner 2008).
    distance = math.hypot(math.log(error.value / error.lower), half)
    return error.value * math.exp(-max(float(fall), 0.0) - distance)


def smallest_on_other_folds(known: Mapping[str, np.ndarray], folds: np.ndarray) -> dict[int, str]:
    """Return, for each fold, the method with the smallest mean loss on the rows of the other folds."""
    return {
        int(fold): simplest_of_best(
            {key: float(rows[folds != fold].mean()) for key, rows in known.items()}
        )
        for fold in np.unique(folds)
    }


def of_picked(
    known: Mapping[str, np.ndarray], folds: np.ndarray, picked: Mapping[int, str]
) -> np.ndarray:
    """Return the loss of each row by the method that was picked for its fold."""
    rows = np.empty(len(folds))
    for fold, key in picked.items():
        rows[folds == fold] = known[key][folds == fold]
    return rows


def inflation_of(fits: Sequence[Measured], losses: Losses) -> float:
    """Return the factor by which shared training rows raise the variance of the mean error."""
    # The folds share training rows, and their errors rise and fall together. Nadeau and Bengio (2003)
    # estimate the variance as (1 / K + n_test / n_train) S², where S² is the variance of a fold's error
    # and 1 / K the factor for independent folds; the ratio of both factors is 1 + K n_test / n_train.
    shares = [np.count_nonzero(losses.folds == fit.fold) / fit.training_rows for fit in fits]
    return 1 + float(np.sum(shares))


def widened(outlook: Outlook, error: Interval, *, top: float) -> Outlook:
    """Widen the intervals of forecasts to at least the relative width of that of the measured error.

    No interval reaches beyond `top`, the error of the constant. The rows for an error are read from the
    widened intervals.
    """
    if not error.value:
        return outlook

    def ends(mean: float, lower: float, upper: float) -> tuple[float, float]:
        scale = mean / error.value
        return min(lower, scale * error.lower), max(mean, min(max(upper, scale * error.upper), top))

    expected = [
        replace(one, lower=low, upper=high)
        for one in outlook.expected
        for low, high in [ends(one.error, one.lower, one.upper)]
    ]
    band = [(rows, mean, *ends(mean, low, high)) for rows, mean, low, high in outlook.band]
    floor = outlook.floor and (outlook.floor[0], *ends(*outlook.floor))
    needed = outlook.needed
    if needed is not None:
        path = [
            replace(one, lower=low, upper=high)
            for one in needed.path
            for low, high in [ends(one.mean, one.lower, one.upper)]
        ]
        needed = Needed.on(path, needed.error)
    return replace(outlook, expected=tuple(expected), band=tuple(band), floor=floor, needed=needed)
