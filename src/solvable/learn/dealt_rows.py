"""Select the rows to learn from, and deal them to folds."""

from __future__ import annotations

import math

import numpy as np

from solvable.arrays import random_stream
from solvable.data.dataset import Dataset
from solvable.errors import InvalidData
from solvable.learn.folds import deal_folds, deal_groups, deal_times, united
from solvable.learn.leaks import continuous_columns, near_copies
from solvable.learn.request import LEAST_ROWS, Request


def check_rows(dataset: Dataset) -> None:
    """Raise :class:`InvalidData` if there are too few rows to hold back test rows."""
    if dataset.n_samples < LEAST_ROWS:
        raise InvalidData(
            f"{dataset.name} has {dataset.n_samples} rows with a target; allowed: at least "
            f"{LEAST_ROWS}, as some must be held back to test. Add rows."
        )


def used_rows(dataset: Dataset, request: Request) -> tuple[np.ndarray, list[str]]:
    """Return the rows that are used, in order, and sentences about the rows that are left out."""
    n, most, notes = dataset.n_samples, request.rows, []
    rows = without_copies(dataset)
    if len(rows) < n:
        notes.append(
            f"dropped {n - len(rows)} of {n} rows: equal to another row in every column, target included"
        )
        if len(rows) < LEAST_ROWS:
            raise InvalidData(
                f"{dataset.name} has {len(rows)} different rows; allowed: at least {LEAST_ROWS}. Add "
                "rows."
            )
    if len(rows) > most:
        notes.append(
            f"learned from {most} of {len(rows)} rows, drawn at random; --rows sets how many"
        )
        rows = rows[np.sort(random_stream(request.seed, "rows").permutation(len(rows))[:most])]
    return rows, notes


def without_copies(dataset: Dataset) -> np.ndarray:
    """Remove copies of rows, but not rows that are equal by chance."""
    first = dataset.identical_rows()
    heads, counts = np.unique(first, return_counts=True)
    n = len(first)
    if len(heads) == n:
        return np.arange(n)
    # Equal images are copies, and so are equal rows with a continuous column: not equal by chance.
    table = dataset.table.rows(heads)
    columns = [table.column(name) for name in table.order]
    if dataset.kind == "regression":
        columns.append(dataset.y[heads])
    if dataset.image_shape is not None or any(map(_is_continuous, columns)):
        return heads
    # Without continuous columns, rows may be equal by chance. Only if the number of occurrences of
    # every row has a common divisor (all rows stored twice, say) is that factor removed.
    times = math.gcd(*counts.tolist())
    kept = dict(zip(heads.tolist(), (counts // times).tolist(), strict=True))
    seen: dict[int, int] = {}
    place = np.empty(n, dtype=np.int64)
    for row, head in enumerate(first.tolist()):
        place[row] = seen[head] = seen.get(head, -1) + 1
    return np.flatnonzero(place < np.array([kept[head] for head in first.tolist()]))


def _is_continuous(column: np.ndarray) -> bool:
    texts = column.dtype == object
    values = np.array(["" if cell is None else str(cell) for cell in column]) if texts else column
    return bool(continuous_columns(values[:, None])[0])


class DealtRows:
    """Assignment of rows to folds that keeps together rows that depend on one another."""

    def __init__(self, dataset: Dataset, rows: np.ndarray, request: Request) -> None:
        self.rows, self.notes = rows, list[str]()
        self.groups = None if dataset.groups is None else dataset.groups[rows]
        self.times = None if dataset.times is None else dataset.times[rows]
        self.classes = None if dataset.kind == "regression" else dataset.y[rows]
        self.together = near_copies(dataset.X[rows])
        self.copies = len(rows) - len(np.unique(self.together))
        self.folds = self._dealt(dataset.name, request)

    def _dealt(self, name: str, request: Request) -> np.ndarray:
        """Return the fold of each row; -1 for the first period in time, whose rows are never tested."""
        folds, seed = request.folds, request.seed
        if self.times is not None:
            if self.copies:
                self.notes.append(f"{self.copies} rows are equal or nearly equal to another row")
            return deal_times(folds, self.times)
        if self.copies:
            self.notes.append(
                f"{self.copies} rows are equal or nearly equal to another row; such rows are in the same "
                "fold, so that no test row has a copy among its training rows"
            )
        if self.groups is None:
            return deal_folds(folds, self.together, self.classes, seed=seed)
        first = np.unique(self.groups, return_index=True, return_inverse=True)
        links = np.concatenate([first[1][first[2]], self.together])
        n = len(self.rows)
        self.together = united(n, np.tile(np.arange(n), 2), links)
        number = len(np.unique(self.together))
        if number < 2 * folds:
            raise InvalidData(
                f"{name} has {number} groups of rows; allowed: at least {2 * folds}, two per fold. Use "
                "fewer folds with --folds, or another column."
            )
        self.notes.append(f"{number} groups of rows, each tested as a whole")
        return deal_groups(folds, self.together, self.classes, seed=seed)

    def train(self, fold: int) -> np.ndarray:
        """Return the training rows of a fold."""
        if self.times is None:
            return np.flatnonzero(self.folds != fold)
        return np.flatnonzero(self.folds < fold)

    def clusters(self) -> np.ndarray | None:
        """Return the cluster of each tested row; None if no rows may depend on one another."""
        tested = self.folds >= 0
        # number of periods treated as independent; longer correlations in time are not accounted for
        stretches = 20
        if self.times is not None:
            order = np.argsort(np.argsort(self.times[tested], kind="stable"))
            return np.asarray(order * stretches // len(order))
        if self.groups is not None or self.copies:
            return np.asarray(self.together[tested])
        return None
