"""Results of a series: the history of each matrix, its verdicts, and all matrices of a training."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.diagnosis import Measurement
from solvable.plots.displayed import Shown
from solvable.plots.numbers import format_number

STILL = 0.01  # distance to the last weights, relative to their norm, below which nothing changes
SAME = 0.9  # squared overlap with the last directions from which on they are the same
MOST = 0.3  # the same distance above which changes are no fluctuations


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


def judged(history: History) -> History:
    """Complete a history by its verdicts."""
    settled = settled_directions(history.measurements, history.changes)
    stopped = stopped_weights(history.changes)
    if stopped is not None and stopped.fluctuates:
        # Weights in which directions appear or turn do not only fluctuate.
        last = history.measurements[-1]
        if last is not None and last.directions:
            stopped = None if settled is None or settled.place > stopped.place else stopped
    return replace(history, stopped=stopped, settled=settled)


def stopped_weights(changes: Sequence[Change]) -> Stop | None:
    """Return the first checkpoint from which on the weights stay within the noise of the last."""
    places = [place for place, change in enumerate(changes) if change.last is not None]
    distances = {place: changes[place].last or 0.0 for place in places}
    if len(places) < 2:
        return None
    # Rounding to a relative spacing moves an entry by at most half a spacing.
    limit = max(STILL, *(changes[place].rounding for place in places))
    still = _tail_of(places, lambda place: distances[place] <= limit)
    if len(still) >= 2:
        return Stop(still[0], False, max(distances[place] for place in still))
    # Weights that only fluctuate around a fixed point are as far from the last ones a long time
    # before as a short time before: their squared distance does not grow with the separation.
    nearest = distances[places[-2]]
    if nearest > MOST:
        return None
    flat = _tail_of(places[:-1], lambda place: distances[place] ** 2 <= 1.25 * nearest**2)
    if len(flat) >= 3:
        return Stop(flat[0], True, max(distances[place] for place in flat))
    return None


def settled_directions(
    measurements: Sequence[Measurement | None], changes: Sequence[Change]
) -> Stop | None:
    """Return the first checkpoint from which on the directions and their number stay."""
    places = [place for place, row in enumerate(measurements) if row is not None]
    last = measurements[places[-1]] if places else None
    if last is None or not last.directions:
        return None
    final = last.directions

    def same(place: int) -> bool:
        row, overlap = measurements[place], changes[place].overlap
        if row is None or row.directions is None:
            return False
        near = abs(row.directions - final) <= max(1, final // 10)
        return near and (place == places[-1] or (overlap is not None and overlap >= SAME))

    kept = _tail_of(places, same)
    return Stop(kept[0], False, 0.0) if len(kept) >= 2 else None


def _tail_of(places: Sequence[int], holds: Callable[[int], bool]) -> list[int]:
    """Return the last places for which a condition holds without a gap."""
    kept: list[int] = []
    for place in reversed(places):
        if not holds(place):
            break
        kept.insert(0, place)
    return kept
