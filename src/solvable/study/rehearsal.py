"""Dry run: expected time of a study, and the claims that it could test."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
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

ENOUGH_SECONDS = 5.0
"""Seconds after which two replicates of a point are enough."""

MOST_TRIALS = 6
"""Most replicates of a point; their variance is then known within a factor of about two."""

TESTED = ("holds", "fails")
"""Statuses of claims that a study has tested."""

SIMULATED = 12
"""Simulated studies; how many of them can test a claim shows how certain the answer is."""


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
    def expectations(self) -> list[Expectation]:
        """Return, for each claim, in how many simulated studies it can be tested."""
        return [Expectation(verdicts) for verdicts in zip(*self.studies, strict=True)]

    @cached_property
    def studies(self) -> list[list[Verdict]]:
        """Verdicts of each simulated study."""
        return [self.study.system.verdicts(points) for points in self.simulated]

    @cached_property
    def simulated(self) -> list[list[Point]]:
        """Simulated studies: replicates with the predicted means, scattered as the trials are."""
        if not self.trials:
            return []
        predictions = [self._predicted(place) for place in self._places]
        return [
            [self._simulated(k, place, predictions[place]) for place in self._places]
            for k in range(SIMULATED)
        ]

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
            "claims": [expectation.to_json() for expectation in self.expectations],
            "error": self.error or None,
        }

    @property
    def _places(self) -> range:
        return range(len(self.study.points))

    def _nearest(self, place: int) -> list[Trial]:
        distance = min(abs(trial.place - place) for trial in self.trials)
        return [trial for trial in self.trials if abs(trial.place - place) == distance]

    def _predicted(self, place: int) -> Point:
        """Return a point of the study without replicates."""
        system, parameters = self.study.system, self.study.points[place]
        setting = system.parameters(**parameters)
        try:
            prediction = plain_metrics(predicted_or_refused(system.predict, setting))
        except Exception as error:  # a system may raise any exception; the other points are judged
            prediction = raised_prediction(error_line(error))
        return Point(parameters, [], prediction, setting)

    def _simulated(self, k: int, place: int, predicted: Point) -> Point:
        """Return a point of the k-th simulated study."""
        trials = [trial.metrics for trial in self._nearest(place)]
        stream = random_stream("dry run", k, place)
        drawn = {
            name: _replicates(
                [trial.get(name) for trial in trials],
                predicted.prediction.get(name),
                self.study.replicates,
                stream,
            )
            for name in trials[0]
        }
        metrics = [
            {name: values[replicate] for name, values in drawn.items()}
            for replicate in range(self.study.replicates)
        ]
        return replace(predicted, metrics=metrics)


@dataclass(frozen=True)
class Expectation:
    """Verdicts on one claim in all simulated studies."""

    verdicts: Sequence[Verdict]

    @property
    def claim(self) -> str:
        """Name of the claim."""
        return self.verdicts[0].claim

    @property
    def raised(self) -> str:
        """Exception of the claim in one line; empty if none."""
        return next((row.reason for row in self.verdicts if row.status == "error"), "")

    @property
    def tested(self) -> list[Verdict]:
        """Verdicts of the studies that can test the claim."""
        return [row for row in self.verdicts if row.status in TESTED]

    @property
    def share(self) -> float:
        """Share of the studies that can test the claim."""
        return len(self.tested) / len(self.verdicts)

    @property
    def weakly(self) -> bool:
        """True if most of the studies that can test the claim do so weakly."""
        return 2 * sum(row.weak for row in self.tested) > len(self.tested)

    @property
    def notices(self) -> float | None:
        """Median of the smallest relative error of the prediction that would be noticed."""
        known = [row.notices for row in self.tested if row.notices is not None]
        return float(np.median(known)) if known else None

    @property
    def reason(self) -> str:
        """Reason why the claim cannot be tested, from the middle of the studies that cannot."""
        reasons = sorted(
            (row.reason for row in self.verdicts if row.status == "not testable"),
            key=lambda reason: [int(number) for number in re.findall(r"\d+", reason)],
        )
        return reasons[len(reasons) // 2] if reasons else ""

    @property
    def answer(self) -> str:
        """Return "likely", "perhaps", "unlikely", "no" or "error", with the share where it varies."""
        if self.raised:
            return "error"
        if self.share in (0.0, 1.0):
            return "likely" if self.share else "no"
        word = "likely" if self.share >= 0.8 else "unlikely" if self.share <= 0.2 else "perhaps"
        return f"{word} ({len(self.tested)} of {len(self.verdicts)})"

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data; `testable` is true from one half on."""
        testable = not self.raised and self.share >= 0.5
        return {
            "claim": self.claim,
            "testable": testable,
            "share": self.share,
            "weakly": testable and self.weakly,
            "notices": self.notices,
            "reason": self.raised or ("" if testable else self.reason),
        }


def dry_run(
    study: Study, directory: str | Path | None = None, *, workers: int | None = None
) -> DryRun:
    """Estimate time and memory of a study, and which claims it can test, without running it.

    Two to six replicates at the first, the middle and the last point are measured for at most twenty
    seconds in a separate process, and dropped. Other points are assigned the time of the nearest
    measured one. Claims are judged on simulated replicates with the predicted means and the scatter of
    the trials, several times, as few trials determine the scatter poorly.

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
        for replicate in range(MOST_TRIALS):
            if replicate >= 2 and monotonic() > end - TRIAL_SECONDS + ENOUGH_SECONDS:
                break
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
    """Return values of a metric with the predicted mean and a scatter that the trials allow."""
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
    # The variance of k trials is uncertain by a factor k - 1 over chi² with k - 1 degrees of freedom.
    freedom = len(rows) - 1
    scatter *= float(np.sqrt(freedom / stream.chisquare(freedom))) if freedom else 0.0
    scores = stream.standard_normal((replicates, *centre.shape)) if replicates > 1 else 0.0
    drawn = np.broadcast_to(centre + scatter * scores, (replicates, *centre.shape))
    return [_plain(row) for row in drawn]


def _plain(row: np.ndarray) -> float | list[float | None]:
    if row.ndim == 0:
        return float(row)
    return [float(value) if np.isfinite(value) else None for value in row]


def claim_table(found: DryRun) -> Table:
    """Return a table of claims: can they be tested, and with which error would they fail?"""
    table = Table("can be tested", "claim", Column("would notice", right=True))
    for row in found.expectations:
        notices = MISSING if row.notices is None else f"{100 * row.notices:.2g} %"
        weakly = ", weakly" if row.tested and row.weakly else ""
        table.add(f"{row.answer}{weakly}", row.claim, notices)
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
    refused = refusals(found.simulated[0])
    rows = found.expectations
    reasons = [
        f"{row.claim}: {(row.raised or row.reason).removesuffix(f'; {refused}')}"
        for row in rows
        if row.raised or row.share < 0.5
    ]
    gaps = [f"{refused[0].upper()}{refused[1:]}"] if refused else []
    spread = np.std([sum(row.status in TESTED for row in study) for study in found.studies])
    expected = sum(row.share for row in rows)
    return [
        *lines,
        *reasons,
        *gaps,
        f"About {expected:.0f} ± {spread:.0f} of {len(rows)} claims can be tested.",
    ]
