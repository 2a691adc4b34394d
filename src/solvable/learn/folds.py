r"""Which rows test which: folds that share no copies of a row, and nested training sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.arrays import random_stream


def identical_rows(X: np.ndarray) -> np.ndarray:
    """Group rows that are equal bit by bit.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples.

    Returns
    -------
    ndarray of int, shape (n,)
        The first row that is equal to each; its own number for a row that occurs once.

    Examples
    --------
    >>> identical_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    seen: dict[bytes, int] = {}
    # Adding zero makes the two zeros of floating point one.
    return np.array([seen.setdefault((row + 0.0).tobytes(), i) for i, row in enumerate(X)])


def deal_folds(
    n_folds: int, groups: np.ndarray, classes: np.ndarray | None, *, seed: int
) -> np.ndarray:
    """Deal rows to folds at random, each class evenly, copies of a row together.

    Parameters
    ----------
    n_folds : int
        K, at least 2.
    groups : ndarray of int, shape (n,)
        From :func:`identical_rows`.
    classes : ndarray of int, shape (n,), or None
        Classes to spread evenly; None in regression.
    seed : int
        Of the deal.

    Returns
    -------
    ndarray of int, shape (n,)
        Fold of each row. A class with two groups or more is in the training rows of every fold.

    Examples
    --------
    >>> folds = deal_folds(3, np.arange(9), np.repeat([0, 1, 2], 3), seed=0)
    >>> np.bincount(folds).tolist(), sorted(folds[:3].tolist())
    ([3, 3, 3], [0, 1, 2])
    """
    rng = random_stream(seed, "folds")
    heads = np.unique(groups)
    heads = heads[rng.permutation(len(heads))]
    if classes is not None:
        # Cards are dealt class by class, without a break, so that folds also have equal sizes.
        heads = heads[np.argsort(classes[heads], kind="stable")]
    of_head = np.empty(len(groups), dtype=np.int64)
    of_head[heads] = np.arange(len(heads)) % n_folds
    return np.asarray(of_head[groups])


def training_sizes(rows: int, *, smallest: int, most: int = 6) -> tuple[int, ...]:
    """Sizes of the training sets of a learning curve.

    Parameters
    ----------
    rows : int
        Largest size.
    smallest : int
        Least size that makes sense.
    most : int
        Most sizes.

    Returns
    -------
    tuple of int
        In increasing order, halved from the largest; closer together where fewer than five halvings
        fit. One size alone if there is no room.

    Examples
    --------
    >>> training_sizes(1600, smallest=30), training_sizes(100, smallest=25)
    ((50, 100, 200, 400, 800, 1600), (25, 35, 50, 71, 100))
    """
    if rows < 2 * smallest:
        return (rows,)
    halvings = np.log2(rows / smallest)
    if halvings >= 4:
        count = min(most, 1 + int(halvings))
        sizes = rows / 2.0 ** np.arange(count)[::-1]
    else:
        sizes = np.geomspace(smallest, rows, 5)
    return tuple(int(one) for one in np.unique(np.round(sizes)))


def nested_rows(
    rows: np.ndarray, sizes: Sequence[int], classes: np.ndarray | None, *, key: tuple[int, int]
) -> dict[int, np.ndarray]:
    """Training sets of several sizes, each within the next.

    Parameters
    ----------
    rows : ndarray of int, shape (m,)
        All training rows.
    sizes : sequence of int
        At most m.
    classes : ndarray of int, shape (n,), or None
        Classes of all rows, kept in proportion.
    key : tuple of int
        Seed and fold.

    Returns
    -------
    dict of int to ndarray
        Rows by size.

    Examples
    --------
    >>> found = nested_rows(np.arange(10), [4, 8], np.arange(10) % 2, key=(0, 0))
    >>> sorted((found[4] % 2).tolist()), set(found[4]) <= set(found[8])
    ([0, 0, 1, 1], True)
    """
    order = random_stream(key[0], "nested rows", key[1]).permutation(len(rows))
    shuffled = rows[order]
    if classes is not None:
        shuffled = shuffled[_spread_evenly(classes[shuffled])]
    return {size: np.sort(shuffled[:size]) for size in sizes}


def _spread_evenly(classes: np.ndarray) -> np.ndarray:
    """Order in which every beginning holds the classes in proportion."""
    place = np.empty(len(classes))
    for one in np.unique(classes):
        mine = np.flatnonzero(classes == one)
        place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
    return np.argsort(place, kind="stable")
