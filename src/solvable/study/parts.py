"""Parts of a study: disjoint shares of its tasks, each with a store of its own, and their union."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from solvable.errors import InvalidParameter, quoted
from solvable.study.database import STORE_NAME
from solvable.study.grid import Study, Task
from solvable.study.snapshot import read
from solvable.study.store import Store, check_same

FOLDER = "parts"
"""Folder of a run directory that holds the parts."""


@dataclass(frozen=True)
class Part:
    """Part ``index`` (from 1) of ``count`` parts of a study."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str, name: str = "part") -> Part:
        """Read "3/10"."""
        match = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", str(text).strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise InvalidParameter(
                f"{name} is {quoted(str(text))}; allowed: K/N with whole numbers, K from 1 to N, such "
                "as 3/10 for the third of ten parts."
            )
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"part {self.index} of {self.count}"

    def directory(self, whole: Path) -> Path:
        """Return the run directory of the part inside that of the whole study."""
        return whole / FOLDER / f"{self.index}-of-{self.count}"

    def tasks(self, study: Study) -> list[Task]:
        """Return the tasks of the part, whose number differs by at most one between parts.

        Replicates of a point go to different parts, because the largest points take longest.
        """
        size = len(study.points)
        by_point = [task for start in range(size) for task in study.tasks[start::size]]
        return by_point[self.index - 1 :: self.count]

    def predictions(self, study: Study) -> list[str]:
        """Return the identities of the points that the part predicts."""
        points = [task.point for task in study.tasks[: len(study.points)]]
        return points[self.index - 1 :: self.count]


def finished_in(directory: Path, study: Study) -> set[str]:
    """Return the tasks and points with a result in the directory of the whole study, if there is one."""
    if not (directory / STORE_NAME).exists():
        return set()
    found = read(directory)
    check_same(found.meta, directory, study)
    predicted = {point for point, _, prediction in found.points if prediction is not None}
    return {str(task["identity"]) for task in found.tasks} | predicted


def join(store: Store, study: Study) -> int:
    """Copy the results of all parts into the store of the whole study; return the number of tasks copied.

    A part that is still running is refused: its unfinished tasks would be computed twice.
    """
    folders = sorted((store.directory / FOLDER).glob(f"*/{STORE_NAME}"))
    return sum(store.absorb(path.parent, study) for path in folders)
