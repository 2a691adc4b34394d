"""All matrices of a file, in as many processes as they are worth, kept if the user interrupts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solvable.diagnose.diagnosis import Diagnosed, MatrixDiagnosis
from solvable.diagnose.file import diagnose_file
from solvable.diagnose.weights import StoredArray, iter_weights
from solvable.errors import InvalidData


def stored_arrays(path: Path) -> list[StoredArray]:
    """What the header of a file announces; raises where nothing can be read."""
    arrays = list(iter_weights(path))
    if not arrays:
        raise InvalidData(f"{path} holds no array; pass a file of weights.")
    return arrays


def count_matrices(arrays: Sequence[StoredArray]) -> int:
    """Arrays that are no vectors."""
    return sum(len(array.shape) > 1 for array in arrays)


def useful_workers(arrays: Sequence[StoredArray], workers: int) -> int:
    """Processes that pay: starting one takes seconds, about as long as four small matrices."""
    cost = sum(_cost(array.shape) for array in arrays)
    return max(1, min(workers, count_matrices(arrays), int(cost / 4.0)))


def diagnose_whole(
    path: Path,
    *,
    initial: str | Path | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int, float | None], Any] | None = None,
) -> Diagnosed:
    """Diagnose all arrays; what was done is kept if the user interrupts."""
    arrays = stored_arrays(path)
    lanes = useful_workers(arrays, workers)
    rows: list[MatrixDiagnosis] = []
    started = time.monotonic()
    try:
        for row in diagnose_file(path, initial=initial, seed=seed, workers=lanes):
            rows.append(row)
            if progress is not None:
                left = _seconds_left(arrays, len(rows), time.monotonic() - started)
                progress(count_matrices(arrays[: len(rows)]), count_matrices(arrays), left)
    except KeyboardInterrupt:
        if not any(row.fitted for row in rows):
            raise
    return Diagnosed(
        path.name,
        tuple(rows),
        seed=seed,
        initial=Path(initial).name if initial else "",
        seconds=time.monotonic() - started,
        n_arrays=len(arrays),
        versions={name: version(name) for name in ("solvable", "numpy", "scipy")},
    )


def _seconds_left(arrays: Sequence[StoredArray], done: int, elapsed: float) -> float | None:
    """Time left, by what a decomposition costs."""
    costs = [_cost(array.shape) for array in arrays]
    spent = sum(costs[:done])
    return elapsed * (sum(costs) - spent) / spent if spent else None


def _cost(shape: tuple[int, ...]) -> float:
    """Relative time of a matrix: bootstraps take about as long as decomposing 2000 columns."""
    if len(shape) < 2 or 0 in shape:
        return 0.0
    short = min(shape[0], math.prod(shape[1:]))
    return 1.0 + short * math.prod(shape) / 2000**3
