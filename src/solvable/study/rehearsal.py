"""Dry run: expected time of a study, and the claims that it could test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.claims import Verdict
from solvable.frame.points import Metrics, Point, predicted_or_refused, raised_prediction
from solvable.frame.system import refusals
from solvable.paths import error_line
from solvable.plots.numbers import MISSING, format_duration
from solvable.plots.tables import Column, Table
from solvable.plots.words import counted
from solvable.study.dispatch import count_workers
from solvable.study.execute import Job, Outcome, execute_in_worker, plain_metrics
from solvable.study.grid import Study
from solvable.study.snapshot import read

TRIAL_SECONDS = 20.0
"""Seconds after which no further replicate is started, and a running one is stopped."""


@dataclass(frozen=True)
class Trial:
    """One replicate that is measured to estimate time and memory, and then dropped."""

    place: int  # position of its point in the study
    metrics: Metrics
    seconds: float
    memory: int | None  # peak memory of the process in bytes


@dataclass(frozen=True)
class DryRun:
    """Expected time and memory of a study, and the claims that it could test.

    Parameters
    ----------
    study : Study
        Study to run.
    workers : int
        Local processes that would run the study.
    done : int
        Finished tasks in the run directory.
    trials : sequence of Trial
        Replicates that were measured at the first, the middle and the last point.
    error : str
        Exception of a trial in one line; empty if none raised.
    """

    study: Study
    workers: int
    done: int
    trials: Sequence[Trial]
    error: str = ""

    @property
    def tasks(self) -> int:
        """Number of tasks of the whole study."""
        return len(self.study.points) * self.study.replicates

    @property
    def seconds(self) -> float | None:
        """Expected time of the tasks that are left; None if no trial ended in time."""
        if not self.trials:
            return None
        each = [np.mean([t.seconds for t in self._nearest(k)]) for k in self._places]
        share = 1 - self.done / self.tasks
        return float(np.sum(each)) * self.study.replicates * share / min(self.workers, self.tasks)

    @property
    def memory(self) -> int | None:
        """Expected peak memory of all workers together, in bytes."""
        peaks = [trial.memory for trial in self.trials if trial.memory is not None]
        return min(self.workers, self.tasks) * max(peaks) if peaks else None

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Verdicts on simulated replicates with the predicted means and the scatter of the trials."""
        return self.study.system.verdicts(self.points) if self.trials else []

    @cached_property
    def points(self) -> list[Point]:
        """Points of the study with simulated replicates around the predicted values."""
        return list(self._points()) if self.trials else []

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "points": len(self.study.points),
            "replicates": self.study.replicates,
            "tasks": self.tasks,
            "done": self.done,
            "workers": self.workers,
            "seconds": self.seconds,
            "memory": self.memory,
            "claims": [
                {
                    "claim": verdict.claim,
                    "testable": answer_to(verdict),
                    "notices": verdict.notices,
                    "reason": verdict.reason if answer_to(verdict) in ("no", "error") else "",
                }
                for verdict in self.verdicts
            ],
            "error": self.error or None,
        }

    @property
    def _places(self) -> range:
        return range(len(self.study.points))

    def _nearest(self, place: int) -> list[Trial]:
        distance = min(abs(trial.place - place) for trial in self.trials)
        return [trial for trial in self.trials if abs(trial.place - place) == distance]

    def _points(self) -> Iterator[Point]:
        """Return the points of the study with simulated replicates around the prediction."""
        system = self.study.system
        for place, parameters in enumerate(self.study.points):
            setting = system.parameters(**parameters)
            try:
                prediction = plain_metrics(predicted_or_refused(system.predict, setting))
            except (
                Exception
            ) as error:  # a system may raise any exception; the other points are judged
                prediction = raised_prediction(error_line(error))
            trials = [trial.metrics for trial in self._nearest(place)]
            stream = random_stream("dry run", place)
            drawn = {
                name: _replicates(
                    [trial.get(name) for trial in trials],
                    prediction.get(name),
                    self.study.replicates,
                    stream,
                )
                for name in trials[0]
            }
            metrics = [
                {name: values[replicate] for name, values in drawn.items()}
                for replicate in range(self.study.replicates)
            ]
            yield Point(parameters, metrics, prediction, setting)


def answer_to(verdict: Verdict) -> str:
    """Return "can be tested", or why not, from the verdict on simulated replicates."""
    if verdict.status in ("error", "not testable"):
        return "error" if verdict.status == "error" else "no"
    return "weakly" if verdict.weak else "yes"


def dry_run(
    study: Study, directory: str | Path | None = None, *, workers: int | None = None
) -> DryRun:
    """Estimate time and memory of a study, and which claims it can test, without running it.

    Up to two replicates at the first, the middle and the last point are measured for at most twenty
    seconds in a separate process, and dropped. Other points are assigned the time of the nearest
    measured one. Claims are judged on simulated replicates with the predicted means and the scatter of
    the trials; with few trials this is rough.

    Parameters
    ----------
    study : Study
        Study to run.
    directory : path, optional
        Run directory whose finished tasks are not run again.
    workers : int, optional
        Local processes; default one per core.

    Returns
    -------
    DryRun
        Tasks, expected seconds and memory, and a verdict per claim.

    Raises
    ------
    InvalidParameter
        If a point is too large to be measured, or ``workers`` is not a whole number of at least 1.

    Examples
    --------
    >>> from solvable.frame.registry import load
    >>> found = dry_run(Study(load("kernel-staircase"), preset="quick"), workers=1)
    >>> found.tasks == len(found.study.tasks), found.done
    (True, 0)
    """
    lanes = count_workers(workers)
    study.check_limits()
    trials, error = _trials(study)
    done = 0
    if directory is not None and (Path(directory) / "study.sqlite").is_file():
        finished = {row["identity"] for row in read(directory).tasks}
        done = sum(task.identity in finished for task in study.tasks)
    return DryRun(study, lanes, done, trials, error)


def _trials(study: Study) -> tuple[list[Trial], str]:
    """Measure replicates at a few points within the time limit; return an error if one raised."""
    from joblib.externals.loky import ProcessPoolExecutor

    last = len(study.points) - 1
    places = list(dict.fromkeys((0, last, last // 2)))
    trials: list[Trial] = []
    executor = ProcessPoolExecutor(max_workers=1)
    end = monotonic() + TRIAL_SECONDS
    try:
        for replicate in range(2):
            for place in places:
                job = _job(study, place, replicate)
                outcome: Outcome = executor.submit(execute_in_worker, job, os.getpid()).result(
                    timeout=end - monotonic()
                )
                if outcome.metrics is None:
                    return trials, outcome.error or "a replicate raised an error"
                made = outcome.provenance
                trials.append(Trial(place, outcome.metrics, made["seconds"], made["peak_memory"]))
    except TimeoutError:
        pass  # the trials that finished are used; without any, the time stays unknown
    finally:
        executor.shutdown(wait=True, kill_workers=True)
    return trials, ""


def _job(study: Study, place: int, replicate: int) -> Job:
    point = study.points[place]
    identity = f"dry run {place} {replicate} {study.seed}"
    return Job("task", identity, study.system, study.system.version, point)


def _replicates(
    trials: Sequence[Any], predicted: Any, replicates: int, stream: np.random.Generator
) -> list[Any]:
    """Return values of a metric with the predicted mean and the scatter of trials."""
    if any(isinstance(value, str) or value is None for value in (*trials, predicted or 0.0)):
        return [trials[0]] * replicates
    rows = [np.asarray(value, dtype=float) for value in trials]
    alike = len({row.shape for row in rows}) == 1
    centre = rows[0] if predicted is None else np.asarray(predicted, dtype=float)
    if alike and centre.shape == rows[0].shape:
        centre = np.where(np.isfinite(centre), centre, rows[0])
    # Entries of a list share one scatter: two trials of one entry determine it poorly.
    scatter = 0.0
    if alike and len(rows) > 1:
        variance = np.var(rows, axis=0, ddof=1)
        known = variance[np.isfinite(variance)]
        scatter = float(np.sqrt(known.mean())) if known.size else 0.0
    scores = stream.standard_normal((replicates, *centre.shape))
    if replicates > 1:  # of mean 0 and variance 1
        scores = (scores - scores.mean(axis=0)) / scores.std(axis=0, ddof=1)
    else:
        scores[:] = 0.0
    return [_plain(row) for row in centre + scatter * scores]


def _plain(row: np.ndarray) -> float | list[float | None]:
    if row.ndim == 0:
        return float(row)
    return [float(value) if np.isfinite(value) else None for value in row]


def claim_table(found: DryRun) -> Table:
    """Return a table of claims: can they be tested, and with which error would they fail?"""
    table = Table("can be tested", "claim", Column("would notice", right=True))
    for verdict in found.verdicts:
        notices = MISSING if verdict.notices is None else f"{100 * verdict.notices:.2g} %"
        table.add(answer_to(verdict), verdict.claim, notices)
    return table


def sentences(found: DryRun) -> list[str]:
    """Return sentences on tasks, time and memory, and on the claims that cannot be tested."""
    study = found.study
    points, tasks = len(study.points), found.tasks
    size = f"{counted(points, 'point')} x {counted(study.replicates, 'replicate')}"
    lines = [f"{study.system.name}: {size} = {counted(tasks, 'task')}, {found.done} done."]
    if found.error:
        return [*lines, f"A replicate raised an error: {found.error}"]
    if found.seconds is None:
        return [*lines, f"Time unknown: one replicate takes more than {TRIAL_SECONDS:.0f} s."]
    memory = "" if found.memory is None else f" and {found.memory / 1e9:.1f} GB"
    workers = counted(found.workers, "worker")
    lines.append(f"Expected: about {format_duration(found.seconds)}{memory} on {workers}.")
    refused = refusals(found.points)
    reasons = [
        f"{verdict.claim}: {verdict.reason.removesuffix(f'; {refused}')}"
        for verdict in found.verdicts
        if answer_to(verdict) in ("no", "error")
    ]
    answers = [answer_to(verdict) for verdict in found.verdicts]
    weakly = f", {answers.count('weakly')} weakly" if "weakly" in answers else ""
    able = answers.count("yes") + answers.count("weakly")
    gaps = [f"{refused[0].upper()}{refused[1:]}"] if refused else []
    return [
        *lines,
        *reasons,
        *gaps,
        f"{able} of {len(answers)} claims can be tested{weakly}.",
    ]
