"""Measurements and changes of all matrices of a series."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from solvable.data.weights.stored import StoredArray
from solvable.diagnose.checkpoints.changes import Change, changes_of
from solvable.diagnose.checkpoints.measurements import matrices_in, measurements_of
from solvable.diagnose.checkpoints.series import Series
from solvable.diagnose.diagnosis import Measurement
from solvable.diagnose.kept_rows import KeptRows
from solvable.diagnose.matrices_of_file import useful_workers
from solvable.diagnose.parallel import each_result
from solvable.errors import InvalidData


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
    lanes = useful_workers(series.checkpoints[-1].weights.arrays, workers)
    for name, changed in zip(
        arrays, each_result(changes_of, _tasks(arrays, found), lanes), strict=True
    ):
        changes[name] = changed
        step()
    return Measured(found, changes, time.monotonic() - started)


def _tasks(
    arrays: dict[str, list[StoredArray | None]], found: dict[str, list[Measurement | None]]
) -> Iterator[tuple[Any, ...]]:
    for name, stored in arrays.items():
        yield stored, [(row.directions or 0) if row else 0 for row in found[name]]
