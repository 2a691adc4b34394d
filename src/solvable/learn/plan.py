"""Which fits are made of a data set, on which rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from solvable.data.dataset import Dataset, Split
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.learn.competitors import LEARNED, methods
from solvable.learn.dealt_rows import DealtRows, check_rows, used_rows
from solvable.learn.design import Design, width_for
from solvable.learn.fold_fits import Measured, Task
from solvable.learn.folds import nested_rows, training_sizes
from solvable.learn.request import Request
from solvable.memory import available_bytes, gigabytes


class Plan:
    """Which fits are made, on which rows."""

    def __init__(self, dataset: Dataset, request: Request) -> None:
        check_rows(dataset)
        self.dataset, self.request = dataset, request
        self.rows, notes = used_rows(dataset, request)
        self.dealt = DealtRows(dataset, self.rows, request)
        self.notes = [*notes, *self.dealt.notes]
        self.y = dataset.y[self.rows]
        self.folds = self.dealt.folds
        regression = dataset.kind == "regression"
        self.smallest = min(len(self.dealt.train(fold)) for fold in range(request.folds))
        self.design = Design(
            regression,
            "global" if dataset.image_shape else "columns",
            width_for(self.smallest),
            request,
            self.smallest,
        )
        self.methods = methods(self.design)
        # The smallest training set of a learning curve.
        least = max(24, 5 * max(1, len(dataset.class_labels)))
        self.sizes = training_sizes(self.smallest, smallest=least)
        self.tasks = self._tasks()

    def _tasks(self) -> list[Task]:
        X, y, design, none = self.dataset.X[self.rows], self.y, self.design, slice(0, 0)
        everything = Split(X, y, X[none], y[none], self.dataset.preparation)
        tasks = [Task(LEARNED, -1, everything, design, len(y), keep_model=True, attributed=True)]
        # Of images, pictures are shown and pixels are not compared fold by fold.
        attributed = self.dataset.image_shape is None
        for fold in range(self.request.folds):
            train, test = self.dealt.train(fold), np.flatnonzero(self.folds == fold)
            split = self._split(train, test)
            tasks += [
                Task(
                    method.key,
                    fold,
                    split,
                    design,
                    len(train),
                    attributed=attributed and method.key == LEARNED,
                )
                for method in self.methods
            ]
            # Training sets of all folds have the same size only where none is later than another.
            sizes = self.sizes[:-1] if self.dealt.times is None else self.sizes
            key = (self.request.seed, fold)
            parts = nested_rows(train, sizes, self.dealt.classes, key=key, groups=self.dealt.groups)
            for part in parts.values():
                if len(part) < len(train) and len(np.unique(y[part])) > 1:
                    smaller = self._split(part, test)
                    tasks.append(Task(LEARNED, fold, smaller, design, len(part)))
        return tasks

    def _split(self, train: np.ndarray, test: np.ndarray) -> Callable[[], Split]:
        """What prepares the rows of a fit: made when its turn comes, as all together are large."""
        if len(np.unique(self.y[train])) < 2:
            raise InvalidData(
                f"the rows of target {self.dataset.target!r} outside one fold hold one value only, "
                "as nearly all rows with the others are copies of one another. Remove the copies."
            )
        return partial(self.dataset.split, self.rows[train], self.rows[test])

    def is_full(self, fit: Measured) -> bool:
        """Whether a fit had all rows outside its fold."""
        return fit.fold >= 0 and fit.training_rows == len(self.dealt.train(fit.fold))

    def workers(self, asked: int) -> int:
        """Processes that fit into memory beside each other."""
        rows = float(len(self.y))
        if self.design.width != math.inf:
            width = float(self.design.lazy_width)
            classes = 2 if self.dealt.classes is None else len(np.unique(self.dealt.classes))
            need = 8.0 * (rows * width + (2 + classes) * width**2)
        else:
            # A fit holds about eight matrices of the size of a kernel at a time.
            need = 8.0 * 8 * rows**2
        free = available_bytes()
        if need > free:
            raise MemoryLimitExceeded(
                f"one fit of {len(self.y)} rows takes about {gigabytes(need)}; {gigabytes(free)} are "
                "free. Use fewer rows with --rows."
            )
        return max(1, min(asked, len(self.tasks), int(0.8 * free / need)))

    @property
    def network(self) -> str:
        """The network, in words."""
        width = (
            "infinitely wide (as kernels)"
            if self.design.width == math.inf
            else f"{self.design.width} wide"
        )
        filters = "one filter" if self.design.layers == 1 else f"{self.design.layers} filters"
        return (
            f"{self.design.depth} random ReLU layers, {width}, with {filters} between them that keep "
            "the directions that carry signal about the target; on top a ridge regression. Nothing "
            "is trained by gradient descent."
        )

    @property
    def protocol(self) -> str:
        """How errors are measured, in words, and what they assume."""
        folds, tested = self.request.folds, int(np.sum(self.folds >= 0))
        if self.dealt.times is not None:
            how = (
                f"{folds} stretches of time, each predicted from all rows before it: {tested} of "
                f"{len(self.y)} rows once, by models fitted to {self.smallest} rows and more"
            )
            assumes = "later rows like these; intervals hold if what rows share lasts less than a "
            assumes += "twentieth of the time"
        else:
            how = (
                f"{folds}-fold cross-validation: each of the {len(self.y)} rows is predicted once, by "
                f"a model fitted to about {self.smallest} other rows"
            )
            assumes = "new rows that are drawn like these, independent of each other"
            if self.dealt.groups is not None:
                how += ", none of its own group"
                assumes = "rows of new groups that are like these groups"
        return (
            f"{how}. Medians are taken, filters fitted, directions counted and penalties and widths "
            f"tuned anew from those rows alone. The error is that for {assumes}."
        )
