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
from solvable.learn.directions import layers_found, made_of, pictures_of
from solvable.learn.folds import (
    deal_folds,
    deal_groups,
    deal_times,
    identical_rows,
    nested_rows,
    training_sizes,
    united,
)
from solvable.learn.leaks import likeness_of_neighbours, near_copies, telling_columns, tight_groups
from solvable.learn.measuring import Measured, Progress, Task, measure_all
from solvable.learn.request import LEAST_ROWS, Request
from solvable.learn.results import CurvePoint, Learned, Outlook
from solvable.learn.scoring import Losses, outlook_of, score_methods
from solvable.memory import available_bytes, gigabytes

NOTHING_FOUND = (
    "no direction was found and the learned features are not told from the constant, so there is no "
    "progress to extrapolate."
)
"""Why tables without signal have no forecast."""


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
    for codes in (dataset.groups, dataset.times):
        digest.update(b"" if codes is None else np.ascontiguousarray(codes).data)
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
        self.groups = None if dataset.groups is None else dataset.groups[self.rows]
        self.times = None if dataset.times is None else dataset.times[self.rows]
        regression = dataset.kind == "regression"
        self.classes = None if regression else self.y
        self.folds = self._dealt_folds()
        self.smallest = min(len(self.train(fold)) for fold in range(request.folds))
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
        """Fold of each row that is used; -1 for rows that come before any that are tested."""
        X, folds, seed = self.dataset.X[self.rows], self.request.folds, self.request.seed
        copies = near_copies(X)
        count = len(copies) - len(np.unique(copies))
        if self.times is not None:
            if count:
                self.notes.append(f"{count} rows repeat another row, or nearly so")
            return deal_times(folds, self.times)
        if count:
            same = count == len(copies) - len(np.unique(identical_rows(X)))
            self.notes.append(
                f"{count} rows repeat another row{'' if same else ', or nearly so'}; copies stay "
                "together, so that no test row has its copy among the training rows"
            )
        if self.groups is None:
            return deal_folds(folds, copies, self.classes, seed=seed)
        first = np.unique(self.groups, return_index=True, return_inverse=True)
        links = np.concatenate([first[1][first[2]], copies])
        together = united(len(copies), np.tile(np.arange(len(copies)), 2), links)
        number = len(np.unique(together))
        if number < 2 * folds:
            raise InvalidData(
                f"{self.dataset.name} has {number} groups of rows; allowed: at least {2 * folds}, two a "
                "fold. Use fewer folds with --folds, or another column."
            )
        self.notes.append(f"{number} groups of rows, each tested as a whole")
        return deal_groups(folds, together, self.classes, seed=seed)

    def train(self, fold: int) -> np.ndarray:
        """Rows that the rows of a fold are predicted from."""
        if self.times is None:
            return np.flatnonzero(self.folds != fold)
        return np.flatnonzero(self.folds < fold)

    def clusters(self) -> np.ndarray | None:
        """Which tested rows may depend on one another; None for none."""
        tested = self.folds >= 0
        if self.groups is not None:
            return np.asarray(self.groups[tested])
        if self.times is None:
            return None
        # Twenty stretches of time: what lasts longer than one is not seen.
        order = np.argsort(np.argsort(self.times[tested], kind="stable"))
        return np.asarray(order * 20 // len(order))

    def warnings(self) -> tuple[str, ...]:
        """What may make the error look better than it is."""
        found = []
        if self.groups is None and self.times is None:
            share, deviation = likeness_of_neighbours(
                self.dataset.X[self.rows], self.classes, seed=self.request.seed
            )
            if share < 0.9 and deviation < -6:
                found.append(
                    f"rows next to each other in the file are alike: the square of their distance is "
                    f"{share:.2f} of that of any two (of one class). If they come from one person, "
                    "device or stretch of time, the error on new ones is larger than the one below; "
                    "name the column with --groups or --time"
                )
            elif self.dataset.image_shape is None:
                found += self._warned_groups()
        if self.dataset.image_shape is None:
            # Not numbers that were dropped, such as those of rows of a file sorted by the target; a text
            # that was may name groups.
            table, needed = self.dataset.table, self.dataset.preparation.needed
            kept = [name for name in table.order if name in needed or name in table.texts]
            table = table.select(kept).rows(self.rows)
            regression = self.design.regression
            for name, error in telling_columns(table, self.y, regression=regression)[:3]:
                left = "of the variance of ranks left" if regression else "wrong"
                found.append(
                    f"column {name!r} alone nearly tells the target ({100 * error:.1f} % {left}). If it "
                    "is not known before the target is, remove it"
                    + (
                        f"; if it names where rows come from, add --groups {name}"
                        if name in table.texts
                        else ""
                    )
                )
        return tuple(found)

    def _warned_groups(self) -> list[str]:
        """That rows lie in tight groups which tell the target, in whatever order they stand."""
        regression = self.design.regression
        tight = tight_groups(self.dataset.X[self.rows], self.y, regression=regression)
        if tight is None:
            return []
        number, near, far = tight
        differs = (
            "differs by {:.0f} % of the variance"
            if regression
            else "has another target in {:.0f} %"
        )
        inside, outside = (differs.format(100 * error) for error in (near, far))
        return [
            f"rows lie in {number} tight groups: the target of the nearest row of the same group "
            f"{inside}, that of the nearest one of another group {outside}. If a group is one person, "
            "device or day, the error on new ones is larger than the one below; name their column "
            "with --groups"
        ]

    def _tasks(self) -> list[Task]:
        X, y, design, none = self.dataset.X[self.rows], self.y, self.design, slice(0, 0)
        everything = Split(X, y, X[none], y[none], self.dataset.preparation)
        tasks = [Task(LEARNED, -1, everything, design, len(y), keep_model=True, attributed=True)]
        # Of images, pictures are shown and pixels are not compared fold by fold.
        attributed = self.dataset.image_shape is None
        for fold in range(self.request.folds):
            train, test = self.train(fold), np.flatnonzero(self.folds == fold)
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
            sizes = self.sizes[:-1] if self.times is None else self.sizes
            key = (self.request.seed, fold)
            parts = nested_rows(train, sizes, self.classes, key=key, groups=self.groups)
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
        return fit.fold >= 0 and fit.training_rows == len(self.train(fit.fold))

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
        """How errors are measured, in words, and what they assume."""
        folds, tested = self.request.folds, int(np.sum(self.folds >= 0))
        if self.times is not None:
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
            if self.groups is not None:
                how += ", none of its own group"
                assumes = "rows of new groups that are like these groups"
        return (
            f"{how}. Medians are taken, filters fitted, directions counted and penalties and widths "
            f"tuned anew from those rows alone. The error is that for {assumes}."
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
    losses = Losses(plan.y, plan.folds, regression=plan.design.regression, clusters=plan.clusters())
    predictions = np.empty(len(plan.y))
    tested = plan.folds >= 0
    for fit in learned:
        predictions[plan.folds == fit.fold] = fit.predicted
    signals = dataset.class_labels if len(dataset.class_labels) > 2 else (dataset.target,)
    tests = [dataset.X[plan.rows[plan.folds == fit.fold]] for fit in learned]
    made = made_of(final.model, final.attribution, [fit.unseen for fit in learned], tests)
    methods = score_methods(plan.methods, by_method, losses)
    beats = methods[0].beats_constant
    counts = [fit.above if beats else fit.n_significant for fit in learned]
    found = layers_found(final.model, counts, signals, made, confirmed=beats)
    curve = _curve(plan, measured, losses)
    if found[0].directions or beats:
        # Two folds share training rows (Nadeau and Bengio 2003).
        shared = 1 / (request.folds * plan.smallest)
        rows = None if losses.regression else float(tested.sum())
        outlook = outlook_of(curve, len(plan.y), shared=shared, tested=rows, seed=request.seed)
    else:
        outlook = Outlook(curve, verdict=NOTHING_FOUND)
    return Learned(
        name=dataset.name,
        n_samples=len(plan.y),
        n_columns=dataset.n_columns,
        kind=dataset.kind,
        class_labels=dataset.class_labels,
        target=dataset.target,
        target_deviation=math.sqrt(losses.variance) if losses.regression else None,
        image_shape=dataset.image_shape,
        treatments=(*dataset.treatments, *plan.notes),
        network=plan.network,
        protocol=plan.protocol,
        folds=request.folds,
        seed=request.seed,
        layers=request.layers,
        methods=methods,
        found=found,
        outlook=outlook,
        fingerprint=fingerprint,
        data_fingerprint=data_fingerprint,
        versions={name: version(name) for name in ("solvable", "numpy", "scipy", "scikit-learn")},
        model=final.model,
        pictures=pictures_of(final.model, dataset.X[plan.rows], dataset.image_shape),
        predictions=predictions[tested],
        rows=plan.rows[tested],
        row_folds=plan.folds[tested],
        warnings=plan.warnings(),
    )


def _curve(plan: _Plan, measured: list[Measured], losses: Losses) -> tuple[CurvePoint, ...]:
    """The error of learned features by training rows, from fits in the order of their folds."""
    fits = [fit for fit in measured if fit.method == LEARNED and fit.fold >= 0]
    points = []
    for size in plan.sizes:
        last = size == plan.sizes[-1]
        whole = last and plan.times is None
        here = [fit for fit in fits if (plan.is_full(fit) if whole else fit.training_rows == size)]
        # A size at which a fold saw one class only is left out.
        if len(here) == plan.request.folds:
            errors = tuple(float(losses.of_fold(fit.fold, fit.predicted).mean()) for fit in here)
            points.append(CurvePoint(size, errors, tuple(fit.n_significant[0] for fit in here)))
    return tuple(points)
