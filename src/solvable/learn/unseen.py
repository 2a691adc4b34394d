"""Whether the signal of a direction is there on unseen rows, and on which columns it rests there.

A direction may be made of a column that tells nothing: x_1 x_2 has a second moment that goes with the
target if x_1 does, whatever x_2 is. What it tells is lost where x_1 is shuffled, and not where x_2 is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Split
from solvable.learn.attribution import (
    MOST_COLUMNS,
    column_groups,
    first_coordinates,
    relative_strengths,
    rows_attributed,
)

MOST_DIRECTIONS = 100
"""Directions of a fold, the strongest first, that are looked at on unseen rows."""

LEVEL = 0.05
"""Of all directions that are shown, and of all columns that are named, together."""


@dataclass(frozen=True, eq=False)
class Unseen:
    """Signal of the K directions of a fold's model on the rows that it has not seen."""

    columns: tuple[str, ...]
    tested: np.ndarray  # (n, K), the directions there
    signal: np.ndarray  # (n, K + 1), of mean 1 on the training rows; the last of all together
    rows: int  # rows on which columns were shuffled
    lost: np.ndarray  # (G, K + 1), sum over those rows of what shuffling a column takes
    squares: np.ndarray  # (G, K + 1), of its squares


class Estimate(NamedTuple):
    """A mean over rows with its standard error."""

    value: float
    error: float

    def is_above_zero(self, tests: int) -> bool:
        """Whether it is, where so many are tested (Bonferroni)."""
        return self.value > NormalDist().inv_cdf(1 - LEVEL / max(tests, 1)) * self.error


def unseen_signal(model: Any, split: Split, *, regression: bool, seed: int) -> Unseen | None:
    """Signal of the first filter's directions on test rows; None if there are too many columns."""
    groups = column_groups(split.preparation)
    if len(groups) > MOST_COLUMNS or len(split.y_test) < 2:
        return None
    report = model.filters_[0]
    count, linear = min(len(report.strengths), MOST_DIRECTIONS), len(report.linear_ratios)
    train = first_coordinates(model, split.X_train)[:, :count]
    told, tested_labels = _codes(split.y_train, split.y_test, regression=regression)
    # M_c = (1/n) sum_mu y_mu,c f(x_mu) f(x_mu)^T on training rows; of one signal it is diagonal.
    # A first moment is m_c = (1/n) sum_mu y_mu,c f(x_mu); second moments are those of what a straight
    # line in the first leaves of the labels.
    straight = np.linalg.lstsq(train[:, :linear], told, rcond=None)[0]
    left = told - train[:, :linear] @ straight
    moments = np.stack([train.T @ (code[:, None] * train) for code in left.T]) / len(train)
    moments[:, :linear], moments[:, :, :linear] = 0.0, 0.0
    means = told.T @ train[:, :linear] / len(train)
    strengths = np.sqrt(np.sum(moments**2, axis=(0, 2)))
    strengths[:linear] = np.sqrt(np.sum(means**2, axis=0))
    strengths = np.maximum(strengths, 1e-6 * max(float(strengths.max()), 1e-300))

    weights = relative_strengths(report)[:count]
    weights = np.maximum(weights, 1e-6 * max(float(weights.max()), 1e-300))

    def signal_of(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
        # s_k(x) = sum_c y_c f_k sum_l (M_c)_kl f_l / sum_c,l (M_c)_kl^2, whose mean is 1 on training
        # rows; sum_c y_c f_k m_ck / sum_c m_ck^2 of first moments; all together are weighted.
        beyond = labels - features[:, :linear] @ straight
        parts = [
            code[:, None] * features * (features @ moment.T)
            for code, moment in zip(beyond.T, moments, strict=True)
        ]
        each = np.sum(parts, axis=0)
        each[:, :linear] = features[:, :linear] * (labels @ means)
        each /= strengths**2
        return np.column_stack([each, each @ weights / weights.sum()])

    tested = first_coordinates(model, split.X_test)[:, :count]
    signal = signal_of(tested, tested_labels)
    rng = random_stream(seed, "unseen rows to shuffle")
    rows = rng.permutation(len(tested))[: rows_attributed(len(groups))]
    others = np.roll(rows, 1)
    lost, squares = np.empty((2, len(groups), count + 1))
    for place, (_, columns) in enumerate(groups):
        changed = np.array(split.X_test[rows])
        changed[:, columns] = split.X_test[others][:, columns]
        gone = first_coordinates(model, changed)[:, :count]
        taken = signal[rows] - signal_of(gone, tested_labels[rows])
        lost[place], squares[place] = taken.sum(axis=0), np.sum(taken**2, axis=0)
    return Unseen(tuple(name for name, _ in groups), tested, signal, len(rows), lost, squares)


def _codes(
    train: np.ndarray, test: np.ndarray, *, regression: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Labels as the filter weighs them, centred on the training rows, (n, signals) each."""
    if regression:
        centre, spread = train.mean(), train.std() or 1.0
        return (train[:, None] - centre) / spread, (test[:, None] - centre) / spread
    classes = np.unique(train)
    coded = [labels[:, None] == classes[None] for labels in (train, test)]
    if len(classes) == 2:
        coded = [codes[:, 1:] for codes in coded]
    first, second = (codes.astype(np.float64) for codes in coded)
    return first - first.mean(axis=0), second - first.mean(axis=0)


def signal_on_unseen(folds: Sequence[Unseen], places: np.ndarray) -> Estimate:
    """Signal of a direction on the rows of all folds; places are those of its likest in each."""
    rows = np.concatenate([fold.signal[:, k] for fold, k in zip(folds, places, strict=True)])
    return Estimate(float(rows.mean()), float(rows.std(ddof=1)) / len(rows) ** 0.5)


def lost_without(folds: Sequence[Unseen], places: np.ndarray, column: str) -> Estimate:
    """What of the signal of a direction is lost on unseen rows whose column is shuffled."""
    total = squares = 0.0
    rows = sum(fold.rows for fold in folds)
    for fold, k in zip(folds, places, strict=True):
        if column in fold.columns:  # a fold without it dropped a column of one value
            g = fold.columns.index(column)
            total += float(fold.lost[g, k])
            squares += float(fold.squares[g, k])
    mean = total / rows
    return Estimate(mean, float(np.sqrt(max(squares / rows - mean**2, 0.0) / max(rows - 1, 1))))
