"""Measure the signal of directions on unseen rows, and the loss of signal if a column is shuffled.

A direction may contain a column without signal: the second moment of x_1 x_2 is correlated with the
target if x_1 is, whatever x_2 is. Shuffling x_1 removes the signal; shuffling x_2 does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from solvable.arrays import random_stream
from solvable.data.dataset import Split
from solvable.learn.attribution import (
    MOST_COLUMNS,
    column_groups,
    first_coordinates,
    relative_strengths,
    rows_attributed,
)
from solvable.networks.layers import Filter, KernelFilter, Residual

MOST_DIRECTIONS = 100
"""Largest number of directions per fold, the strongest first, whose signal on unseen rows is measured."""

LEVEL = 0.05  # family-wise level of the tests of directions, and also of the tests of columns


@dataclass(frozen=True, eq=False)
class Unseen:
    """Signal of the K directions of a fold's model on the fold's n test rows, which have G columns."""

    columns: tuple[str, ...]
    tested: np.ndarray  # coordinates of the test rows along the directions, shape (n, K)
    signal: np.ndarray  # (n, K + 1), mean 1 on training rows; last column: all directions together
    rows: int  # number of rows on which columns were shuffled
    lost: np.ndarray  # (G, K + 1), signal lost by shuffling a column, summed over these rows
    squares: np.ndarray  # (G, K + 1), squares of the lost signal, summed over these rows


class Estimate(NamedTuple):
    """Mean over rows with its standard error."""

    value: float
    error: float

    def is_above_zero(self, tests: int) -> bool:
        """Return True if the mean is significantly positive, corrected for `tests` tests (Bonferroni)."""
        return self.value > NormalDist().inv_cdf(1 - LEVEL / max(tests, 1)) * self.error


def unseen_signal(model: Any, split: Split, *, regression: bool, seed: int) -> Unseen | None:
    """Compute the signal of the first filter's directions on test rows; None if columns are too many."""
    groups = column_groups(split.preparation)
    if len(groups) > MOST_COLUMNS or len(split.y_test) < 2:
        return None
    report = model.filters_[0]
    count, linear = min(len(report.strengths), MOST_DIRECTIONS), len(report.linear_ratios)
    train = first_coordinates(model, split.X_train)[:, :count]
    labels, tested_labels = _codes(model, split, regression=regression)
    left, tested_left = labels, tested_labels
    if linear:
        left, tested_left = _beyond_first_moments(model, split, labels, tested_labels)
    # M_c = (1/n) sum_mu y_mu,c f(x_mu) f(x_mu)^T on training rows, with the residual labels y after
    # the fit by first moments; M is diagonal for a single signal. The first moments are
    # m_c = (1/n) sum_mu y_mu,c f(x_mu).
    moments = np.stack([train.T @ (code[:, None] * train) for code in left.T]) / len(train)
    moments[:, :linear], moments[:, :, :linear] = 0.0, 0.0
    means = labels.T @ train[:, :linear] / len(train)
    strengths = np.sqrt(np.sum(moments**2, axis=(0, 2)))
    strengths[:linear] = np.sqrt(np.sum(means**2, axis=0))
    strengths = np.maximum(strengths, 1e-6 * max(float(strengths.max()), 1e-300))

    weights = relative_strengths(report)[:count]
    weights = np.maximum(weights, 1e-6 * max(float(weights.max()), 1e-300))

    def signal_of(features: np.ndarray, rows: np.ndarray) -> np.ndarray:
        # s_k(x) = sum_c y_c f_k sum_l (M_c)_kl f_l / sum_c,l (M_c)_kl², which has mean 1 on training
        # rows; for first moments s_k(x) = sum_c y_c f_k m_ck / sum_c m_ck². The last column is the
        # mean of all s_k, weighted by the relative strengths.
        parts = [
            code[:, None] * features * (features @ moment.T)
            for code, moment in zip(tested_left[rows].T, moments, strict=True)
        ]
        each = np.sum(parts, axis=0)
        each[:, :linear] = features[:, :linear] * (tested_labels[rows] @ means)
        each /= strengths**2
        return np.column_stack([each, each @ weights / weights.sum()])

    tested = first_coordinates(model, split.X_test)[:, :count]
    signal = signal_of(tested, np.arange(len(tested)))
    rng = random_stream(seed, "unseen rows to shuffle")
    rows = rng.permutation(len(tested))[: rows_attributed(len(groups))]
    others = np.roll(rows, 1)
    lost, squares = np.empty((2, len(groups), count + 1))
    for place, (_, columns) in enumerate(groups):
        changed = np.array(split.X_test[rows])
        changed[:, columns] = split.X_test[others][:, columns]
        gone = first_coordinates(model, changed)[:, :count]
        taken = signal[rows] - signal_of(gone, rows)
        lost[place], squares[place] = taken.sum(axis=0), np.sum(taken**2, axis=0)
    return Unseen(tuple(name for name, _ in groups), tested, signal, len(rows), lost, squares)


def _codes(model: Any, split: Split, *, regression: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the filter's labels of training and test rows, centred on training rows."""
    train, test = split.y_train, split.y_test
    if regression:
        centre, spread = train.mean(), train.std() or 1.0
        coded = [(labels[:, None] - centre) / spread for labels in (train, test)]
        if getattr(model, "label_map", "") == "tanh":
            coded = [np.tanh(labels) for labels in coded]
    else:
        classes = np.unique(train)
        coded = [(labels[:, None] == classes[None]).astype(np.float64) for labels in (train, test)]
        if len(classes) == 2:
            coded = [labels[:, 1:] for labels in coded]
    first, second = coded
    return first - first.mean(axis=0), second - first.mean(axis=0)


def _beyond_first_moments(
    model: Any, split: Split, labels: np.ndarray, tested: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return residual labels after regression on the first moments of the features below the filter."""
    train, test = _along_first_moments(model, split.X_train, labels, split.X_test)
    test -= train.mean(axis=0)
    train -= train.mean(axis=0)
    line = np.linalg.lstsq(train, labels, rcond=None)[0]
    left = labels - train @ line
    centre = left.mean(axis=0)
    return left - centre, tested - test @ line - centre


def _along_first_moments(
    model: Any, X: np.ndarray, labels: np.ndarray, Z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the products m . z of test rows, and of training rows with the m of all other rows."""
    # m = (1/n) sum_mu y_mu z_mu, where z are the centred features below the first filter.
    h, there = np.asarray(X), np.asarray(Z)
    layers = list(model.network_.layers)
    while not isinstance(layers[0], (Filter, KernelFilter)):
        layer = layers.pop(0)
        if isinstance(layer, Residual):
            layers = [*layer.layers, *layers]
        else:
            h, there = (np.asarray(layer.apply(rows)) for rows in (h, there))
    n = len(labels)
    # The labels are centred, so the features need no centring in sums over labels.
    if isinstance(layers[0], KernelFilter):
        kernel, across = layers[0].chain(h, h), layers[0].chain(there, h)
        means = kernel.mean(axis=0)
        powers = np.diag(kernel) - 2 * means + means.mean()
        inside, outside = kernel @ labels, across @ labels
        offset = means @ labels
    else:
        mean = h.mean(axis=0, dtype=np.float64).astype(h.dtype)
        moment = h.T @ labels.astype(h.dtype)
        powers = np.einsum("ij,ij->i", h, h) - 2 * (h @ mean) + mean @ mean
        inside, outside = h @ moment, there @ moment
        offset = mean @ moment
    inside, outside = inside - offset, outside - offset
    return (inside - powers[:, None] * labels) / n, outside / n


def signal_on_unseen(folds: Sequence[Unseen], places: np.ndarray) -> Estimate:
    """Return a direction's mean signal on all folds' test rows, from its match in each fold."""
    rows = np.concatenate([fold.signal[:, k] for fold, k in zip(folds, places, strict=True)])
    return Estimate(float(rows.mean()), float(rows.std(ddof=1)) / len(rows) ** 0.5)


def lost_without(folds: Sequence[Unseen], places: np.ndarray, column: str) -> Estimate:
    """Return the mean loss of a direction's signal on test rows if a column is shuffled."""
    total = squares = 0.0
    rows = sum(fold.rows for fold in folds)
    for fold, k in zip(folds, places, strict=True):
        if (
            column in fold.columns
        ):  # A fold drops a column that is constant in the fold's training rows.
            g = fold.columns.index(column)
            total += float(fold.lost[g, k])
            squares += float(fold.squares[g, k])
    mean = total / rows
    return Estimate(mean, float(np.sqrt(max(squares / rows - mean**2, 0.0) / max(rows - 1, 1))))
