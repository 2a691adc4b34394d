"""Measures of quality that the user chooses, with intervals from a jackknife over groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from solvable.arrays import random_stream
from solvable.data.dataset import Dataset
from solvable.errors import InvalidParameter
from solvable.learn.calibration import held_out_probabilities
from solvable.learn.competitors import CONSTANT, simplest_of_best
from solvable.learn.fold_fits import Measured
from solvable.learn.request import METRICS, Metric
from solvable.learn.results import Roc


class Scored(NamedTuple):
    """Value of a metric for one method, and its values without each group of rows."""

    value: float
    without: np.ndarray

    @property
    def error(self) -> float:
        """Standard error by the jackknife."""
        return jackknife_error(self.without)


def jackknife_error(without: np.ndarray) -> float:
    """Return the standard error from the values without each of the groups."""
    # s² = (G - 1) / G sum_g (t_g - mean t)² for G groups of equal size (Tukey 1958).
    count = len(without)
    return float(np.sqrt((count - 1) / count * np.sum((without - without.mean()) ** 2)))


def check_metric(metric: Metric | None, dataset: Dataset) -> None:
    """Raise :class:`InvalidParameter` if a metric does not fit the kind of the target."""
    kind = "numbers" if dataset.kind == "regression" else "classes"
    if metric is not None and METRICS[metric].kind != kind:
        allowed = ", ".join(name for name, one in METRICS.items() if one.kind == kind)
        raise InvalidParameter(
            f"metric is {metric}, but the target {dataset.target!r} holds {kind}; allowed: {allowed}. "
            "Choose one of these, or another --task."
        )


def scored_methods(
    metric: Metric,
    measured: Mapping[str, Sequence[Measured]],
    y: np.ndarray,
    folds: np.ndarray,
    clusters: np.ndarray | None = None,
) -> dict[str, Scored]:
    """Compute the metric of each method that predicts all tested rows."""
    tested = np.flatnonzero(folds >= 0)
    units = (
        np.arange(len(tested)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    )
    number = int(units.max()) + 1
    # Rows of one cluster are left out together. Fifty groups give a standard error within 10 %.
    count = min(50, number)
    group = random_stream(0, "groups of the jackknife").permutation(number)[units] % count
    found = {}
    for key, fits in measured.items():
        quality = _quality(metric, fits, y, folds, tested)
        if quality is None:
            continue
        without = np.array([quality(group != one) for one in range(count)])
        found[key] = Scored(quality(np.ones(len(tested), dtype=bool)), without)
    return found


def choose(metric: Metric, scored: Mapping[str, Scored]) -> str:
    """Return the method with the best metric; the constant if none is clearly better than that."""
    largest = METRICS[metric].largest
    values = {key: one.value for key, one in scored.items()}
    best = simplest_of_best(values, largest=largest)
    if CONSTANT in scored:
        # The best of several methods is compared, so the level of 5 % is divided by their number.
        less, error = _gap(metric, scored, CONSTANT, best)
        if less <= _quantile(scored[best], len(scored) - 1) * error:
            return CONSTANT
    return best


def best_on_other_folds(
    metric: Metric,
    measured: Mapping[str, Sequence[Measured]],
    y: np.ndarray,
    folds: np.ndarray,
) -> dict[int, str]:
    """Return the method of each fold that has the best metric on the rows of all other folds."""
    tested = np.flatnonzero(folds >= 0)
    qualities = {
        key: quality
        for key, fits in measured.items()
        if (quality := _quality(metric, fits, y, folds, tested)) is not None
    }
    largest = METRICS[metric].largest
    picked = {}
    for fold in np.unique(folds[tested]):
        values = {key: quality(folds[tested] != fold) for key, quality in qualities.items()}
        picked[int(fold)] = simplest_of_best(values, largest=largest)
    return picked


def not_clearly_worse(metric: Metric, scored: Mapping[str, Scored], best: str) -> set[str]:
    """Return the methods whose metric is not clearly worse, at 5 % with Bonferroni's correction."""
    if best not in scored or best == CONSTANT:
        return set()
    others = set(scored) - {best, CONSTANT}
    limit = _quantile(scored[best], len(others))
    gaps = {key: _gap(metric, scored, key, best) for key in others}
    tied = {key for key, (less, error) in gaps.items() if less <= limit * error}
    # A method no better than the constant is worse, also if few rows leave its difference uncertain.
    none = _gap(metric, scored, CONSTANT, best)[0] if CONSTANT in scored else np.inf
    return {key for key in tied if gaps[key][0] < none}


def _gap(metric: Metric, scored: Mapping[str, Scored], key: str, best: str) -> tuple[float, float]:
    """Return how much worse a method is than the best, and the standard error of the difference."""
    sign = 1 if METRICS[metric].largest else -1
    less = sign * (scored[best].value - scored[key].value)
    return less, jackknife_error(scored[best].without - scored[key].without)


def _quantile(scored: Scored, comparisons: int) -> float:
    from scipy.special import stdtrit

    level = 0.05 / max(comparisons, 1)
    return float(stdtrit(len(scored.without) - 1, 1 - level / 2))


def interval_of(metric: Metric, scored: Scored) -> tuple[float, float]:
    """Return the 95 % interval of a metric, within its range."""
    from scipy.special import stdtrit

    half = float(stdtrit(len(scored.without) - 1, 0.975)) * scored.error
    low, high = METRICS[metric].range
    return max(scored.value - half, low), min(scored.value + half, high)


def _quality(
    metric: Metric,
    fits: Sequence[Measured],
    y: np.ndarray,
    folds: np.ndarray,
    tested: np.ndarray,
) -> Callable[[np.ndarray], float] | None:
    """Return the metric as a function of a mask of tested rows; None if the method has no value."""
    if any(fit.failure for fit in fits):
        return None
    predicted = np.empty(len(y))
    for fit in fits:
        predicted[folds == fit.fold] = fit.predicted
    true, guess, fold = y[tested], predicted[tested], folds[tested]
    classes = np.unique(true)
    if metric == "balanced-accuracy":
        right, members = true == guess, [true == one for one in classes]
        return lambda rows: float(np.mean([right[rows & one].mean() for one in members]))
    if metric in ("auc", "log-loss"):
        number = int(y.max()) + 1
        outputs = [fit.scores for fit in fits]
        usable = [one for one in outputs if one is not None]
        widths = {one.shape[1:] for one in usable}
        if len(usable) < len(fits) or widths not in ({()}, {(number,)}):
            return None
        whole = np.empty((len(y), *usable[0].shape[1:]))
        for fit, output in zip(fits, usable, strict=True):
            whole[folds == fit.fold] = output
        if metric == "auc":
            return lambda rows: _area(whole[tested][rows], true[rows], fold[rows])
        codes = [y[folds == fit.fold].astype(np.int64) for fit in fits]
        probabilities = np.empty((len(y), number))
        for fit, some in zip(fits, held_out_probabilities(usable, codes), strict=True):
            probabilities[folds == fit.fold] = some
        chosen = probabilities[tested, true.astype(np.int64)]
        losses = -np.log(np.maximum(chosen, 1e-12))
        return lambda rows: float(losses[rows].mean())
    if metric == "accuracy":
        return lambda rows: float(np.mean(true[rows] == guess[rows]))
    if metric == "mae":
        return lambda rows: float(np.mean(np.abs(true[rows] - guess[rows])))
    return lambda rows: (
        1 - float(np.mean((true[rows] - guess[rows]) ** 2)) / float(true[rows].var())
    )


def roc_of(
    fits: Sequence[Measured],
    y: np.ndarray,
    folds: np.ndarray,
    clusters: np.ndarray | None = None,
) -> Roc | None:
    """Return the ROC curve of a classifier of two classes; None if it has no outputs."""
    from sklearn.metrics import roc_curve

    if int(y.max()) != 1 or any(fit.failure or fit.scores is None for fit in fits):
        return None
    rates, curves = np.linspace(0, 1, 101), []
    for fit in fits:
        true = y[folds == fit.fold]
        if len(np.unique(true)) == 2:
            wrong, right, _ = roc_curve(true, fit.scores)
            # at each rate, the upper end of the step
            last = np.searchsorted(wrong, rates, side="right") - 1
            following = np.minimum(last + 1, len(wrong) - 1)
            step = np.maximum(wrong[following] - wrong[last], 1e-300)
            share = np.clip((rates - wrong[last]) / step, 0, 1)
            curves.append(right[last] + share * (right[following] - right[last]))
    if not curves:
        return None
    scored = scored_methods("auc", {"": fits}, y, folds, clusters)[""]
    return Roc(
        tuple(rates.tolist()),
        tuple(np.mean(curves, axis=0).tolist()),
        scored.value,
        *interval_of("auc", scored),
    )


def _area(outputs: np.ndarray, codes: np.ndarray, folds: np.ndarray) -> float:
    """Return the area under the ROC curve, mean over folds and, for three or more classes, classes."""
    from scipy.stats import rankdata

    columns = outputs[:, None] if outputs.ndim == 1 else outputs
    labels = [1] if outputs.ndim == 1 else range(columns.shape[1])
    areas = []
    for fold in np.unique(folds):
        rows = folds == fold
        for place, label in enumerate(labels):
            inside = codes[rows] == label
            m = int(inside.sum())
            if 0 < m < len(inside):
                # Mann and Whitney: (sum of ranks - m (m + 1) / 2) / (m (n - m))
                ranks = rankdata(columns[rows, place])[inside].sum()
                areas.append((ranks - m * (m + 1) / 2) / (m * (len(inside) - m)))
    return float(np.mean(areas)) if areas else 0.5
