"""Deal rows to folds so that no two folds share copies of a row; choose nested training sets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from solvable.arrays import random_stream


def identical_rows(X: np.ndarray) -> np.ndarray:
    """Return, for each row, the index of the first row equal to it bit by bit, shape (n,)."""
    seen: dict[bytes, int] = {}
    # Adding zero turns -0.0 into 0.0.
    return np.array([seen.setdefault((row + 0.0).tobytes(), i) for i, row in enumerate(X)])


def deal_folds(
    n_folds: int, groups: np.ndarray, classes: np.ndarray | None, *, seed: int
) -> np.ndarray:
    """Deal groups of rows to folds at random, each class evenly; return the fold of each row."""
    # A class with two or more groups is in the training rows of every fold.
    rng = random_stream(seed, "folds")
    heads = np.unique(groups)
    heads = heads[rng.permutation(len(heads))]
    if classes is not None:
        # Groups are dealt class by class in one sequence, so that folds also have equal sizes.
        heads = heads[np.argsort(classes[heads], kind="stable")]
    of_head = np.empty(len(groups), dtype=np.int64)
    of_head[heads] = np.arange(len(heads)) % n_folds
    return np.asarray(of_head[groups])


def united(count: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the smallest index connected to each index by the given pairs, shape (count,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(first), dtype=bool), (first, second)), shape=(count, count))
    labels = connected_components(links, directed=False)[1]
    _, lowest = np.unique(labels, return_index=True)
    return np.asarray(lowest[labels])


def deal_groups(
    n_folds: int, groups: np.ndarray, classes: np.ndarray | None, *, seed: int
) -> np.ndarray:
    """Deal groups of unequal sizes to folds of similar size, classes as evenly as possible."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    labels = np.zeros(len(groups)) if classes is None else classes
    # scikit-learn raises if every class has fewer rows than there are folds.
    stratified = classes is not None and np.unique(labels, return_counts=True)[1].max() >= n_folds
    kind = StratifiedGroupKFold if stratified else GroupKFold
    splitter = kind(n_splits=n_folds, shuffle=True, random_state=seed % 2**32)
    folds = np.empty(len(groups), dtype=np.int64)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is missing in some folds, which is allowed.
        warnings.filterwarnings("ignore", "The least populated class")
        for fold, (_, test) in enumerate(splitter.split(labels, labels, groups)):
            folds[test] = fold
    return folds


def deal_times(n_folds: int, times: np.ndarray) -> np.ndarray:
    """Cut time into n_folds + 1 equal periods; return fold -1 for the first, then folds 0, 1, ..."""
    # Rows with the same time are in the same period.
    _, moments, counts = np.unique(times, return_inverse=True, return_counts=True)
    middles = (np.cumsum(counts) - counts / 2) / len(times)
    return np.asarray(np.minimum((middles * (n_folds + 1)).astype(np.int64), n_folds)[moments] - 1)


def training_sizes(rows: int, *, smallest: int) -> tuple[int, ...]:
    """Return the increasing training-set sizes of a learning curve; a single size for few rows."""
    if rows < 2 * smallest:
        return (rows,)
    # Sizes are halved from the largest; if fewer than five fit, they are closer together.
    halvings = np.log2(rows / smallest)
    if halvings >= 4:
        count = min(6, 1 + int(halvings))
        sizes = rows / 2.0 ** np.arange(count)[::-1]
    else:
        sizes = np.geomspace(smallest, rows, 5)
    return tuple(int(size) for size in np.unique(np.round(sizes)))


def nested_rows(
    rows: np.ndarray,
    sizes: Sequence[int],
    classes: np.ndarray | None,
    *,
    key: tuple[int, int],
    groups: np.ndarray | None = None,
) -> dict[int, np.ndarray]:
    """Return nested training sets by size, classes in proportion; `key` is the pair of seed and fold."""
    order = random_stream(key[0], "nested rows", key[1]).permutation(len(rows))
    shuffled = rows[order]
    if groups is not None:  # Rows are added one group after another.
        _, first = np.unique(groups[shuffled], return_index=True)
        place = dict(zip(groups[shuffled[first]].tolist(), first.tolist(), strict=True))
        turn = np.array([place[group] for group in groups[shuffled].tolist()])
        shuffled = shuffled[np.argsort(turn, kind="stable")]
    elif classes is not None:
        shuffled = shuffled[_spread_evenly(classes[shuffled])]
    return {size: np.sort(shuffled[:size]) for size in sizes}


def _spread_evenly(classes: np.ndarray) -> np.ndarray:
    """Return an order of the rows in which every initial segment contains the classes in proportion."""
    place = np.empty(len(classes))
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.argsort(place, kind="stable")
