"""Running a study: missing tasks are run, and each result is committed at once."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import fmean

from solvable.errors import InvalidParameter, SolvableError
from solvable.fitting.devices import import_torch, torch_device
from solvable.frame.registry import available
from solvable.frame.registry import load as load_system
from solvable.frame.system import System
from solvable.paths import check_path
from solvable.progress import Progress
from solvable.study.database import reported
from solvable.study.dispatch import count_workers, outcomes
from solvable.study.execute import Job, Outcome
from solvable.study.grid import Study, Task
from solvable.study.parts import Part, finished_in, join
from solvable.study.results import StudyResult, load
from solvable.study.store import Store


def run_study(
    study: Study,
    directory: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    part: str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run a study, or its missing tasks.

    Results are committed to ``study.sqlite`` in the run directory one by one. A run that was interrupted
    or killed resumes with the missing tasks and recomputes nothing. Results are equal bit by bit for
    any number of workers and any number of resumptions.

    Parameters
    ----------
    study : Study
        Study to run.
    directory : path
        Run directory; created if missing. ``study.toml`` and ``records.csv`` are written too.
    workers : int, optional
        Local processes of one BLAS thread each; at most one per core (the default). 1 runs in this
        process.
    scheduler : str, optional
        Address of a Dask scheduler whose workers run the tasks instead.
    part : str, optional
        "3/10" runs only the third of ten parts of the tasks, in the folder ``parts/3-of-10`` of the run
        directory. Without it, results of parts in that folder are copied first, and the tasks that no
        part has finished are run.
    device : str, optional
        Device in torch's notation, such as "cuda", on which learners that take tensors compute. Results
        equal those of NumPy up to rounding.
    progress : callable, optional
        ``progress(done, total, seconds_left)``, called at the start and after each task.

    Returns
    -------
    StudyResult
        With ``interrupted=True`` after Ctrl-C. A task or a prediction that raised is in ``failures``
        and runs again when the study is resumed.

    Raises
    ------
    StudyConflict, StudyBusy, StudyTooNew, StorageFailed
        If the directory cannot be used for this study.
    InvalidParameter
        If a point is too large to be measured, ``workers`` is not a whole number of at least 1,
        or no scheduler answers.
    """
    whole = check_path(directory, "directory")
    share = None if part is None else Part.parse(part)
    directory = whole if share is None else share.directory(whole)
    # Processes share a device, which one process keeps busy.
    lanes = count_workers(1 if workers is None and device is not None else workers)
    if device is not None:
        check_device(study.system, device, here=scheduler is None)
    # refuse before hours of measurements
    _ = study.system.claims, study.system.panels
    study.check_limits()
    interrupted, fresh = False, set[str]()
    with Store(directory, study) as store:
        _write_description(study, directory)
        if share is None:
            join(store, study)
            finished = store.finished()
        else:
            finished = store.finished() | finished_in(whole, study)
        jobs = _jobs(study, finished, share, device)
        tasks = study.tasks if share is None else share.tasks(study)
        meter = _Meter(tasks, finished, None if scheduler else lanes, progress)
        try:
            with closing(outcomes(jobs, lanes, scheduler)) as stream:
                meter.report()
                for outcome in stream:
                    store.commit(outcome)
                    fresh.add(outcome.identity)
                    meter.add(outcome)
        except KeyboardInterrupt:
            interrupted = True
    found = load(directory, study.system)
    result = StudyResult(directory, study.system, found.snapshot, interrupted, frozenset(fresh))
    result.write_records()
    return result


def check_device(system: System, device: str, *, here: bool = True) -> None:
    """Raise unless the learner of a system takes tensors and, if run here, torch can use the device."""
    if not system.tensors:
        raise InvalidParameter(
            f"device is {device!r}, but the learner of {system.name} computes in NumPy; allowed: no "
            f"device, or a system whose learner takes tensors: {', '.join(_of_tensors())}."
        )
    if here:
        torch_device(import_torch("a device"), device)


def _of_tensors() -> list[str]:
    """Names of the installed systems whose learners take tensors."""
    names = []
    for listing in available():
        with suppress(SolvableError):  # a system of another package may not load
            names += [listing.name] if load_system(listing.name).tensors else []
    return names


def _jobs(
    study: Study, finished: set[str], share: Part | None, device: str | None = None
) -> list[Job]:
    """Order the jobs: predictions first, which are quick and serve all replicates, then tasks.

    Within a replicate the large settings come first: they show early whether memory suffices, and no
    long task starts last.
    """
    system = study.system
    size = len(study.points)
    replicates = [study.tasks[start : start + size] for start in range(0, len(study.tasks), size)]
    jobs = [
        Job("prediction", task.point, system, system.version, task.parameters)
        for task in replicates[0]
    ]
    jobs += [
        Job("task", task.identity, system, system.version, task.parameters, device)
        for replicate in replicates
        for task in reversed(replicate)
    ]
    if share is not None:
        chosen = {task.identity for task in share.tasks(study)} | {*share.predictions(study)}
        jobs = [job for job in jobs if job.identity in chosen]
    return [job for job in jobs if job.identity not in finished]


def _write_description(study: Study, directory: Path) -> None:
    path = directory / "study.toml"
    if path.exists():
        return
    part = directory / ".study.toml.part"
    with reported(path):
        part.write_text(study.to_toml(), encoding="utf-8")
        os.replace(part, path)


class _Meter:
    """Counts tasks and estimates the time left from the mean time per point."""

    def __init__(
        self,
        tasks: Sequence[Task],
        finished: set[str],
        lanes: int | None,
        progress: Progress | None,
    ) -> None:
        self.tasks: dict[str, Task] = {task.identity: task for task in tasks}
        self.left = Counter(task.point for task in tasks if task.identity not in finished)
        self.spent: defaultdict[str, list[float]] = defaultdict(list)
        self.progress = progress
        self.lanes = lanes
        self.started = time.perf_counter()

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        task = self.tasks.get(outcome.identity)
        if task is None:
            return
        self.left[task.point] -= 1
        if outcome.metrics is not None:
            self.spent[task.point].append(float(outcome.provenance["seconds"]))
        self.report()

    def report(self) -> None:
        """Call the user's progress function."""
        if self.progress is not None:
            total = len(self.tasks)
            self.progress(total - self.left.total(), total, self.seconds_left())

    def seconds_left(self) -> float | None:
        """Estimate the seconds left: mean seconds of the tasks left, divided by the number of workers.

        For a cluster, whose workers come and go, the mean number of busy workers is used.
        """
        if self.left.total() == 0:
            return 0.0
        if not self.spent:
            return None
        overall = fmean([seconds for values in self.spent.values() for seconds in values])
        # tasks left at each point, times the mean seconds of a task at that point
        work = sum(
            count * (fmean(self.spent[point]) if point in self.spent else overall)
            for point, count in self.left.items()
        )
        # mean number of busy workers: seconds of work per second of waiting
        busy = sum(sum(values) for values in self.spent.values())
        lanes = self.lanes or busy / (time.perf_counter() - self.started) or 1.0
        return work / min(lanes, self.left.total())
