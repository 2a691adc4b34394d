"""Fit a method and predict unseen rows; run many such fits in parallel processes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from solvable.arrays import random_stream
from solvable.data.dataset import Split
from solvable.errors import SolvableError
from solvable.learn.attribution import Attribution, attribute
from solvable.learn.competitors import CONSTANT, LEARNED, methods
from solvable.learn.design import Design
from solvable.learn.held_out_signal import Unseen, unseen_signal
from solvable.learn.training_range import TrainingRange
from solvable.progress import Progress


@dataclass(frozen=True, eq=False)
class Task:
    """Fit to be made: one method, on one set of training rows."""

    method: str  # key of the method
    fold: int  # number of the predicted fold; -1 for the fit to all rows
    split: Split | Callable[[], Split]  # prepared rows, or a function that prepares them later
    design: Design
    rows: int  # number of training rows
    keep_model: bool = False
    attributed: bool = False  # True to attribute the learned directions to columns
    limited: bool = True  # False to let numbers leave the range of training, as trends in time do

    deadline: float = math.inf  # time after which the fit is left out unless it is needed

    @property
    def is_needed(self) -> bool:
        """Return True for fits without which there is no result."""
        return self.fold < 0 or self.method in (LEARNED, CONSTANT)

    def ready(self) -> Task:
        """Return the same task with prepared rows."""
        return replace(self, split=self.split()) if callable(self.split) else self

    @property
    def cost(self) -> float:
        """Expected time of the fit, in arbitrary units."""
        of_method = {
            LEARNED: 8.0 * self.design.layers,
            "nngp": 2.0,
            "lazy-features": 2.0,
            "rbf": 2.0,
            "metric-kernel": 4.0,
            "trees": 2.0,
        }
        # Above about 700 rows, the cost grows as the number of rows to the power of about 2.5.
        size = self.rows / 700
        return of_method.get(self.method, 0.1) * (size**2.5 if size > 1 else size)


@dataclass(frozen=True, eq=False)
class Measured:
    """Result of one fit."""

    method: str
    fold: int
    training_rows: int  # number of available training rows
    predicted: np.ndarray  # predictions for the test rows; empty if the fit failed
    n_significant: tuple[int, ...] = ()  # number of directions with signal in each filter
    seconds: float = 0.0
    rows: int = 0  # number of training rows that were used
    failure: str = ""  # reason for missing predictions
    model: Any = None  # fitted model, if requested
    remark: str = ""  # sentence about a reduced or changed fit
    attribution: Attribution | None = None  # shares of columns in the directions, if requested
    unseen: Unseen | None = None  # signal of the directions on the test rows, if requested
    above: tuple[int, ...] = ()  # like n_significant, but without the permutation test
    # Outputs for the test rows: larger values favour class 1 of two, shape (n,), or each of C, (n, C)
    scores: np.ndarray | None = None


def measure(task: Task) -> Measured:
    """Fit a method and predict the test rows; if a competitor's fit fails, return the reason."""
    from threadpoolctl import threadpool_limits

    if time.time() > task.deadline and not task.is_needed:
        late = "not fitted, as the time limit was reached"
        return Measured(task.method, task.fold, task.rows, np.empty(0), failure=late)
    method = next(method for method in methods(task.design) if method.key == task.method)
    split = task.split() if callable(task.split) else task.split
    X, y = split.X_train, split.y_train
    if method.kernel_rows is not None and len(y) > method.kernel_rows:
        rng = random_stream(task.design.seed, "rows of a kernel", task.fold)
        some = np.sort(rng.permutation(len(y))[: method.kernel_rows])
        X, y = X[some], y[some]
    X_test = split.X_test
    if method.narrow and can_be_narrow(X):
        X, X_test = X.astype(np.float32, copy=False), X_test.astype(np.float32, copy=False)
    start = time.perf_counter()
    # BLAS uses one thread, because more threads are slower if other processes use the same cores.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # Warnings about filters without signal are suppressed here, as these filters are counted below.
        warnings.simplefilter("ignore")
        try:
            model = method.fit(X, y) if method.fit else method.make().fit(X, y)
            tested = len(split.y_test) > 0
            # New rows are predicted with the same limits, so the error includes these.
            limits = None
            if task.design.regression and task.limited:
                limits = TrainingRange.of(split.X_train, split.y_train, 0)
                X_test = limits.inputs(X_test)
            predicted = np.asarray(model.predict(X_test)) if tested else np.empty(0)
            predicted = predicted if limits is None else limits.predicted(predicted)
            scores = None if task.design.regression or not tested else outputs_of(model, X_test)
        except SolvableError as error:
            if task.method == LEARNED:
                raise
            return Measured(
                task.method, task.fold, task.rows, np.empty(0), rows=len(y), failure=str(error)
            )
        seconds = time.perf_counter() - start
        made, unseen = None, None
        if task.attributed and task.fold < 0:
            made = attribute(model, X, split.preparation, seed=task.design.seed)
        elif task.attributed:
            regression, seed = task.design.regression, task.design.seed
            unseen = unseen_signal(model, split, regression=regression, seed=seed)
    reports = getattr(model, "filters_", ())
    return Measured(
        task.method,
        task.fold,
        task.rows,
        np.asarray(predicted),
        tuple(report.n_told for report in reports),
        seconds,
        getattr(model, "rows_", len(y)),
        "",
        model if task.keep_model else None,
        getattr(model, "remark_", ""),
        made,
        unseen,
        tuple(report.n_kept_above for report in reports),
        scores,
    )


def outputs_of(model: Any, X: np.ndarray) -> np.ndarray | None:
    """Return a classifier's outputs, (n,) for two classes, else (n, C); None if it has no output."""
    if hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
        found = found[:, 1] if found.shape[1] == 2 else found
    else:
        return None
    return found


def can_be_narrow(X: np.ndarray) -> bool:
    """Return True if single precision keeps four digits of every column's standard deviation."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    return bool(np.all(np.abs(mean) <= 1000 * deviation))


class Keeper(Protocol):
    """Store of completed fits, from which an interrupted run resumes."""

    def find(self, task: Task) -> Measured | None:
        """Return the stored fit of the task, or None."""
        ...

    def keep(self, fit: Measured) -> None:
        """Store a completed fit."""
        ...


def measure_all(
    tasks: Sequence[Task],
    *,
    workers: int,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    before: int = 0,
    after: Sequence[Task] = (),
    deadline: float = math.inf,
) -> list[Measured]:
    """Run all tasks, the longest first; the results do not depend on the number of workers.

    After the deadline, a time as of `time.time()`, only fits that the result needs are made; with a
    deadline, the fastest methods come first. Progress counts also the fits before these, and the
    expected cost of those after them.
    """
    ordered = sorted(tasks, key=lambda task: task.cost, reverse=True)
    if deadline < math.inf:
        ordered.sort(key=lambda task: (not task.is_needed, task.cost))
        ordered = [replace(task, deadline=deadline) for task in ordered]
    costs = {(task.method, task.fold, task.rows): task.cost for task in ordered}
    results = []
    for task in ordered if keeper else ():
        known = keeper.find(task) if keeper else None
        if known is not None:
            results.append(known)
    found = {(fit.method, fit.fold, fit.training_rows) for fit in results}
    left = [task for task in ordered if (task.method, task.fold, task.rows) not in found]
    total, done, start = sum(task.cost for task in [*left, *after]), 0.0, time.monotonic()
    whole = before + len(ordered) + len(after)
    if progress is not None:
        progress(before + len(results), whole, None)
    for result in _run(left, workers):
        results.append(result)
        if keeper:
            keeper.keep(result)
        done += costs[result.method, result.fold, result.training_rows]
        if progress is not None:
            spent = time.monotonic() - start
            rest = spent * (total - done) / done if done else None
            progress(before + len(results), whole, rest)
    return results


def _run(tasks: Sequence[Task], workers: int) -> Iterator[Measured]:
    if workers == 1 or len(tasks) < 2:
        yield from map(measure, tasks)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    parallel = Parallel(
        n_jobs=workers, return_as="generator_unordered", pre_dispatch="2*n_jobs", batch_size=1
    )
    try:
        yield from parallel(delayed(measure)(task.ready()) for task in tasks)
    finally:
        # The worker processes are stopped also after Ctrl-C.
        get_reusable_executor().shutdown(wait=True, kill_workers=True)
