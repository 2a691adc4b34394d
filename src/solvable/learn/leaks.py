"""What makes an error look better than it is: copies, rows like their neighbours, telling columns."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Table
from solvable.learn.folds import identical_rows, united

NEIGHBOURS = 30
"""Rows next to each that say how far apart rows usually are."""

MOST_COMPARED = 20_000
"""Rows up to which all pairs are compared."""

TOLD = 0.02
"""Error, or variance not explained, below which one column alone is said to tell the target."""


def near_copies(X: np.ndarray) -> np.ndarray:
    """First row of each group of equal or nearly equal rows, shape (n,)."""
    groups = identical_rows(X)
    heads = np.unique(groups)
    count = min(NEIGHBOURS, (len(heads) - 1) // 2)
    if count < 4 or len(heads) > MOST_COMPARED:
        return groups
    from sklearn.neighbors import NearestNeighbors

    different = X[heads]
    scale = different.std(axis=0)
    Z = (different[:, scale > 0] - different[:, scale > 0].mean(axis=0)) / scale[scale > 0]
    tree = NearestNeighbors(n_neighbors=count + 1).fit(Z)
    distances, neighbours = (one[:, 1:] for one in tree.kneighbors(Z))
    half = count // 2
    # Levina and Bickel 2004: the dimension m that rows seem to have, from the farther neighbours; that
    # of the tenth of them in the fewest dimensions.
    farthest = distances[:, -1:]
    logs = np.log(farthest / np.maximum(distances[:, half:-1], 1e-300))
    # E[log d_k / d_j] = (H_(k-1) - H_(j-1)) / m with harmonic numbers H.
    steps = np.cumsum(1 / np.arange(count - 1, half, -1))
    dimension = float(steps.mean()) / max(float(np.quantile(logs.mean(axis=1), 0.9)), 1e-3)
    # The nearest of k neighbours is closer than r times the k-th with probability k r^m: here one
    # pair in a hundred data sets, and never more than a fifth.
    limit = min((0.01 / (len(heads) * count)) ** (1 / dimension), 0.2)
    near = distances < limit * farthest
    first, place = np.nonzero(near)
    joined = united(len(heads), first, neighbours[first, place])
    of_head = dict(zip(heads.tolist(), heads[joined].tolist(), strict=True))
    return np.array([of_head[head] for head in groups.tolist()])


def likeness_of_neighbours(
    X: np.ndarray, classes: np.ndarray | None, *, seed: int
) -> tuple[float, float]:
    """Squared distance of rows next to each other over that of any two of a class, and its z-score."""
    # Within a class, so that a file sorted by the target is none; columns that the file is sorted by
    # say nothing either.
    n = len(X)
    labels = np.zeros(n, dtype=np.int64) if classes is None else classes
    ranks = np.argsort(np.argsort(X, axis=0, kind="stable"), axis=0)
    place = np.arange(n)
    sorted_by = np.abs(np.corrcoef(ranks.T, place)[-1, :-1]) > 0.98
    Z = X[:, ~sorted_by].astype(np.float64)
    Z = Z[:, Z.std(axis=0) > 0]
    if not Z.shape[1] or n < 50:
        return 1.0, 0.0
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    members = [np.flatnonzero(labels == one) for one in np.unique(labels)]
    members = [one for one in members if len(one) > 2]

    def distance(orders: list[np.ndarray]) -> float:
        parts = [np.sum((Z[one[1:]] - Z[one[:-1]]) ** 2, axis=1) for one in orders]
        return float(np.concatenate(parts).mean()) if parts else 1.0

    rng = random_stream(seed, "order of the rows")
    shuffled = [distance([rng.permutation(one) for one in members]) for _ in range(30)]
    usual = float(np.mean(shuffled))
    found = distance(members)
    spread = float(np.std(shuffled, ddof=1))
    return found / usual, (found - usual) / spread if spread > 0 else 0.0


def telling_columns(table: Table, y: np.ndarray, *, regression: bool) -> list[tuple[str, float]]:
    """Columns that alone predict the target nearly without error, with that error."""
    n = len(y)
    constant = 1.0 if regression else 1 - np.bincount(y).max() / n
    if n < 50 or constant < 5 * TOLD:
        return []
    found = []
    for name in table.order:
        column = table.column(name)
        error = _text_error(column, y, regression) if name in table.texts else None
        if name not in table.texts:
            error = _number_error(np.asarray(column, dtype=np.float64), y, regression)
        if error is not None and error <= TOLD:
            found.append((name, float(error)))
    return sorted(found, key=lambda one: one[1])


def _number_error(column: np.ndarray, y: np.ndarray, regression: bool) -> float | None:
    """Error of a tree of few leaves on one column; a missing value is a value of its own."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    missing = np.isnan(column)
    if missing.all() or (np.ptp(column[~missing]) == 0 and not missing.any()):
        return None
    values = np.where(missing, np.nanmin(column) - 1.0 - np.ptp(column[~missing]), column)
    # Few leaves of many rows each, so that what they fit is no chance.
    if regression:
        leaves = min(64, len(y) // 10)
        tree = DecisionTreeRegressor(max_leaf_nodes=max(leaves, 2), random_state=0)
    else:
        leaves = max(len(np.unique(y)), 4)
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
    score = tree.fit(values[:, None], y).score(values[:, None], y)
    # A straight line is told at once: the same quantity in another unit.
    straight = np.corrcoef(values, y)[0, 1] ** 2 if regression and not missing.any() else 0.0
    return 1 - max(float(score), float(straight))


def _text_error(column: np.ndarray, y: np.ndarray, regression: bool) -> float | None:
    """Error of the mean, or the commonest class, of each text."""
    texts = np.array(["" if cell is None else str(cell) for cell in column])
    _, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    # Texts of a few rows each would tell anything.
    if len(counts) > len(y) / 10:
        return None
    if regression:
        means = np.bincount(codes, weights=y) / counts
        return float(np.var(y - means[codes]) / np.var(y))
    table = np.zeros((len(counts), int(y.max()) + 1))
    np.add.at(table, (codes, y), 1)
    return 1 - float(table.max(axis=1).sum()) / len(y)
