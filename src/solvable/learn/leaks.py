"""Find causes of a misleadingly small error: copies of rows, dependent rows, leaking columns."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Table
from solvable.learn.folds import identical_rows, united

LEAKING_ERROR = 0.02
"""Error (or unexplained variance) below which a column that alone predicts the target is reported."""


def continuous_columns(X: np.ndarray) -> np.ndarray:
    """Return the mask of columns in which more than half of the values are distinct, shape (d,)."""
    return np.array([2 * len(np.unique(column)) > len(column) for column in X.T], dtype=bool)


def near_copies(X: np.ndarray) -> np.ndarray:
    """Return, for each row, the first row that is equal or nearly equal to it, shape (n,)."""
    groups = identical_rows(X)
    heads = np.unique(groups)
    continuous = continuous_columns(X[heads])
    # Rows that agree only in columns of few values may agree by chance; they are not copies.
    if not continuous.any():
        return np.arange(len(X))
    looked_at = 30  # number of neighbours that determine the usual distance around a row
    count = min(looked_at, (len(heads) - 1) // 2)
    most_compared = 20_000  # largest number of compared rows; larger tables: only equal rows
    if count < 4 or len(heads) > most_compared:
        return groups
    from sklearn.neighbors import NearestNeighbors

    # Copies must agree exactly in the columns with few values. Distances use the continuous columns.
    cells = np.zeros(len(heads), dtype=np.int64)
    if not continuous.all():
        cells = identical_rows(X[heads][:, ~continuous])
    different = X[heads][:, continuous]
    scale = different.std(axis=0)
    Z = (different[:, scale > 0] - different[:, scale > 0].mean(axis=0)) / scale[scale > 0]
    tree = NearestNeighbors(n_neighbors=count + 1).fit(Z)
    distances, neighbours = (one[:, 1:] for one in tree.kneighbors(Z))
    half = count // 2
    # Levina and Bickel (2004) estimate the intrinsic dimension m at each row from the row's farther
    # neighbours. The estimate used here is the lower decile over the rows.
    farthest = distances[:, -1:]
    logs = np.log(farthest / np.maximum(distances[:, half:-1], 1e-300))
    # E[log d_k / d_j] = (H_(k-1) - H_(j-1)) / m with harmonic numbers H.
    steps = np.cumsum(1 / np.arange(count - 1, half, -1))
    dimension = float(steps.mean()) / max(float(np.quantile(logs.mean(axis=1), 0.9)), 1e-3)
    # Another row is closer than r times the distance of the k-th neighbour with probability
    # k r^m / n. The limit r gives one false pair in about a hundred data sets, and is at most 0.2.
    agreeing = float(np.sum(np.unique(cells, return_counts=True)[1].astype(float) ** 2))
    limit = min((0.01 * len(heads) / (agreeing * count)) ** (1 / dimension), 0.2)
    near = (distances < limit * farthest) & (cells[neighbours] == cells[:, None])
    first, place = np.nonzero(near)
    joined = united(len(heads), first, neighbours[first, place])
    of_head = dict(zip(heads.tolist(), heads[joined].tolist(), strict=True))
    return np.array([of_head[head] for head in groups.tolist()])


def likeness_of_neighbours(
    X: np.ndarray, classes: np.ndarray | None, *, seed: int
) -> tuple[float, float]:
    """Return adjacent rows' mean squared distance divided by shuffled rows', and the ratio's z-score."""
    # Distances are taken within a class, so that a file sorted by the target gives no warning.
    # Columns by which the file is sorted are left out.
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


def tight_groups(
    X: np.ndarray, y: np.ndarray, *, regression: bool
) -> tuple[int, float, float] | None:
    """Return the number of tight groups and two nearest-row errors: inside and outside the group."""
    # Each error is the error of predicting a row by the nearest row of its group, or of another group.
    # With groups (persons, devices), the edges of the minimum spanning tree have two typical lengths,
    # within and between groups; without groups they have one typical length.
    n = len(X)
    if not 50 <= n <= 3000:
        return None
    distinct = np.array([len(np.unique(column)) for column in X.T])
    # Columns with few values are left out: they form groups, but new rows belong to the same groups.
    Z = X[:, distinct > n / 50].astype(np.float64)
    if Z.shape[1] < 2:
        return None
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.spatial.distance import pdist, squareform

    Z, first = np.unique((Z - Z.mean(axis=0)) / Z.std(axis=0), axis=0, return_index=True)
    y = y[first]
    distances = squareform(pdist(Z))
    tree = minimum_spanning_tree(distances).tocoo()
    logs = np.log(tree.data)
    edges = np.sort(logs)
    # Otsu's cut: the split of the edges with the largest variance between the two sides.
    below = np.arange(1, len(edges))
    sums = np.cumsum(edges)
    gap = sums[:-1] / below - (sums[-1] - sums[:-1]) / (len(edges) - below)
    cut = 1 + int(np.argmax(below * (len(edges) - below) * gap**2))
    short, long = edges[:cut], edges[cut:]
    # Ashman's D was 2.2 to 2.9 on all tested tables without groups; a table with groups needs 3.
    apart = np.sqrt(2) * (long.mean() - short.mean()) / np.sqrt(short.var() + long.var() + 1e-30)
    inside = logs < long[0]
    groups = united(len(Z), tree.row[inside], tree.col[inside])
    _, labels, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    shared = sizes[labels] > 1
    number = int(np.count_nonzero(sizes > 1))
    if apart < 3 or number < 15 or shared.mean() < 0.85 or np.median(sizes[labels]) > n / 10:
        return None
    np.fill_diagonal(distances, np.inf)
    same = labels[:, None] == labels
    losses = []
    for usable in (same, ~same):
        nearest = np.argmin(np.where(usable, distances, np.inf), axis=1)[shared]
        loss = (
            (y[nearest] - y[shared]) ** 2 / (2 * np.var(y))
            if regression
            else y[nearest] != y[shared]
        )
        losses.append(loss.astype(np.float64))
    near, far = losses
    # The standard error is computed over groups, because rows of the same group are not independent.
    counts = np.bincount(labels[shared])
    means = (np.bincount(labels[shared], far - near) / np.maximum(counts, 1))[counts > 0]
    error = means.std(ddof=1) / np.sqrt(number)
    if far.mean() - near.mean() < 0.1 or near.mean() > far.mean() / 2 or means.mean() < 4 * error:
        return None
    return number, float(near.mean()), float(far.mean())


def telling_columns(table: Table, y: np.ndarray, *, regression: bool) -> list[tuple[str, float]]:
    """Return the columns that alone predict the target almost exactly, each with its error."""
    n = len(y)
    constant = 1.0 if regression else 1 - np.bincount(y).max() / n
    if n < 50 or constant < 5 * LEAKING_ERROR:
        return []
    if regression:
        # Ranks replace the target (ties at their middle): in a heavy-tailed target one row may hold
        # nearly all variance, and any column can single out that row.
        _, places, counts = np.unique(y, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2)[places]
    found = []
    for name in table.order:
        column = table.column(name)
        predicted = ranks if regression else y
        if name in table.texts:
            error = _text_error(column, predicted, regression)
        else:
            column = np.asarray(column, dtype=np.float64)
            error = _number_error(column, predicted, regression)
            if regression and error is not None and not np.isnan(column).any():
                # A column that is linear in the target is the target in another unit.
                error = min(error, 1 - float(np.corrcoef(column, y)[0, 1] ** 2))
        # A small error is more suspicious for texts and columns of two values than for numbers.
        few = name in table.texts or len(np.unique(column[~np.isnan(column)])) <= 2
        share = 0.1 if few else 0.05
        limit = LEAKING_ERROR if regression else max(LEAKING_ERROR, share * constant)
        if error is not None and error <= limit:
            found.append((name, float(error)))
    return sorted(found, key=lambda one: one[1])


def _number_error(column: np.ndarray, y: np.ndarray, regression: bool) -> float | None:
    """Return the error of a tree with few leaves on one column; "missing" counts as one more value."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    missing = np.isnan(column)
    if missing.all() or (np.ptp(column[~missing]) == 0 and not missing.any()):
        return None
    values = np.where(missing, np.nanmin(column) - 1.0 - np.ptp(column[~missing]), column)
    # The tree has few leaves with many rows each, to avoid overfitting.
    if regression:
        leaves = min(64, len(y) // 10)
        tree = DecisionTreeRegressor(max_leaf_nodes=max(leaves, 2), random_state=0)
    else:
        leaves = max(len(np.unique(y)), 4)
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
    score = tree.fit(values[:, None], y).score(values[:, None], y)
    return 1 - float(score)


def _text_error(column: np.ndarray, y: np.ndarray, regression: bool) -> float | None:
    """Return the error of predicting, for each text, its rows' mean target or most frequent class."""
    texts = np.array(["" if cell is None else str(cell) for cell in column])
    _, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    # Texts that occur in a few rows each would fit any target.
    if len(counts) > len(y) / 10:
        return None
    if regression:
        means = np.bincount(codes, weights=y) / counts
        return float(np.var(y - means[codes]) / np.var(y))
    table = np.zeros((len(counts), int(y.max()) + 1))
    np.add.at(table, (codes, y), 1)
    return 1 - float(table.max(axis=1).sum()) / len(y)
