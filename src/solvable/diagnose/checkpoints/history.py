"""Results of a series: the history of each matrix, its verdicts, and all matrices of a training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.diagnosis import Measurement
from solvable.plots.displayed import Shown
from solvable.plots.numbers import format_number


@dataclass(frozen=True)
class Stop:
    """Checkpoint from which on a matrix no longer changed."""

    place: int  # index of the checkpoint
    fluctuates: bool  # True if the weights still differ, but not more for distant checkpoints
    size: float  # largest distance to the last checkpoint from then on, relative to the norm


@dataclass(frozen=True)
class History:
    """Numbers of one matrix along training, and what they show."""

    name: str
    shape: tuple[int, ...]
    measurements: tuple[
        Measurement | None, ...
    ]  # one per checkpoint; None where the matrix is absent
    changes: tuple[Change, ...]
    stopped: Stop | None = None  # of the weights
    settled: Stop | None = None  # of the directions and their number
    note: str = ""  # why numbers are missing

    @property
    def kind(self) -> str:
        """Name without its numbers, which matrices of several layers share."""
        return re.sub(r"\d+", "*", self.name)

    @property
    def present(self) -> list[int]:
        """Indices of the checkpoints that hold the matrix in its last shape."""
        return [
            place
            for place, row in enumerate(self.measurements)
            if row is not None and row.shape == self.shape
        ]

    def values(self, quantity: str) -> list[float | None]:
        """Return a quantity of the measurements or of the changes by checkpoint."""
        found: list[float | None] = []
        for row, change in zip(self.measurements, self.changes, strict=True):
            source = change if quantity in ("previous", "last", "overlap") else row
            found.append(None if row is None else getattr(source, quantity))
        return found


@dataclass(frozen=True, repr=False)
class DiagnosedCheckpoints(Shown, view="solvable.diagnose.checkpoints.view"):
    """Histories of all matrices of a training; ``figure(name)`` draws one quantity of all matrices."""

    name: str  # name of the folder of the checkpoints
    labels: tuple[str, ...]  # names of the checkpoints, in order
    steps: tuple[float, ...]  # their positions on the horizontal axis
    axis: str  # unit of the positions, such as "step"
    order: str  # sentence about the order
    histories: tuple[History, ...]  # one per matrix, in the order of the last checkpoint
    seed: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()  # sentences about files and matrices that were left out
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def stopped(self) -> tuple[History, ...]:
        """Matrices that stopped changing before the last checkpoint."""
        return tuple(row for row in self.histories if row.stopped)

    def at(self, place: int) -> str:
        """Return the name of a checkpoint for a sentence, such as "step 800"."""
        if self.axis in ("checkpoint", "number in the name"):
            return self.labels[place]
        return f"{self.axis} {format_number(self.steps[place], 6)}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, numbers and words, for JSON."""
        return {
            "name": self.name,
            "labels": list(self.labels),
            "steps": list(self.steps),
            "axis": self.axis,
            "order": self.order,
            "seed": self.seed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "matrices": [asdict(row) for row in self.histories],
        }
