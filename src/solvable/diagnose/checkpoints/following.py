"""Diagnosis of an opened series: measurements, histories, and notes."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History
from solvable.diagnose.checkpoints.measuring import Measured, measure
from solvable.diagnose.checkpoints.series import Series
from solvable.diagnose.checkpoints.verdicts import judged
from solvable.diagnose.diagnosis import Measurement
from solvable.diagnose.kept_rows import KeptRows
from solvable.plots.words import listed

if TYPE_CHECKING:
    from solvable.progress import Progress


def diagnose_series(
    series: Series,
    *,
    heads: int | None,
    seed: int,
    workers: int,
    progress: Progress | None = None,
    kept: KeptRows | None = None,
) -> DiagnosedCheckpoints:
    """Measure an opened series, and judge the history of each matrix."""
    measured = measure(
        series, heads=heads, seed=seed, workers=workers, progress=progress, kept=kept
    )
    labels = tuple(part.label for part in series.checkpoints)
    histories, absent = _histories(measured, labels)
    notes = [*series.notes, *absent, *_identical(measured, labels)]
    own = (note for part in series.checkpoints for note in part.weights.notes)
    return DiagnosedCheckpoints(
        series.name,
        labels,
        tuple(part.step for part in series.checkpoints),
        series.axis,
        series.order,
        histories,
        seed,
        measured.seconds,
        tuple(dict.fromkeys([*notes, *own])),
        {name: version(name) for name in ("solvable", "numpy", "scipy")},
    )


def _histories(
    measured: Measured, labels: tuple[str, ...]
) -> tuple[tuple[History, ...], list[str]]:
    """Return the histories, and sentences about matrices that are missing somewhere."""
    absent: dict[tuple[str, ...], list[str]] = {}
    found, reshaped = [], []
    for name, rows in measured.rows.items():
        present = [place for place, row in enumerate(rows) if row is not None]
        last = rows[present[-1]]
        assert last is not None
        if len(present) < len(labels):
            gone = tuple(label for place, label in enumerate(labels) if place not in present)
            absent.setdefault(gone, []).append(name)
        changed = any(row is not None and row.shape != last.shape for row in rows)
        if changed:
            reshaped.append(name)
        # An earlier shape is another matrix: its numbers cannot be compared with the last ones.
        same: tuple[Measurement | None, ...] = tuple(
            row if row is not None and row.shape == last.shape else None for row in rows
        )
        changes = tuple(measured.changes.get(name, [Change()] * len(labels)))
        found.append(judged(History(name, last.shape, same, changes, note=last.reason)))
    notes = [f"{listed(names)}: not in {listed(gone)}." for gone, names in absent.items()]
    if reshaped:
        notes.append(f"{listed(reshaped)}: only the checkpoints with the last shape are compared.")
    return tuple(found), notes


def _identical(measured: Measured, labels: tuple[str, ...]) -> list[str]:
    """Name neighbouring checkpoints that hold the same weights."""
    notes = []
    for place in range(1, len(labels)):
        steps = [changes[place].previous for changes in measured.changes.values()]
        known = [step for step in steps if step is not None]
        if known and max(known) <= 0:
            notes.append(f"{labels[place - 1]} and {labels[place]} hold the same weights.")
    return notes
