"""Detect dependent rows in any order: rows that form groups, or rows that lie along a curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.arrays import random_stream

SCALES = (10, 20, 40)  # tried numbers of nearest rows to leave out, in this order
MOST_ROWS = 3000  # largest number of rows whose neighbours are compared


class Jump(NamedTuple):
    """Errors of predicting a row from its neighbours, divided by the error of the constant."""

    near: float  # relative error of a prediction from the five nearest rows
    far: float  # relative error from the ten nearest rows after the rows left out
    left_out: int  # number of nearest rows left out


def jump_beyond_neighbours(X: np.ndarray, y: np.ndarray, *, regression: bool) -> Jump | None:
    """Return errors from near and farther rows; None if a smooth target explains their difference."""
    from sklearn.neighbors import NearestNeighbors

    n = len(X)
    Z = _standardised(X)
    scales = [scale for scale in SCALES if 12 * scale <= n]
    if not regression:
        # The largest class must have at least four times as many rows as the number left out.
        y = np.unique(y, return_inverse=True)[1]
        scales = [scale for scale in scales if 4 * scale <= np.bincount(y).max()]
    if Z is None or not scales:
        return None
    rows = random_stream(0, "rows whose neighbours are looked at").permutation(n)[:MOST_ROWS]
    tree = NearestNeighbors(n_neighbors=scales[-1] + 11).fit(Z)
    distances, neighbours = (one[:, 1:] for one in tree.kneighbors(Z[rows]))
    usual = float(np.var(y)) if regression else 1 - float(np.bincount(y).max()) / n

    def error(first: int, last: int) -> float:
        seen = y[neighbours[:, first:last]]
        if regression:
            return float(np.mean((seen.mean(axis=1) - y[rows]) ** 2)) / usual
        votes = np.stack([(seen == one).sum(axis=1) for one in range(int(y.max()) + 1)], axis=1)
        return float(np.mean(votes.argmax(axis=1) != y[rows])) / usual

    near = error(0, 5)
    squared = np.mean(distances**2, axis=0)
    for scale in scales:
        far = error(scale, scale + 10)
        # The squared change of a smooth function grows as the squared distance, noise more slowly.
        smooth = 2 * squared[scale : scale + 10].mean() / max(float(squared[:5].mean()), 1e-300)
        if near < 0.25 and far > 0.8 and min(far, 1.0) > smooth * max(near, 1 / n):
            return Jump(near, far, scale)
    return None


def share_along_a_curve(X: np.ndarray) -> float:
    """Return the number of edges on the minimum spanning tree's longest path, divided by n."""
    # The share is about 0.1 for independent rows in two or more dimensions. It is nearly 1 for rows
    # that show one object changing over time, even after shuffling.
    from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
    from scipy.spatial.distance import pdist, squareform

    Z = _standardised(X)
    if Z is None or not 200 <= len(X) <= MOST_ROWS:
        return 0.0
    Z = np.unique(Z, axis=0)
    tree = minimum_spanning_tree(squareform(pdist(Z)))
    tree.data[:] = 1.0
    first = shortest_path(tree, directed=False, unweighted=True, indices=[0])[0]
    end = int(np.argmax(first))
    return float(shortest_path(tree, directed=False, unweighted=True, indices=[end]).max()) / len(Z)


def _standardised(X: np.ndarray) -> np.ndarray | None:
    """Return the standardised columns with many distinct values; None if fewer than two such columns."""
    distinct = np.array([len(np.unique(column)) for column in X.T])
    few_values = 20  # a column with at most this many distinct values contains classes or counts
    Z = X[:, distinct > min(few_values, len(X) / 50)].astype(np.float64)
    if Z.shape[1] < 2 or len(Z) < 100:
        return None
    return np.asarray((Z - Z.mean(axis=0)) / Z.std(axis=0))
