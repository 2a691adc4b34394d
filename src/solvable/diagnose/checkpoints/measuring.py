"""Fits and changes of all matrices of a series."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from solvable.data.weights.stored import StoredArray
from solvable.diagnose.checkpoints.changes import Change, Signals, changes_of
from solvable.diagnose.checkpoints.fits import Fit, cost_of_fits, fits_of, matrices_in
from solvable.diagnose.checkpoints.kept_fits import KeptFits
from solvable.diagnose.checkpoints.series import Series
from solvable.diagnose.matrices_of_file import useful_workers
from solvable.diagnose.parallel import each_result
from solvable.errors import InvalidData

LONGEST = 600.0  # estimated seconds of full fits above which all matrices are measured quickly


class Measured(NamedTuple):
    """Fits and changes by matrix, each with one entry per checkpoint; None where it is absent."""

    fits: dict[str, list[Fit | None]]
    changes: dict[str, list[Change]]
    seconds: float


def chosen_quick(series: Series, heads: int | None, workers: int) -> bool:
    """Return True if full fits of all checkpoints would take longer than ten minutes."""
    total = sum(cost_of_fits(part.weights, heads) for part in series.checkpoints)
    return total / workers > LONGEST


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
    quick: bool,
    seed: int,
    workers: int,
    progress: Callable[[int, int, float | None], Any] | None = None,
    kept: KeptFits | None = None,
) -> Measured:
    """Fit every matrix of every checkpoint, one checkpoint at a time, then compare checkpoints."""
    started = time.monotonic()
    arrays = shared_matrices(series, heads)
    fits: dict[str, list[Fit | None]] = {name: [None] * len(series.checkpoints) for name in arrays}
    total = sum(stored is not None for row in arrays.values() for stored in row) + len(arrays)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            left = (time.monotonic() - started) * (total - done) / done
            progress(min(done, total), total, max(left, 0.0))

    for place, part in enumerate(series.checkpoints):
        lanes = useful_workers(part.weights.arrays, workers)
        earlier = kept.find(place) if kept else None
        current = earlier or fits_of(
            part.weights, heads=heads, quick=quick, seed=seed, workers=lanes
        )
        rows = []
        for fit in current:
            rows.append(fit)
            fits.setdefault(fit.matrix, [None] * len(series.checkpoints))[place] = fit
            step()
        if kept and not earlier:
            kept.keep(place, rows)
    changes: dict[str, list[Change]] = {}
    lanes = useful_workers(series.checkpoints[-1].weights.arrays, workers)
    for name, found in zip(
        arrays, each_result(changes_of, _tasks(arrays, fits, seed), lanes), strict=True
    ):
        changes[name] = found
        step()
    return Measured(fits, changes, time.monotonic() - started)


def _tasks(
    arrays: dict[str, list[StoredArray | None]], fits: dict[str, list[Fit | None]], seed: int
) -> Iterator[tuple[Any, ...]]:
    for name, row in arrays.items():
        yield row, [fit.signals if fit else Signals() for fit in fits[name]], seed
