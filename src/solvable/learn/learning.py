"""Learn features from a data set, and measure on unseen rows what they are worth."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Dataset, Split
from solvable.errors import InvalidData, MemoryLimitExceeded
from solvable.learn.competitors import LEARNED, Design, methods, width_for
from solvable.learn.directions import layers_found, pictures_of
from solvable.learn.folds import deal_folds, identical_rows, nested_rows, training_sizes
from solvable.learn.measuring import Measured, Progress, Task, measure_all
from solvable.learn.request import LEAST_ROWS, Request
from solvable.learn.results import CurvePoint, Learned
from solvable.learn.scoring import Losses, outlook_of, score_methods
from solvable.memory import available_bytes, gigabytes


def fingerprint_of(dataset: Dataset, request: Request) -> tuple[str, str]:
    """Digests that tell data sets and requests apart.

    Parameters
    ----------
    dataset : Dataset
        The data.
    request : Request
        What is asked.

    Returns
    -------
    request, data : str
        Of data and request together, and of the inputs alone.
    """
    data = digest_of(dataset.X)
    digest = hashlib.blake2b(data.encode(), digest_size=8)
    digest.update(np.ascontiguousarray(dataset.y).data)
    names = [dataset.columns, dataset.class_labels, dataset.kind, dataset.target]
    digest.update(json.dumps([names, asdict(request)]).encode())
    return digest.hexdigest(), data


def digest_of(X: np.ndarray) -> str:
    """Digest that tells whether inputs are the same numbers, whatever their type."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    return hashlib.blake2b(values.data, digest_size=8).hexdigest()


def check_rows(dataset: Dataset) -> None:
    """Raise :class:`InvalidData` if there are too few rows to hold some back."""
    if dataset.n_samples < LEAST_ROWS:
        raise InvalidData(
            f"{dataset.name} has {dataset.n_samples} rows with a target; allowed: at least "
            f"{LEAST_ROWS}, as some must be held back to test. Add rows."
        )


def learn(
    dataset: Dataset,
    request: Request | None = None,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Learned:
    """Learn features, compare them on unseen rows, and forecast what more rows would buy.

    Parameters
    ----------
    dataset : Dataset
        From :func:`solvable.data.load`.
    request : Request, optional
        Folds, layers, seed.
    workers : int
        Processes.
    progress : callable, optional
        Told after every fit: done, in all, seconds left.

    Returns
    -------
    Learned
        Scores, directions, outlook and the model fitted to all rows.

    Raises
    ------
    InvalidData
        If there are too few rows.
    MemoryLimitExceeded
        If a fit does not fit into memory.

    Notes
    -----
    Every number about unseen rows comes from rows that neither preparation, filters, penalties nor
    widths have seen. The leave-one-out error of a readout on filtered features is not such a number
    (arXiv:2605.13612 and ``tests/learn/test_learning.py``): with meaningless labels it reads far
    below chance.

    Examples
    --------
    >>> from solvable.data import load
    >>> found = learn(load("iris"), Request(folds=2))
    >>> found.learned.error < 0.2
    True
    """
    start = time.perf_counter()
    plan = _Plan(dataset, request or Request())
    measured = measure_all(plan.tasks, workers=plan.workers(workers), progress=progress)
    return replace(_assembled(plan, measured), seconds=time.perf_counter() - start)


class _Plan:
    """Which fits are made, on which rows."""

    def __init__(self, dataset: Dataset, request: Request) -> None:
        check_rows(dataset)
        self.dataset, self.request = dataset, request
        self.notes: list[str] = []
        self.rows = self._drawn_rows()
        self.y = dataset.y[self.rows]
        regression = dataset.kind == "regression"
        self.classes = None if regression else self.y
        self.folds = self._dealt_folds()
        fold_sizes = np.bincount(self.folds, minlength=request.folds)
        self.smallest = len(self.y) - int(fold_sizes.max())
        self.design = Design(
            regression,
            "global" if dataset.image_shape else "columns",
            width_for(self.smallest),
            request,
        )
        self.methods = methods(self.design)
        # The smallest training set of a learning curve.
        least = max(24, 5 * max(1, len(dataset.class_labels)))
        self.sizes = training_sizes(self.smallest, smallest=least)
        self.tasks = self._tasks()

    def _drawn_rows(self) -> np.ndarray:
        """Rows that are used, in order."""
        n, most = self.dataset.n_samples, self.request.rows
        if n <= most:
            return np.arange(n)
        self.notes.append(f"learned from {most} of {n} rows, drawn at random; --rows sets how many")
        return np.sort(random_stream(self.request.seed, "rows").permutation(n)[:most])

    def _dealt_folds(self) -> np.ndarray:
        """Fold of each row that is used."""
        groups = identical_rows(self.dataset.X[self.rows])
        copies = len(groups) - len(np.unique(groups))
        if copies:
            self.notes.append(
                f"{copies} rows repeat another row; copies stay together, so that no test row has "
                "its copy among the training rows"
            )
        return deal_folds(self.request.folds, groups, self.classes, seed=self.request.seed)

    def _tasks(self) -> list[Task]:
        X, y, design, none = self.dataset.X[self.rows], self.y, self.design, slice(0, 0)
        everything = Split(X, y, X[none], y[none], self.dataset.preparation)
        tasks = [Task(LEARNED, -1, everything, design, len(y), keep_model=True)]
        for fold in range(self.request.folds):
            train, test = np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)
            split = self._split(train, test)
            tasks += [Task(method.key, fold, split, design, len(train)) for method in self.methods]
            parts = nested_rows(train, self.sizes[:-1], self.classes, key=(self.request.seed, fold))
            for part in parts.values():
                if len(np.unique(y[part])) > 1:
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
        return fit.fold >= 0 and fit.training_rows == int(np.sum(self.folds != fit.fold))

    def workers(self, asked: int) -> int:
        """Processes that fit into memory beside each other."""
        rows = float(len(self.y))
        if self.design.width != math.inf:
            width = float(self.design.lazy_width)
            classes = 2 if self.classes is None else len(np.unique(self.classes))
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
        """How errors are measured, in words."""
        return (
            f"{self.request.folds}-fold cross-validation: each of the {len(self.y)} rows is "
            f"predicted once, by a model fitted to about {self.smallest} other rows. Columns are "
            "prepared, filters fitted, directions counted and penalties and widths tuned anew from "
            "those rows alone."
        )


def _assembled(plan: _Plan, measured: list[Measured]) -> Learned:
    """Result of all fits."""
    request, dataset = plan.request, plan.dataset
    fingerprint, data_fingerprint = fingerprint_of(dataset, request)
    measured = sorted(measured, key=lambda fit: fit.fold)
    final = measured[0]
    by_method = {
        method.key: [fit for fit in measured if fit.method == method.key and plan.is_full(fit)]
        for method in plan.methods
    }
    learned = by_method[LEARNED]
    losses = Losses(plan.y, plan.folds, regression=plan.design.regression)
    predictions = np.empty(len(plan.y))
    for fit in learned:
        predictions[plan.folds == fit.fold] = fit.predicted
    signals = dataset.class_labels if len(dataset.class_labels) > 2 else (dataset.target,)
    images = dataset.image_shape
    return Learned(
        name=dataset.name,
        n_samples=len(plan.y),
        n_columns=dataset.n_columns,
        kind=dataset.kind,
        class_labels=dataset.class_labels,
        target=dataset.target,
        target_deviation=math.sqrt(losses.variance) if losses.regression else None,
        image_shape=images,
        treatments=(*dataset.treatments, *plan.notes),
        network=plan.network,
        protocol=plan.protocol,
        folds=request.folds,
        seed=request.seed,
        layers=request.layers,
        methods=score_methods(plan.methods, by_method, losses),
        found=layers_found(final.model, [fit.n_significant for fit in learned], signals),
        outlook=outlook_of(_curve(plan, measured, losses), len(plan.y), seed=request.seed),
        fingerprint=fingerprint,
        data_fingerprint=data_fingerprint,
        versions={name: version(name) for name in ("solvable", "numpy", "scipy", "scikit-learn")},
        model=final.model,
        pictures=pictures_of(final.model, dataset.X[plan.rows], images) if images else None,
        predictions=predictions,
        rows=plan.rows,
        row_folds=plan.folds,
    )


def _curve(plan: _Plan, measured: list[Measured], losses: Losses) -> tuple[CurvePoint, ...]:
    """The error of learned features by training rows, from fits in the order of their folds."""
    fits = [fit for fit in measured if fit.method == LEARNED and fit.fold >= 0]
    points = []
    for size in plan.sizes:
        last = size == plan.sizes[-1]
        here = [fit for fit in fits if (plan.is_full(fit) if last else fit.training_rows == size)]
        # A size at which a fold saw one class only is left out.
        if len(here) == plan.request.folds:
            errors = tuple(float(losses.of_fold(fit.fold, fit.predicted).mean()) for fit in here)
            points.append(CurvePoint(size, errors, tuple(fit.n_significant[0] for fit in here)))
    return tuple(points)
