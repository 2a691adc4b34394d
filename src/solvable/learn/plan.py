"""Plan the fits of a learning run and the rows of each fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from solvable.data.dataset import Dataset, Split
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.learn.competitors import CONSTANT, LEARNED, methods
from solvable.learn.dealt_rows import DealtRows, check_rows, used_rows
from solvable.learn.design import Design, width_for
from solvable.learn.fold_fits import Measured, Task
from solvable.learn.folds import nested_rows, training_sizes
from solvable.learn.metrics import check_metric
from solvable.learn.request import Request
from solvable.memory import available_bytes, gigabytes


class Plan:
    """Planned fits of a learning run, with the training and test rows of each fit."""

    def __init__(self, dataset: Dataset, request: Request) -> None:
        check_rows(dataset)
        check_metric(request.metric, dataset)
        self.dataset, self.request = dataset, request
        self.rows, notes = used_rows(dataset, request)
        self.dealt = DealtRows(dataset, self.rows, request)
        self.notes = [*notes, *self.dealt.notes]
        self.y = dataset.y[self.rows]
        self.folds = self.dealt.folds
        regression = dataset.kind == "regression"
        self.classes = 0 if regression else int(self.y.max()) + 1
        self.smallest = min(len(self.dealt.train(fold)) for fold in range(request.folds))
        self.design = Design(
            regression,
            "global" if dataset.image_shape else "columns",
            width_for(self.smallest),
            request,
            self.smallest,
        )
        self.methods = methods(self.design)
        # size of the learning curve's smallest training set
        least = max(24, 5 * max(1, len(dataset.class_labels)))
        self.sizes = training_sizes(self.smallest, smallest=least)
        self.tasks = self._tasks()  # fits before a method is chosen

    def _tasks(self) -> list[Task]:
        """Return the fits that the choice of a method needs, and the learned features of all rows."""
        tasks, design = [self._of_all_rows(LEARNED)], self.design
        # For images, directions are shown as pictures, so no fold attributes directions to pixels.
        attributed = self.dataset.image_shape is None
        for fold in range(self.request.folds):
            train = self.dealt.train(fold)
            split = self.split_of(fold)
            tasks += [
                Task(
                    method.key,
                    fold,
                    split,
                    design,
                    len(train),
                    # The importance of columns needs the models of tables; large ones only once.
                    keep_model=attributed and (fold == 0 or design.width == math.inf),
                    attributed=attributed and method.key == LEARNED,
                    limited=self.dealt.times is None,
                )
                for method in self.methods
            ]
        return tasks

    def split_of(self, fold: int) -> Callable[[], Split]:
        """Return a function that prepares the training and test rows of a fold."""
        return self._split(self.dealt.train(fold), np.flatnonzero(self.folds == fold))

    def _of_all_rows(self, method: str) -> Task:
        X, y, none = self.dataset.X[self.rows], self.y, slice(0, 0)
        split = Split(X, y, X[none], y[none], self.dataset.preparation)
        of_features = method == LEARNED
        return Task(method, -1, split, self.design, len(y), keep_model=True, attributed=of_features)

    def later_tasks(self, chosen: Sequence[str]) -> list[Task]:
        """Return the fits of the recommended method, or of the methods of a blend.

        These are the fits to all rows, and those of the learning curve.
        """
        tasks = [self._of_all_rows(key) for key in chosen if key != LEARNED]
        curves = [LEARNED if key == CONSTANT else key for key in chosen]
        for fold in range(self.request.folds):
            train, test = self.dealt.train(fold), np.flatnonzero(self.folds == fold)
            # With times, the training sets of folds have different sizes, so the largest size of the
            # learning curve needs a fit of its own.
            sizes = self.sizes[:-1] if self.dealt.times is None else self.sizes
            key = (self.request.seed, fold)
            parts = nested_rows(train, sizes, self.dealt.classes, key=key, groups=self.dealt.groups)
            for part in parts.values():
                if len(part) < len(train) and len(np.unique(self.y[part])) > 1:
                    smaller = self._split(part, test)
                    limited = self.dealt.times is None
                    tasks += [
                        Task(key, fold, smaller, self.design, len(part), limited=limited)
                        for key in curves
                    ]
        return tasks

    def _split(self, train: np.ndarray, test: np.ndarray) -> Callable[[], Split]:
        """Return a function that prepares the rows of a fit later, to save memory."""
        if len(np.unique(self.y[train])) < 2:
            raise InvalidData(
                f"the target {self.dataset.target!r} has a single value in the training rows of a fold, "
                "because nearly all rows with other values are copies of one another. Remove the copies."
            )
        return partial(self.dataset.split, self.rows[train], self.rows[test])

    def is_full(self, fit: Measured) -> bool:
        """Return True if a fit used all training rows of its fold."""
        return fit.fold >= 0 and fit.training_rows == len(self.dealt.train(fit.fold))

    @property
    def can_stop(self) -> bool:
        """Return True if squared errors of equally large folds decide, without a limit of time."""
        shares = np.unique(self.y, return_counts=True)[1] / len(self.y)
        unequal = bool(self.classes) and shares.max() > 0.8  # the AUC decides
        asked = self.request.metric is not None or self.request.seconds is not None
        return not (unequal or asked or self.dealt.times is not None)

    def workers(self, asked: int) -> int:
        """Return the number of processes that fit into memory at the same time."""
        rows = float(len(self.y))
        if self.design.width != math.inf:
            width = float(self.design.lazy_width)
            classes = 2 if self.dealt.classes is None else len(np.unique(self.dealt.classes))
            need = 8.0 * (rows * width + (2 + classes) * width**2)
        else:
            # A fit keeps about eight kernel matrices in memory at a time.
            need = 8.0 * 8 * rows**2
        free = available_bytes()
        if need > free:
            raise MemoryLimitExceeded(
                f"one fit of {len(self.y)} rows needs about {gigabytes(need)} of memory; allowed: the "
                f"{gigabytes(free)} that are free. Use fewer rows with --rows."
            )
        return max(1, min(asked, len(self.tasks), int(0.8 * free / need)))

    @property
    def network(self) -> str:
        """Describe the network in one sentence."""
        width = (
            "infinitely wide (as kernels)"
            if self.design.width == math.inf
            else f"{self.design.width} wide"
        )
        filters = "one filter" if self.design.layers == 1 else f"{self.design.layers} filters"
        return (
            f"{self.design.depth} random ReLU layers, {width}, with {filters} between them that keep "
            "only the directions with signal about the target, followed by a ridge regression. Nothing "
            "is trained by gradient descent."
        )

    @property
    def protocol(self) -> str:
        """Describe how errors are measured, and for which new rows the errors are valid."""
        folds, tested = self.request.folds, int(np.sum(self.folds >= 0))
        if self.dealt.times is not None:
            how = (
                f"{folds} periods, each predicted from all rows before it: {tested} of {len(self.y)} "
                f"rows are predicted once, by models fitted to {self.smallest} or more rows"
            )
            assumes = (
                "later rows like these; intervals are valid if the correlation of rows lasts less "
            )
            assumes += "than a twentieth of the time"
        else:
            how = (
                f"{folds}-fold cross-validation: each of the {len(self.y)} rows is predicted once, by "
                f"a model fitted to about {self.smallest} other rows"
            )
            assumes = "new rows drawn from the same distribution, independent of each other"
            if self.dealt.groups is not None:
                how += ", none of its own group"
                assumes = "rows of new groups drawn from the same distribution"
        return (
            f"{how}. Medians, encodings, filters, numbers of directions, penalties and widths are "
            f"computed from these other rows only. The error is that for {assumes}."
        )
