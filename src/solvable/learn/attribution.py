"""Attribute the directions of the first filter to the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Preparation
from solvable.networks.layers import Filter, KernelFilter, Residual

MOST_COLUMNS = 1000  # largest number of columns for which directions are attributed to columns


@dataclass(frozen=True, eq=False)
class Attribution:
    """Shares of the table's G columns in the K directions that one fit found."""

    columns: tuple[str, ...]
    shares: np.ndarray  # share of each column in each direction, shape (K, G); each row sums to one
    total: np.ndarray  # mean share of each column, shape (G,); directions weighted by strength
    straight: np.ndarray  # (K,), adjusted R² of each direction on the columns; NaN for few rows


def rows_attributed(columns: int) -> int:
    """Return the number of rows on which each column is shuffled, for a given number of columns."""
    return max(20, min(256, 6000 // columns))


def attribute(
    model: Any, X: np.ndarray, preparation: Preparation, *, seed: int
) -> Attribution | None:
    """Compute each column's share in each direction above its null; None if no direction is above."""
    report = model.filters_[0]
    count = report.n_kept_above
    groups = column_groups(preparation)
    if count == 0 or len(groups) > MOST_COLUMNS:
        return None
    # The share of column j in direction f is Jansen's (1999) estimate of the column's total effect,
    # T_j = E[(f(x) - f(x with x_j of another row))²] / 2 Var f. If f is linear and the columns are
    # independent, T_j is the squared loading of column j in standardised units. Columns of 0 and 1
    # that encode the same column of text are exchanged together.
    rng = random_stream(seed, "rows to attribute directions")
    rows = rng.permutation(len(X))[: rows_attributed(len(groups))]
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
    total = relative_strengths(report)[:count] @ effects
    sums = effects.sum(axis=1, keepdims=True)
    return Attribution(
        tuple(name for name, _ in groups),
        effects / np.where(sums > 0, sums, 1.0),
        total / (total.sum() or 1.0),
        _straight(X, everywhere),
    )


def relative_strengths(report: Any) -> np.ndarray:
    """Return the strength of each kept direction divided by its null."""
    # First and second moments have different units, so each is divided by its own null.
    linear = np.asarray(report.linear_ratios, dtype=np.float64)
    first = (
        float(np.nanmax(report.null_ratios[:, 0], initial=0.0)) if report.null_ratios.size else 1.0
    )
    sizes = np.abs(np.asarray(report.eigenvalues, dtype=np.float64))
    return np.concatenate([linear, first * sizes / (float(sizes.max(initial=0.0)) or 1.0)])


def first_coordinates(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the coordinates of the rows along the first filter's directions, shape (n, k)."""
    h = np.asarray(X)
    for layer in model.network_.layers:
        if isinstance(layer, Residual):
            return np.asarray(layer.kept(h))
        h = layer.apply(h)
        if isinstance(layer, (Filter, KernelFilter)):
            return h
    return h


def column_groups(preparation: Preparation) -> list[tuple[str, list[int]]]:
    """Return the names of the table's columns, each with the matrix columns that encode it."""
    groups: dict[str, list[int]] = {}
    start = 0
    for name, encoded in preparation.parts:
        groups.setdefault(name, []).extend(range(start, start + len(encoded)))
        start += len(encoded)
    return list(groups.items())


def _straight(X: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the adjusted R² of the linear regression of each feature on the columns."""
    n, d = X.shape
    if n < 2 * d + 10:
        return np.full(features.shape[1], np.nan)
    A = np.column_stack([np.ones(n), X])
    left = features - A @ np.linalg.lstsq(A, features, rcond=None)[0]
    spread = np.maximum(features.var(axis=0), 1e-300)
    return np.asarray(np.clip(1 - left.var(axis=0) / spread * (n - 1) / (n - d - 1), 0, 1))


def matched(
    in_folds: Sequence[np.ndarray], coordinates: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Match each direction with each fold's most correlated direction, on the fold's test rows."""
    # Returns the indices of the matches and their squared correlations, each of shape (folds, K).
    squared = [_correlations(*pair) ** 2 for pair in zip(coordinates, in_folds, strict=True)]
    return (
        np.array([one.argmax(axis=1) for one in squared]),
        np.array([one.max(axis=1) for one in squared]),
    )


def _correlations(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    def standard(values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=0)
        return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300))

    return np.asarray(standard(left).T @ standard(right))
