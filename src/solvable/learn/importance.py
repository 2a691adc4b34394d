"""Columns that the recommended model uses: importance on held-out rows, effects and interactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Preparation
from solvable.data.dataset import Split
from solvable.learn.attribution import MOST_COLUMNS, column_groups
from solvable.learn.held_out_signal import Estimate
from solvable.plots.numbers import format_number

TOGETHER = 0.8  # rank correlation from which columns are shuffled together
ROWS = 200  # rows per fold on which columns are shuffled, fewer for many columns
LEAST = 0.01  # smallest loss of skill of columns that are named
SHUFFLES = 3  # shuffles of each group of columns

Predict = Callable[[np.ndarray], np.ndarray]
"""Function that returns the predicted number, (n,), or the probabilities of the classes, (n, C)."""


@dataclass(frozen=True)
class Importance:
    """Share of the model's skill on held-out rows that is lost if columns are shuffled together."""

    columns: tuple[str, ...]  # one column, or several that are correlated
    lost: float  # 1: as bad as the constant; may be larger
    error: float  # standard error of the share
    named: bool  # True if the loss is significant, corrected for all groups of columns


@dataclass(frozen=True)
class Effect:
    """Mean prediction with one column set to given values, and all others as they are.

    Columns that are correlated with it move along, each to its quantile at the same level.
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]  # increasing numbers, or texts
    numbers: tuple[float, ...]  # the numbers, or 0, 1, ... for texts
    means: tuple[float, ...]
    label: str  # class whose mean probability is given; "" for numbers
    is_text: bool = False

    @property
    def column(self) -> str:
        """Column whose values are given."""
        return self.columns[0]


@dataclass(frozen=True)
class Interaction:
    """Share of the variance of the predictions in terms that contain both groups of columns."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Explained:
    """Columns that the recommended model uses, the most important first."""

    importance: tuple[Importance, ...] = ()
    effects: tuple[Effect, ...] = ()
    interactions: tuple[Interaction, ...] = ()


def groups_of(X: np.ndarray, preparation: Preparation) -> list[tuple[str, ...]]:
    """Return the columns of the table, correlated ones together."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform
    from scipy.stats import rankdata

    names = column_groups(preparation)
    if len(names) < 2:
        return [(name,) for name, _ in names]
    ranks = rankdata(X[:2000], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.nan_to_num(np.corrcoef(ranks, rowvar=False)).reshape(X.shape[1], -1)
    near = np.array([[np.abs(between[np.ix_(a, b)]).max() for _, b in names] for _, a in names])
    far = np.clip(1 - (near + near.T) / 2, 0, None)
    np.fill_diagonal(far, 0.0)
    # Average linkage: columns of one group have a mean correlation of TOGETHER or more.
    labels = fcluster(linkage(squareform(far, checks=False), "average"), 1 - TOGETHER, "distance")
    return [
        tuple(name for (name, _), one in zip(names, labels, strict=True) if one == label)
        for label in dict.fromkeys(labels.tolist())
    ]


def losses_of(predicted: np.ndarray, y: np.ndarray, scale: float) -> np.ndarray:
    """Return each row's squared error over `scale`, or -log p of its class."""
    if predicted.ndim == 1:
        return np.asarray((predicted - y) ** 2 / scale)
    chosen = predicted[np.arange(len(y)), y.astype(np.int64)]
    return np.asarray(-np.log(np.maximum(chosen, 1e-4)))


def importance_of(
    models: Sequence[tuple[Predict, Split]],
    groups: Sequence[tuple[str, ...]],
    *,
    skill: float,
    scale: float,
    seed: int,
) -> tuple[Importance, ...]:
    """Measure the loss of skill on the folds' test rows if each group of columns is shuffled."""
    rises: list[list[np.ndarray]] = [[] for _ in groups]
    for fold, (predict, split) in enumerate(models):
        rng = random_stream(seed, "rows to shuffle columns", fold)
        most = max(20, min(ROWS, 6000 // len(groups)))
        rows = rng.permutation(len(split.y_test))[:most]
        if len(rows) < 2:
            continue
        X, y = split.X_test[rows], split.y_test[rows]
        places = dict(column_groups(split.preparation))
        before = losses_of(predict(X), y, scale)
        for group, found in zip(groups, rises, strict=True):
            columns = [place for name in group for place in places.get(name, [])]
            changed = np.concatenate([X] * SHUFFLES)
            for number in range(SHUFFLES):
                # A shift by a random number of places leaves no row as it was.
                others = np.roll(np.arange(len(X)), 1 + int(rng.integers(len(X) - 1)))
                block = slice(number * len(X), (number + 1) * len(X))
                changed[block, columns] = X[others][:, columns]
            after = losses_of(predict(changed), np.tile(y, SHUFFLES), scale)
            found.append(after.reshape(SHUFFLES, -1).mean(axis=0) - before)
    measured = []
    for group, found in zip(groups, rises, strict=True):
        rise = np.concatenate(found)
        mean, error = float(rise.mean()), float(rise.std(ddof=1)) / len(rise) ** 0.5
        named = mean >= LEAST * skill and Estimate(mean, error).is_above_zero(len(groups))
        measured.append(Importance(group, mean / skill, error / skill, named))
    # The order is that of the loss, significant ones first.
    return tuple(sorted(measured, key=lambda one: (not one.named, -one.lost)))


def effects_of(
    predict: Predict,
    X: np.ndarray,
    preparation: Preparation,
    groups: Sequence[tuple[str, ...]],
    labels: Sequence[str],
    seed: int,
) -> tuple[Effect, ...]:
    """Compute the mean prediction along each group of numbers, or for each of a few texts."""
    rows = random_stream(seed, "rows of effects").permutation(len(X))[:100]
    places = dict(column_groups(preparation))
    texts = dict(preparation.categories)
    effects = []
    for group in groups:
        first, *others = group
        of_text = first not in preparation.numeric_names
        if not of_text:
            # Correlated columns move together, each to its own quantile.
            together = [first, *(name for name in others if name in preparation.numeric_names)]
            used = [places[name][0] for name in together]
            levels = np.linspace(0.05, 0.95, 9)
            signs = [float(np.corrcoef(X[:, used[0]], X[:, one])[0, 1]) for one in used]
            along = [
                np.quantile(X[:, one], levels if sign >= 0 else 1 - levels)
                for one, sign in zip(used, signs, strict=True)
            ]
            _, kept = np.unique(along[0], return_index=True)
            settings = np.stack(along, axis=1)[kept]
            numbers = settings[:, 0]
            values = tuple(format_number(value, 3) for value in numbers)
        elif len(texts.get(first, ())) in range(2, 9):
            values, used = texts[first], places[first][: len(texts[first])]
            settings, numbers = np.eye(len(values)), np.arange(len(values), dtype=float)
        else:
            continue
        changed = np.concatenate([X[rows]] * len(settings))
        changed[:, used] = np.repeat(settings, len(rows), axis=0)
        means = predict(changed).reshape(len(settings), len(rows), -1).mean(axis=1)
        # of several classes the one that changes most; of two the second
        one = 1 if means.shape[1] == 2 else int(np.argmax(np.ptp(means, axis=0)))
        label = labels[one] if labels else ""
        means_of = tuple(means[:, one].tolist())
        effect = Effect(group, values, tuple(map(float, numbers)), means_of, label, of_text)
        effects.append(effect)
    return tuple(effects)


def interactions_of(
    predict: Predict,
    X: np.ndarray,
    preparation: Preparation,
    groups: Sequence[tuple[str, ...]],
    seed: int,
) -> tuple[Interaction, ...]:
    """Return the two strongest interactions between groups of columns."""
    # Superset importance of the columns j and k (Liu and Owen, J. Am. Stat. Assoc. 101 (2006)), with
    # z another row: E[(f(x) - f(x_j = z_j) - f(x_k = z_k) + f(x_j = z_j, x_k = z_k))²] / 4, here over
    # the variance of f.
    rng = random_stream(seed, "rows of interactions")
    rows = rng.permutation(len(X))[:150]
    others = X[np.roll(rows, 1)]
    places = dict(column_groups(preparation))
    here = predict(X[rows])

    def swapped(*changed: tuple[str, ...]) -> np.ndarray:
        mixed = np.array(X[rows])
        columns = [place for group in changed for name in group for place in places[name]]
        mixed[:, columns] = others[:, columns]
        return predict(mixed)

    single = {group: swapped(group) for group in groups}
    variance = float(np.sum(np.var(predict(X[rows]), axis=0))) or 1.0
    found = []
    for first, second in combinations(groups, 2):
        left = here - single[first] - single[second] + swapped(first, second)
        share = float(np.sum(np.mean(left**2, axis=0))) / 4 / variance
        found.append(Interaction(first, second, share))
    found.sort(key=lambda one: -one.share)
    least = 0.02  # smallest share of the variance that is reported
    return tuple(one for one in found[:2] if one.share >= least)


def explained(
    models: Sequence[tuple[Predict, Split]],
    final: Predict,
    X: np.ndarray,
    preparation: Preparation,
    *,
    labels: Sequence[str],
    skill: float,
    scale: float,
    seed: int,
) -> Explained:
    """Explain the recommended model by its columns; empty without skill or for too many columns."""
    if not models or not skill > 0 or len(column_groups(preparation)) > MOST_COLUMNS:
        return Explained()
    found = importance_of(models, groups_of(X, preparation), skill=skill, scale=scale, seed=seed)
    named = [one.columns for one in found if one.named]
    return Explained(
        found,
        effects_of(final, X, preparation, named[:4], labels, seed),
        interactions_of(final, X, preparation, named[:5], seed),
    )


def predicting(
    model: Any,
    probabilities: Callable[[Any, np.ndarray], np.ndarray] | None,
    *,
    narrow: bool = False,
) -> Predict:
    """Return the function that predicts numbers, or probabilities by the given function of a model."""
    # single precision halves the time of wide layers
    kind = np.float32 if narrow else np.float64
    if probabilities is None:
        return lambda X: np.asarray(model.predict(X.astype(kind)), dtype=np.float64)
    return lambda X: probabilities(model, X.astype(kind))
