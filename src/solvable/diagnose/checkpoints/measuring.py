"""Diagnosis of an opened series: numbers and changes of all matrices, their histories, notes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.adapters import multiplied
from solvable.diagnose.checkpoints.changes import Change, changes_of
from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History, judged
from solvable.diagnose.checkpoints.series import Series
from solvable.diagnose.diagnosis import Measurement
from solvable.diagnose.jobs import Job, KeptRows, bytes_of, cost_of, each_in_order, memory_limit
from solvable.diagnose.matrices_of_file import arrays_in, diagnose_file, useful_workers
from solvable.diagnose.outliers import dead_rows
from solvable.errors import InvalidData
from solvable.plots.words import listed


class Measured(NamedTuple):
    """Numbers and changes by matrix, each with one entry per checkpoint; None where it is absent."""

    rows: dict[str, list[Measurement | None]]
    changes: dict[str, list[Change]]
    seconds: float


def shared_matrices(series: Series, heads: int | None) -> dict[str, list[StoredArray | None]]:
    """Return each matrix with its arrays by checkpoint; raise if none occurs twice in one shape."""
    tables = [matrices_in(part.weights, heads) for part in series.checkpoints]
    names = dict.fromkeys(name for table in tables for name in table)
    found = {name: [table.get(name) for table in tables] for name in names}
    if not any(_repeats(arrays) for arrays in found.values()):
        first, last = series.checkpoints[0], series.checkpoints[-1]
        raise InvalidData(
            f"no matrix occurs in two checkpoints with the same name and shape: {first.label} has "
            f"{_example(tables[0])}, {last.label} has {_example(tables[-1])}; allowed: checkpoints "
            "of one training."
        )
    return found


def _repeats(arrays: list[StoredArray | None]) -> bool:
    shapes = [stored.shape for stored in arrays if stored is not None]
    return len(shapes) > len(set(shapes))


def _example(table: dict[str, StoredArray]) -> str:
    name = next(iter(table))
    return f"{name} ({' x '.join(map(str, table[name].shape))})"


def measure(
    series: Series,
    *,
    heads: int | None,
    seed: int,
    workers: int,
    progress: Callable[[int, int, float | None], Any] | None = None,
    kept: KeptRows | None = None,
) -> Measured:
    """Measure every matrix of every checkpoint, one checkpoint at a time, then compare checkpoints."""
    started = time.monotonic()
    arrays = shared_matrices(series, heads)
    found: dict[str, list[Measurement | None]] = {
        name: [None] * len(series.checkpoints) for name in arrays
    }
    total = sum(stored is not None for row in arrays.values() for stored in row) + len(arrays)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            left = (time.monotonic() - started) * (total - done) / done
            progress(min(done, total), total, max(left, 0.0))

    stored = kept.found() if kept else {}
    for place, part in enumerate(series.checkpoints):
        lanes = useful_workers(part.weights.arrays, workers)
        earlier = stored.get(f"checkpoint {place}")
        current = earlier or measurements_of(part.weights, heads=heads, seed=seed, workers=lanes)
        rows = []
        for row in current:
            rows.append(row)
            found.setdefault(row.matrix, [None] * len(series.checkpoints))[place] = row
            step()
        if kept and not earlier:
            kept.keep(f"checkpoint {place}", tuple(rows))
    changes: dict[str, list[Change]] = {}
    for name, changed in zip(
        arrays, each_in_order(_jobs(arrays, found), workers, memory_limit(None)), strict=True
    ):
        changes[name] = changed
        step()
    return Measured(found, changes, time.monotonic() - started)


def _jobs(
    arrays: dict[str, list[StoredArray | None]], found: dict[str, list[Measurement | None]]
) -> list[Job]:
    jobs = []
    for name, versions in arrays.items():
        counts = [(row.directions or 0) if row else 0 for row in found[name]]
        known = [stored for stored in versions if stored is not None]
        cost = sum(cost_of(stored.shape, laws=False) for stored in known)
        size = max(bytes_of(stored, copies=3) for stored in known)
        jobs.append(Job(name, changes_of, (versions, counts), cost, size))
    return jobs


def matrices_in(weights: Weights, heads: int | None) -> dict[str, StoredArray]:
    """Return the matrices of a checkpoint by name: fused projections split, adapters multiplied."""
    arrays = arrays_in(weights, heads)
    return {stored.name: multiplied(stored) for stored in arrays if stored.is_matrix}


def measurements_of(
    weights: Weights, *, heads: int | None, seed: int, workers: int
) -> Iterator[Measurement]:
    """Yield the numbers of each matrix of a checkpoint."""
    for row in diagnose_file(weights, heads=heads, laws=False, workers=workers, seed=seed):
        if len(row.shape) > 1 or row.dtype == "unknown":
            yield Measurement(
                row.name,
                row.shape,
                row.directions,
                row.norm,
                row.largest,
                row.stable_rank,
                dead_rows(row.outliers),
                "" if row.norm is not None else row.reason,
            )


def diagnose_series(
    series: Series,
    *,
    heads: int | None,
    seed: int,
    workers: int,
    progress: Callable[[int, int, float | None], Any] | None = None,
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
