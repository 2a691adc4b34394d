"""State of one page server: controls, runs, and the process that computes lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solvable.errors import SolvableError
from solvable.explore.answers import Desk
from solvable.explore.controls import controls
from solvable.explore.runs import Runs
from solvable.explore.worker import Worker
from solvable.frame.system import System
from solvable.paths import printable


class Explorer:
    """Hold what the callbacks of one page server share."""

    def __init__(self, system: System, start: Mapping[str, Any], runs: Runs) -> None:
        self.system = system
        self.start = dict(start)
        self.runs = runs
        self.controls = controls(system)
        self.worker = Worker(system, self.start)

    def labels(self) -> dict[str, str]:
        """Return the runs by name, with their directories, the newest first."""
        found = [
            (name, printable(str(run.directory))) for name, run in list(self.runs.known.items())
        ]
        return dict(reversed(found))

    def answer(self, asked: Mapping[str, Any]) -> str | None:
        """Return the answer to a request as JSON; None if a newer one has arrived meanwhile."""
        run = self.runs.known.get(str(asked.get("points")))
        try:
            shown = run is not None and run.result() is not None
            directory = str(run.directory.absolute()) if run is not None and shown else None
            return self.worker.ask({**asked, "directory": directory})
        except (SolvableError, OSError) as error:
            return Desk.refused(asked, str(error))

    def close(self) -> None:
        """Stop an active run, whose finished tasks are kept, and the process that computes."""
        self.runs.close()
        self.worker.close()
