"""Compute errors, intervals, verdicts and the forecast from the predictions of all folds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from solvable.fitting.heavy_tails import grows_without_mean, upper_end
from solvable.fitting.intervals import (
    CONFIDENCE,
    Interval,
    clustered_interval,
    loss_of_clusters,
    mean_interval,
    means_of_clusters,
    paired_rate_difference,
    wilson_interval,
)
from solvable.forecast import LearningCurve, forecast
from solvable.forecast.results import Needed
from solvable.learn.competitors import BLEND, CONSTANT, LEARNED, Method, simplest_of_best
from solvable.learn.fold_fits import Measured
from solvable.learn.metrics import choose, interval_of, not_clearly_worse, scored_methods
from solvable.learn.request import Metric
from solvable.learn.results import CurvePoint, Expected, MethodScore, Outlook, Verdict

STEEPER = (
    "The error falls faster at the larger sizes, which neither formula describes, so the lower ends of "
    "the intervals assume that the slope continues to grow."
)
"""Note about a curve that steepens; nothing here is trained in epochs."""


class Losses:
    """Return each test row's loss: 0 or 1 for classes, squared error / target variance for numbers."""

    def __init__(
        self,
        y: np.ndarray,
        folds: np.ndarray,
        *,
        regression: bool,
        clusters: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> None:
        # The columns of the tested rows, shape (n, d), are used for their tails only.
        self.y, self.folds, self.regression, self.clusters = y, folds, regression, clusters
        self.columns = columns
        self.variance = float(np.var(y[folds >= 0])) if regression else 1.0

    @property
    def is_unequal(self) -> bool:
        """Return True if one class has more than 80 % of the tested rows."""
        if self.regression:
            return False
        largest_share = 0.8  # share of the largest class above which the error is misleading
        return bool(np.unique(self.y, return_counts=True)[1].max() > largest_share * len(self.y))

    def of_fold(self, fold: int, predicted: np.ndarray) -> np.ndarray:
        """Return the losses of the rows of a fold, in the order of the rows."""
        true = self.y[self.folds == fold]
        if self.regression:
            return np.asarray((predicted - true) ** 2 / self.variance)
        return np.asarray(predicted != true, dtype=np.float64)

    def of_all(self, fits: Sequence[Measured]) -> np.ndarray | None:
        """Return the losses of all tested rows; None if the fit of a fold failed."""
        if any(fit.failure for fit in fits):
            return None
        losses = np.empty(len(self.y))
        for fit in fits:
            losses[self.folds == fit.fold] = self.of_fold(fit.fold, fit.predicted)
        return losses[self.folds >= 0]

    def interval(
        self, losses: np.ndarray, confidence: float = CONFIDENCE, *, inflation: float = 1.0
    ) -> Interval:
        """Compute the mean loss and its interval; `inflation` multiplies the variance of the mean."""
        if self.clusters is not None:
            return loss_of_clusters(
                losses, self.clusters, confidence, rate=not self.regression, inflation=inflation
            )
        if self.regression:
            return mean_interval(losses, confidence, positive=True, inflation=inflation)
        return wilson_interval(int(losses.sum()), len(losses), confidence, inflation=inflation)

    def end_of_tail(self, losses: np.ndarray, confidence: float, *, inflation: float) -> float:
        """Return the upper end of the mean loss if the largest losses follow a Pareto law.

        It is infinite if the tails of the losses or of the columns indicate that there is no finite mean.
        """
        # Losses of 0 and 1 have no tail. On 80 rows, Hill's estimate finds no finite mean in 8 of 100
        # samples whose squared errors have one (Student's t with five degrees of freedom); on 50, in 11.
        least_rows = 80
        if not self.regression:
            return 0.0
        single = losses
        if self.clusters is not None:
            losses = means_of_clusters(losses, self.clusters)
        if len(losses) < least_rows or losses.min() < 0:
            return 0.0
        if self.columns is not None and grows_without_mean(single, self.columns):
            return math.inf
        return upper_end(losses, confidence, inflation=inflation)

    def difference(self, losses: np.ndarray, reference: np.ndarray, confidence: float) -> Interval:
        """Compute the mean loss minus a reference's mean loss on the same rows, with an interval."""
        if self.clusters is not None:
            return clustered_interval(losses - reference, self.clusters, confidence)
        if self.regression:
            return mean_interval(losses - reference, confidence)
        return paired_rate_difference(losses > 0, reference > 0, confidence)


def score_methods(
    compared: Sequence[Method],
    measured: Mapping[str, Sequence[Measured]],
    losses: Losses,
    labels: Sequence[str] = (),
    *,
    blended: bool = False,
) -> tuple[MethodScore, ...]:
    """Compute each method's error, and its difference from the learned features' error.

    The smallest error recommends a method; `blended` recommends the blend instead.
    """
    of_rows = {method.key: losses.of_all(measured[method.key]) for method in compared}
    known = {key: rows for key, rows in of_rows.items() if rows is not None}
    gaps = _differences(known, LEARNED, losses)
    to_constant = _differences(known, CONSTANT, losses)
    beating = {
        key
        for key, gap in to_constant.items()
        if gap.upper < 0 or (gap.value < 0 and _halves_most(known[key], known[CONSTANT], losses))
    }

    def is_below_constant(key: str) -> bool:
        return key in to_constant and to_constant[key].value < 0

    scores = []
    for method in compared:
        score = _score(method, measured[method.key], losses, of_rows[method.key])
        gap = gaps.get(method.key)
        if gap is not None:
            # Where no method beats the constant, differences between methods are not reported. A method
            # no better than the constant is worse than learned features that beat the constant, also if
            # a few rows with huge errors leave its difference uncertain.
            verdict = verdict_of(gap) if beating else "no difference"
            if LEARNED in beating and not is_below_constant(method.key):
                verdict = "worse"
            score = replace(
                score,
                difference=gap.value,
                difference_lower=gap.lower,
                difference_upper=gap.upper,
                verdict=verdict,
            )
        if of_rows[method.key] is not None and losses.is_unequal:
            score = replace(score, **_of_classes(measured[method.key], losses, labels))
        scores.append(replace(score, beats_constant=method.key in beating))
    chosen = _by_area(scores, losses) if losses.is_unequal else None
    if chosen is None:
        means = {key: float(rows.mean()) for key, rows in known.items() if key != BLEND}
        best = BLEND if blended else simplest_of_best(means)
        chosen = best if beating else CONSTANT
    tied: set[str] = set()
    if chosen != CONSTANT:
        if losses.is_unequal and any(score.auc is not None for score in scores):
            by_area = scored_methods("auc", measured, losses.y, losses.folds, losses.clusters)
            tied = not_clearly_worse("auc", by_area, chosen)
        else:
            gaps = _differences(known, chosen, losses)
            tied = {key for key, gap in gaps.items() if gap.lower <= 0 and is_below_constant(key)}
    return marked(scores, chosen, tied)


def _halves_most(rows: np.ndarray, constant: np.ndarray, losses: Losses) -> bool:
    """Return True if squared errors are less than half of the constant's also without the largest.

    A single row may decide both means, so that their difference is never significant.
    """
    if not losses.regression or len(rows) < 40:
        return False
    # Both means leave out the largest twentieth. A model without signal that predicts less than the
    # mean of a skewed target is better in most rows, but not twice as good.
    kept = len(rows) - max(len(rows) // 20, 1)
    trimmed, most = (float(np.sort(one)[:kept].mean()) for one in (rows, constant))
    smaller = int(np.count_nonzero(rows < constant))
    return trimmed < most / 2 and wilson_interval(smaller, len(rows), 0.999).lower > 0.5


def by_metric(
    metric: Metric,
    scores: Sequence[MethodScore],
    measured: Mapping[str, Sequence[Measured]],
    losses: Losses,
) -> tuple[MethodScore, ...]:
    """Add the metric to each method's score, and recommend the method with the best."""
    found = scored_methods(metric, measured, losses.y, losses.folds, losses.clusters)
    chosen = choose(metric, found)
    added = []
    for score in scores:
        if score.key in found:
            low, high = interval_of(metric, found[score.key])
            value = found[score.key].value
            score = replace(score, metric=value, metric_lower=low, metric_upper=high)
        added.append(score)
    return marked(added, chosen, not_clearly_worse(metric, found, chosen))


def _by_area(scores: Sequence[MethodScore], losses: Losses) -> str | None:
    """Return the method with the largest AUC, or the constant if that may be due to chance."""
    areas = {score.key: score.auc for score in scores if score.auc is not None}
    if not areas:
        return None
    best = max(areas.values())
    # Variance of the area A for m positive and n negative rows (Hanley and McNeil 1982):
    # (A (1 - A) + (m - 1) (A / (2 - A) - A²) + (n - 1) (2 A² / (1 + A) - A²)) / m n.
    m, n = sorted(np.unique(losses.y[losses.folds >= 0], return_counts=True)[1])
    spread = best * (1 - best) + (m - 1) * (best / (2 - best) - best**2)
    spread += (n - 1) * (2 * best**2 / (1 + best) - best**2)
    error = float(np.sqrt(spread / (m * n)))
    return CONSTANT if best < 0.5 + 2 * error else simplest_of_best(areas, largest=True)


def _of_classes(fits: Sequence[Measured], losses: Losses, labels: Sequence[str]) -> dict[str, Any]:
    """Compute the balanced error and, for two classes, the AUC; list classes that are never predicted."""
    from sklearn.metrics import roc_auc_score

    y = np.concatenate([losses.y[losses.folds == fit.fold] for fit in fits])
    predicted = np.concatenate([fit.predicted for fit in fits])
    classes = np.unique(y)
    wrong = [float(np.mean(predicted[y == one] != one)) for one in classes]
    areas = []
    for fit in fits:
        true = losses.y[losses.folds == fit.fold]
        if fit.scores is not None and len(np.unique(true)) == 2 == len(classes):
            areas.append(float(roc_auc_score(true, fit.scores)))
    never = tuple(labels[int(one)] for one in classes if not np.any(predicted == one))
    return {
        "balanced_error": float(np.mean(wrong)),
        "auc": float(np.mean(areas)) if areas else None,
        "never": never,
    }


def _differences(
    of_rows: Mapping[str, np.ndarray], reference: str, losses: Losses
) -> dict[str, Interval]:
    """Compute each method's mean loss minus a reference's mean loss, with Holm's correction."""
    if reference not in of_rows:
        return {}
    # Holm 1979: with r undecided differences, each is tested at level 5 % / r; significant ones are
    # decided and removed, until none is significant. The family-wise error is 5 %.
    undecided = [key for key in of_rows if key != reference]
    gaps: dict[str, Interval] = {}
    while undecided:
        confidence = 1 - (1 - CONFIDENCE) / len(undecided)
        for key in undecided:
            gaps[key] = losses.difference(of_rows[key], of_rows[reference], confidence)
        left = [key for key in undecided if verdict_of(gaps[key]) == "no difference"]
        if len(left) == len(undecided):
            break
        undecided = left
    return gaps


def _score(
    method: Method, fits: Sequence[Measured], losses: Losses, of_rows: np.ndarray | None
) -> MethodScore:
    """Compute the error of a method with its interval, without comparison."""
    rows = round(float(np.mean([fit.rows for fit in fits])))
    seconds = sum(fit.seconds for fit in fits)
    remark = next((fit.failure for fit in fits if fit.failure), "")
    if of_rows is None:
        return MethodScore(
            method.key, method.title, method.meaning, None, None, None, 0, rows, seconds,
            remark=remark, phrase=method.phrase,
        )  # fmt: skip
    available = round(float(np.mean([fit.training_rows for fit in fits])))
    if rows < available:
        why = "memory" if method.kernel_rows else "time"
        remark = f"fitted to {rows} of {available} training rows, to limit {why}"
    remark = "; ".join(filter(None, [remark, _remark(fits)]))
    error = losses.interval(of_rows)
    return MethodScore(
        method.key,
        method.title,
        method.meaning,
        *error,
        test_rows=len(of_rows),
        training_rows=rows,
        seconds=seconds,
        remark=remark,
        phrase=method.phrase,
    )


def _remark(fits: Sequence[Measured]) -> str:
    """Join the remarks of the fits; a remark on some folds only states the number of these folds."""
    counts = Counter(fit.remark for fit in fits if fit.remark)
    return "; ".join(
        remark if count == len(fits) else f"{remark} ({count} of {len(fits)} folds)"
        for remark, count in counts.most_common()
    )


def of_all_rows(score: MethodScore, final: Measured) -> MethodScore:
    """Add the form of the fit to all rows to the remark, if some folds have a different form."""
    if score.remark == final.remark:
        return score
    form = final.remark or "directions and columns"
    return replace(score, remark="; ".join(filter(None, [score.remark, f"on all rows: {form}"])))


def marked(scores: Sequence[MethodScore], chosen: str, tied: set[str]) -> tuple[MethodScore, ...]:
    """Mark the recommended method, and those not clearly worse than it."""
    return tuple(
        replace(score, recommended=score.key == chosen, tied=score.key in tied - {chosen})
        for score in scores
    )


def verdict_of(difference: Interval) -> Verdict:
    """Return the verdict on a method from its error minus the learned features' error."""
    if difference.lower > 0:
        return "worse"
    return "better" if difference.upper < 0 else "no difference"


def outlook_of(
    curve: Sequence[CurvePoint],
    rows: int,
    *,
    shared: float = 0.0,
    tested: float | None = None,
    error: float | None = None,
    seed: int = 0,
) -> Outlook:
    """Extrapolate the measured learning curve to multiples of the rows of the data set."""
    # Factor 1 is forecast too: test rows are held back, so the curve ends below the number of rows.
    factors = (1.0, 2.0, 4.0)
    measured = [
        (point.rows, error, f"fold {fold}")
        for point in curve
        for fold, error in enumerate(point.errors)
    ]
    if not measured:
        return Outlook((), verdict="there are too few rows for a learning curve.")
    sizes, errors, folds = zip(*measured, strict=True)
    prediction = forecast(
        LearningCurve(np.array(sizes), np.array(errors), folds, shared, tested),
        at=[factor * rows for factor in factors],
        error=error,
        seed=seed,
    )
    floor, needed = prediction.floor, prediction.needed
    if needed is not None:  # read also between the predictions that are printed
        path = sorted((*needed.path, *prediction.predictions), key=lambda one: one.samples)
        needed = Needed.on(path, needed.error)
    return Outlook(
        tuple(curve),
        tuple(
            Expected(factor, round(point.samples), point.mean, point.lower, point.upper)
            for factor, point in zip(factors, prediction.predictions, strict=False)
        ),
        tuple((point.samples, point.mean, point.lower, point.upper) for point in prediction.band),
        prediction.confidence,
        prediction.verdict,
        tuple(STEEPER if "epochs" in note else note for note in prediction.diagnostics.notes),
        floor=None if floor is None else (floor.value, floor.lower, floor.upper),
        unclear=factors[1] * rows in prediction.unclear,
        needed=needed,
    )
