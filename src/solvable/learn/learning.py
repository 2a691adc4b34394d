"""Learn features from a data set, and measure on unseen rows what they are worth."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.data import Dataset, Split
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded
from solvable.learn.competitors import LEARNED, Design, methods, width_for
from solvable.learn.directions import layers_found, pictures_of
from solvable.learn.folds import deal_folds, identical_rows, nested_rows, training_sizes
from solvable.learn.measuring import Measured, Progress, Task, measure_all
from solvable.learn.outlook import outlook_of
from solvable.learn.results import CurvePoint, Learned
from solvable.learn.scoring import Losses, score_methods
from solvable.operators._memory import available_bytes, gigabytes

LEAST_ROWS = 20
"""Rows below which nothing can be said of unseen rows."""

LEAST_TRAINING_ROWS = 24
"""Smallest training set of a learning curve."""

KERNEL_COPIES = 8
"""Matrices of the size of a kernel that one fit holds at a time."""


@dataclass(frozen=True)
class Request:
    """What is asked.

    Parameters
    ----------
    folds : int
        Parts of the data; each is predicted by a model that was fitted to the others.
    layers : int
        Filters of the network.
    rows : int
        Most rows to learn from; a random part of more.
    seed : int
        Of folds, lifts and nulls.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Examples
    --------
    >>> Request(folds=1)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: folds is 1; allowed: whole numbers from 2 to 20.
    """

    folds: int = 5
    layers: int = 1
    rows: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (
            ("folds", 2, 20),
            ("layers", 1, 5),
            ("rows", LEAST_ROWS, None),
            ("seed", 0, None),
        ):
            value = getattr(self, name)
            if not least <= value <= (most or math.inf):
                allowed = f"from {least}" + (f" to {most}" if most else "")
                raise InvalidParameter(f"{name} is {value}; allowed: whole numbers {allowed}.")


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
    """Digest that tells whether inputs are the same.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Prepared inputs.

    Returns
    -------
    str
        Of the numbers, whatever their type.

    Examples
    --------
    >>> digest_of(np.eye(2)) == digest_of(np.eye(2, dtype=np.float32))
    True
    """
    values = np.ascontiguousarray(X, dtype=np.float64)
    return hashlib.blake2b(values.data, digest_size=8).hexdigest()


def check_rows(dataset: Dataset) -> None:
    """Raise :class:`InvalidData` if there are too few rows to hold some back.

    Parameters
    ----------
    dataset : Dataset
        The data.
    """
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
    return replace(_assembled(dataset, plan, measured), seconds=time.perf_counter() - start)


def _assembled(dataset: Dataset, plan: _Plan, measured: list[Measured]) -> Learned:
    """Result of all fits."""
    request, images = plan.request, dataset.image_shape
    fingerprint, data_fingerprint = fingerprint_of(dataset, request)
    final = next(one for one in measured if one.fold == -1)
    full = sorted((one for one in measured if plan.is_full(one)), key=lambda one: one.fold)
    by_method = {
        method.key: [one for one in full if one.method == method.key] for method in plan.methods
    }
    losses = Losses(plan.y, plan.folds, regression=plan.design.regression)
    curve = _curve(plan, [one for one in measured if one.method == LEARNED], losses)
    predictions = np.empty(len(plan.y))
    for one in by_method[LEARNED]:
        predictions[plan.folds == one.fold] = one.predicted
    counts = [one.n_significant for one in by_method[LEARNED]]
    signals = dataset.class_labels if len(dataset.class_labels) > 2 else (dataset.target,)
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
        found=layers_found(final.model, counts, signals),
        outlook=outlook_of(curve, len(plan.y), seed=request.seed),
        fingerprint=fingerprint,
        data_fingerprint=data_fingerprint,
        versions=_versions(),
        model=final.model,
        pictures=pictures_of(final.model, dataset.X[plan.rows], images) if images else None,
        predictions=predictions,
        rows=plan.rows,
        row_folds=plan.folds,
    )


class _Plan:
    """Which fits are made, on which rows."""

    def __init__(self, dataset: Dataset, request: Request) -> None:
        check_rows(dataset)
        n = dataset.n_samples
        self.request = request
        self.notes: list[str] = []
        self.rows = np.arange(n)
        if n > request.rows:
            self.rows = np.sort(random_stream(request.seed, "rows").permutation(n)[: request.rows])
            self.notes.append(
                f"learned from {request.rows} of {n} rows, drawn at random; --rows sets how many"
            )
        self.y = dataset.y[self.rows]
        regression = dataset.kind == "regression"
        self.classes = None if regression else self.y
        self.groups = identical_rows(dataset.X[self.rows])
        copies = len(self.groups) - len(np.unique(self.groups))
        if copies:
            self.notes.append(
                f"{copies} rows repeat another row; copies stay together, so that no test row has "
                "its copy among the training rows"
            )
        self.folds = deal_folds(request.folds, self.groups, self.classes, seed=request.seed)
        smallest = int(np.min([np.sum(self.folds != fold) for fold in range(request.folds)]))
        self.design = Design(
            regression,
            "global" if dataset.image_shape else "columns",
            request.layers,
            width_for(smallest),
            request.seed,
        )
        self.methods = methods(self.design)
        self.smallest = smallest
        classes = max(1, len(dataset.class_labels))
        self.sizes = training_sizes(smallest, smallest=max(LEAST_TRAINING_ROWS, 5 * classes))
        self.tasks = self._tasks(dataset)

    def _tasks(self, dataset: Dataset) -> list[Task]:
        nobody = np.empty(0, dtype=np.int64)
        X, y = dataset.X[self.rows], self.y
        everything = Split(X, y, X[nobody], y[nobody], dataset.preparation)
        tasks = [Task(LEARNED, -1, everything, self.design, len(y), keep_model=True)]
        for fold in range(self.request.folds):
            train, test = np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)
            split = self._split(dataset, train, test)
            tasks += [Task(one.key, fold, split, self.design, len(train)) for one in self.methods]
            parts = nested_rows(train, self.sizes[:-1], self.classes, key=(self.request.seed, fold))
            for part in parts.values():
                if len(np.unique(self.y[part])) > 1:
                    smaller = self._split(dataset, part, test)
                    tasks.append(Task(LEARNED, fold, smaller, self.design, len(part)))
        return tasks

    def _split(self, dataset: Dataset, train: np.ndarray, test: np.ndarray) -> Callable[[], Split]:
        """What prepares the rows of a fit: made when its turn comes, as all together are large."""
        if len(np.unique(self.y[train])) < 2:
            raise InvalidData(
                f"the rows of target {dataset.target!r} outside one fold hold one value only, as "
                "nearly all rows with the others are copies of one another. Remove the copies."
            )
        return partial(dataset.split, self.rows[train], self.rows[test])

    def is_full(self, one: Measured) -> bool:
        """Whether a fit had all rows outside its fold."""
        return one.fold >= 0 and one.training_rows == int(np.sum(self.folds != one.fold))

    def workers(self, asked: int) -> int:
        """Processes that fit into memory beside each other."""
        if self.design.width != math.inf:
            width = float(self.design.lazy_width)
            classes = 2 if self.classes is None else len(np.unique(self.classes))
            need = 8.0 * (len(self.y) * width + (2 + classes) * width**2)
        else:
            need = 8.0 * KERNEL_COPIES * float(len(self.y)) ** 2
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


def _curve(plan: _Plan, measured: list[Measured], losses: Losses) -> tuple[CurvePoint, ...]:
    points = []
    for size in plan.sizes:
        mine = [
            one
            for one in measured
            if one.fold >= 0
            and (plan.is_full(one) if size == plan.sizes[-1] else one.training_rows == size)
        ]
        # A size at which a fold saw one class only is left out.
        if len(mine) == plan.request.folds:
            mine.sort(key=lambda one: one.fold)
            errors = tuple(float(losses.of_fold(one.fold, one.predicted).mean()) for one in mine)
            counts = tuple(one.n_significant[0] for one in mine)
            points.append(CurvePoint(size, errors, counts))
    return tuple(points)


def _versions() -> dict[str, Any]:
    from importlib.metadata import version

    return {name: version(name) for name in ("solvable", "numpy", "scipy", "scikit-learn")}
