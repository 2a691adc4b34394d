"""Runs whose points a page shows: one that was given, and those that the page starts."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from solvable.errors import InvalidParameter, StudyConflict, StudyError
from solvable.explore.snippets import changed_settings
from solvable.frame import registry
from solvable.frame.system import System
from solvable.plots.numbers import format_duration
from solvable.study.grid import Study
from solvable.study.outputs import check_directory
from solvable.study.parameters import format_settings, validate_parameters
from solvable.study.renewed_predictions import predict_anew
from solvable.study.results import StudyResult
from solvable.study.snapshot import read

MOST_REPLICATES = 100
"""Largest number of replicates per point of a run that a page starts."""


@dataclass
class Run:
    """A run directory, and the process that writes to it, if any."""

    name: str
    directory: Path
    system: System
    process: subprocess.Popen[bytes] | None = None
    errors: IO[bytes] | None = None
    started: float = field(default_factory=time.monotonic)
    cancelled: bool = False
    fault: str = ""  # why the results can no longer be read
    _result: StudyResult | None = None

    @property
    def active(self) -> bool:
        """True while the process runs."""
        return self.process is not None and self.process.poll() is None

    def result(self) -> StudyResult | None:
        """Return the results so far; None before the first."""
        try:
            snapshot = read(self.directory)
        except (StudyError, OSError) as error:
            if self._result is None and self.process is None:
                raise
            self.fault = "" if self._result is None else str(error)
            return self._result
        self.fault = ""
        known = self._result
        if known is None or len(known.snapshot.tasks) != len(snapshot.tasks):
            self._result = StudyResult(self.directory, self.system, snapshot)
        return self._result

    def progress(self) -> tuple[int, int, str]:
        """Return finished tasks, all tasks, and a line about what happens."""
        found = self.result()
        done = 0 if found is None else found.planned - found.missing
        total = 0 if found is None else found.planned
        if self.fault:
            words = "The points shown were read before the run was damaged"
            return done, total, f"{words}: {self.fault}"
        if not self.active:
            return done, total, self._ended(done, total)
        if self.cancelled:
            return done, total, "stopping; finished tasks are kept"
        if found is None or not done:
            return done, total, "starting"
        spent = sum(record["seconds"] or 0.0 for record in found.snapshot.tasks)
        left = spent / done * (total - done) / min(_workers(), max(1, total - done))
        return done, total, f"{done} of {total} tasks; about {format_duration(left)} left"

    def _ended(self, done: int, total: int) -> str:
        """Describe how the process ended."""
        code = 0 if self.process is None else self.process.returncode
        kept = f"{done} of {total} tasks are kept in {self.directory}"
        if self.process is not None and code in (130, -signal.SIGINT, -signal.SIGTERM):
            return f"stopped; {kept}. Start it again to resume."
        if code not in (0, 1) and self.errors is not None:
            self.errors.seek(0)
            lines = self.errors.read().decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else f"the run ended with status {code}; {kept}."
        return f"{done} of {total} tasks finished, in {self.directory}"

    def streams(self) -> list[IO[bytes]]:
        """Return the open files of the process, which its page closes."""
        known = [self.errors, self.process.stdin if self.process else None]
        return [stream for stream in known if stream is not None]

    def cancel(self) -> None:
        """Interrupt the process as Ctrl-C does: finished tasks are kept."""
        if self.process is not None and self.active:
            self.cancelled = True
            self.process.send_signal(signal.SIGINT)


def _workers() -> int:
    """Return the number of processes of a run: one core stays free for the page."""
    return max(1, (os.cpu_count() or 1) - 1)


class Runs:
    """Runs of one page server, by name; an address can name only these."""

    def __init__(self, system: System, parent: Path, given: StudyResult | None = None) -> None:
        self.system = system
        self.parent = parent
        self.known: dict[str, Run] = {}
        self._lock = threading.Lock()
        if given is not None:
            self.known["given"] = Run("given", given.directory, system, _result=given)

    def active(self) -> Run | None:
        """Return the run whose process is running."""
        return next((run for run in list(self.known.values()) if run.active), None)

    def start(self, settings: Mapping[str, Any], replicates: Any) -> Run:
        """Start or resume a run of a setting along the axis of the system."""
        study = self.study(settings, replicates)
        name = study.fingerprint[:8]
        directory = self.parent / f"{self.system.name}-{name}"
        with self._lock:
            known = self.known.get(name)
            if known is not None and known.active:
                return known
            busy = self.active()
            if busy is not None:
                raise StudyConflict(f"A run is active in {busy.directory}; stop it first.")
            check_directory(directory)
            for stream in known.streams() if known is not None else ():
                stream.close()
            errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the run)
            process = subprocess.Popen(
                [sys.executable, "-m", "solvable", *self.words(study, directory)],
                # The system closes the pipe if this process is killed, and `solvable.cli` then ends.
                stdin=subprocess.PIPE,
                env=os.environ | {"SOLVABLE_ENDS_WITH_INPUT": "1"},
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # Ctrl-C at the page server is passed on once, by close()
            )
            self.known[name] = Run(name, directory, self.system, process, errors)
            return self.known[name]

    def study(self, settings: Mapping[str, Any], replicates: Any) -> Study:
        """Return the study of a setting at the axis values of the quick preset."""
        self._check_installed()
        if (
            isinstance(replicates, bool)
            or not isinstance(replicates, int)
            or not 1 <= replicates <= MOST_REPLICATES
        ):
            raise InvalidParameter(
                f"replicates is {replicates!r}; allowed: whole numbers from 1 to {MOST_REPLICATES}."
            )
        grid: dict[str, Any] = {n: [v] for n, v in changed_settings(self.system, settings).items()}
        axis = self.system.axis
        quick = self.system.presets.get("quick")
        if axis is not None and quick is not None and axis.parameter in quick.grid:
            grid[axis.parameter] = list(quick.grid[axis.parameter])
        study = Study(self.system, grid, replicates, preset=None)
        study.check_limits()
        return study

    def words(self, study: Study, directory: Path) -> list[str]:
        """Return the command that measures a study, as a list of arguments."""
        grid = {name: values for name, values in study.grid.items() if values}
        settings = [format_settings({name: values}) for name, values in grid.items()]
        words = ["run", self.system.name, "--preset", "none", "--seeds", str(study.replicates)]
        words += ["--set", *settings] if settings else []
        return [*words, "--workers", str(_workers()), "--output", str(directory), "--quiet"]

    def _check_installed(self) -> None:
        """Refuse a system that the process of a run could not load by its name."""
        if all(listing.name != self.system.name for listing in registry.available()):
            raise InvalidParameter(
                f"{self.system.name} is no installed system, so that a run cannot load it; run it "
                "with solvable.run and give its directory to the page."
            )

    def close(self) -> None:
        """Interrupt the active run and wait until its finished tasks are written."""
        for run in self.known.values():
            run.cancel()
        for run in self.known.values():
            if run.process is not None:
                try:
                    run.process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    run.process.kill()
                    run.process.wait()
            for stream in run.streams():
                stream.close()


def run_of(system: System, run: str | Path | StudyResult | None) -> StudyResult | None:
    """Load a run; if another version of the system made it, compute its predictions again."""
    if run is None:
        return None
    if not isinstance(run, StudyResult):
        snapshot = read(run)
        run = StudyResult(Path(run), system, snapshot)
    name = run.snapshot.meta["system"]
    if name != system.name:
        raise StudyConflict(
            f"{run.directory}: a run of {name}, not of {system.name}. Show it by "
            f"`solvable explore {name} {shlex.quote(str(run.directory))}`."
        )
    _check_parameters(system, run)
    return predict_anew(run, 1) if run.snapshot.meta["version"] != system.version else run


def _check_parameters(system: System, run: StudyResult) -> None:
    """Refuse a run of another version of the system with parameters that this one does not have."""
    for _, parameters, _ in run.snapshot.points:
        try:
            validate_parameters(system, parameters)
        except InvalidParameter as error:
            version = run.snapshot.meta["version"]
            raise StudyConflict(
                f"{run.directory}: version {version} of {system.name} made this run, and version "
                f"{system.version} refuses its parameters: {error} Show it with the solvable that "
                "made it, or run the study again."
            ) from None
