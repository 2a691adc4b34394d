"""Which columns the directions of the first filter are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Preparation
from solvable.learn.results import ColumnShare
from solvable.networks.layers import Filter, KernelFilter

MOST_COLUMNS = 1000
"""Columns beyond which directions are not attributed."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """What the directions of one fit are made of; K directions, G columns of the table."""

    columns: tuple[str, ...]
    shares: np.ndarray  # (K, G), each row with sum one
    total: np.ndarray  # (G,), of all directions by their strength
    straight: (
        np.ndarray
    )  # (K,), share that is a straight line in the columns; NaN if rows are too few
    tested: np.ndarray  # (rows tested, K), the directions themselves


def attribute(
    model: Any, X: np.ndarray, X_test: np.ndarray, preparation: Preparation, *, seed: int
) -> Attribution | None:
    """Shares of the columns in the directions that carry signal; None if there are none."""
    report = model.filters_[0]
    count = min(int(report.n_significant or 0), len(report.eigenvalues))
    groups = _groups(preparation)
    if count == 0 or len(groups) > MOST_COLUMNS:
        return None
    # Share of column j in direction f, Jansen's estimate of its total effect (1999):
    # T_j = E[(f(x) - f(x with x_j of another row))^2] / 2 Var f. For a straight line in independent
    # columns it is the squared loading in standardised units. All columns of one text go together.
    rng = random_stream(seed, "rows to attribute directions")
    rows = rng.permutation(len(X))[: max(20, min(256, 6000 // len(groups)))]
    others = np.roll(rows, 1)
    here = first_coordinates(model, X[rows])[:, :count]
    effects = np.empty((count, len(groups)))
    for place, (_, columns) in enumerate(groups):
        changed = np.array(X[rows])
        changed[:, columns] = X[others][:, columns]
        gone = first_coordinates(model, changed)[:, :count]
        effects[:, place] = np.mean((here - gone) ** 2, axis=0) / 2
    everywhere = first_coordinates(model, X)[:, :count]
    effects /= np.maximum(everywhere.var(axis=0), 1e-300)[:, None]
    strength = np.abs(np.asarray(report.eigenvalues[:count], dtype=np.float64))
    total = strength @ effects
    sums = effects.sum(axis=1, keepdims=True)
    return Attribution(
        tuple(name for name, _ in groups),
        effects / np.where(sums > 0, sums, 1.0),
        total / (total.sum() or 1.0),
        _straight(X, everywhere),
        first_coordinates(model, X_test)[:, :count] if len(X_test) else np.empty((0, count)),
    )


def first_coordinates(model: Any, X: np.ndarray) -> np.ndarray:
    """Coordinates that the first filter keeps, shape (n, k)."""
    h = np.asarray(X)
    for layer in model.network_.layers:
        h = layer.apply(h)
        if isinstance(layer, (Filter, KernelFilter)):
            return h
    return h


def _groups(preparation: Preparation) -> list[tuple[str, list[int]]]:
    """Columns of the table, each with its columns of the matrix."""
    groups = [(name, [place]) for place, name in enumerate(preparation.numeric_names)]
    start = len(groups)
    for name, texts in preparation.categories:
        groups.append((name, list(range(start, start + len(texts)))))
        start += len(texts)
    return groups


def _straight(X: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Share of each feature that a straight line in the columns explains, corrected for their number."""
    n, d = X.shape
    if n < 2 * d + 10:
        return np.full(features.shape[1], np.nan)
    A = np.column_stack([np.ones(n), X])
    left = features - A @ np.linalg.lstsq(A, features, rcond=None)[0]
    spread = np.maximum(features.var(axis=0), 1e-300)
    return np.asarray(np.clip(1 - left.var(axis=0) / spread * (n - 1) / (n - d - 1), 0, 1))


def matched(
    whole: Attribution, in_folds: Sequence[Attribution], coordinates: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Shares of each fold's likest direction, (K, G), and its squared correlation, (folds, K)."""
    # On the rows that the fold tests: coordinates are those of the directions of the whole there.
    shares, again = [], []
    for fold, values in zip(in_folds, coordinates, strict=True):
        squared = _correlations(values, fold.tested) ** 2
        likest = squared.argmax(axis=1)
        shares.append(_aligned(fold, whole.columns, fold.shares)[likest])
        again.append(squared.max(axis=1))
    return shares, np.array(again)


def column_shares(
    columns: Sequence[str], share: np.ndarray, in_folds: Sequence[np.ndarray]
) -> tuple[ColumnShare, ...]:
    """Shares by size, with the least and largest of the folds."""
    ends = [np.array(in_folds).min(axis=0), np.array(in_folds).max(axis=0)] if len(in_folds) else []
    return tuple(
        ColumnShare(columns[place], float(share[place]), *(float(end[place]) for end in ends))
        for place in np.argsort(-share, kind="stable")
    )


def totals(whole: Attribution, in_folds: Sequence[Attribution]) -> tuple[ColumnShare, ...]:
    """Shares of the columns in all directions together."""
    folds = [_aligned(fold, whole.columns, fold.total[None])[0] for fold in in_folds]
    return column_shares(whole.columns, whole.total, folds)


def _aligned(fold: Attribution, columns: Sequence[str], shares: np.ndarray) -> np.ndarray:
    """Shares in the order of other columns; none for a column that the fold dropped."""
    place = {name: i for i, name in enumerate(fold.columns)}
    padded = np.column_stack([shares, np.zeros(len(shares))])
    return np.asarray(padded[:, [place.get(name, -1) for name in columns]])


def _correlations(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    def standard(values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=0)
        return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300))

    return np.asarray(standard(left).T @ standard(right))
