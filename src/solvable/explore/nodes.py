"""Places on an axis at which a line is predicted: few at once, then more where the line changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics, has_raised
from solvable.frame.theory_lines import interpolated, refining_order

FEWEST = 7
"""Predictions of a line that are computed first; after five the time is checked."""

PATIENCE = 6.0
"""If all of these would take more seconds, only three are computed."""

Along = Callable[[np.ndarray], Sequence[Metrics]]


@dataclass(frozen=True)
class Nodes:
    """Predictions at some places of a grid."""

    found: dict[int, Metrics]
    grid: np.ndarray

    @property
    def complete(self) -> bool:
        """True if every place of the grid is predicted."""
        return len(self.found) == self.grid.size

    def line(self, *, log: bool) -> list[Metrics]:
        """Return metrics on the whole grid, interpolated between the predictions."""
        nodes = {float(self.grid[place]): metrics for place, metrics in self.found.items()}
        return interpolated(nodes, self.grid, log=log)


def nodes_within(
    along: Along,
    grid: np.ndarray,
    seconds: float,
    first: int = 0,
    newer: Callable[[], bool] = lambda: False,
) -> Nodes:
    """Predict a coarse line, then add places until time is up, `newer()`, or the grid is full."""
    start = time.perf_counter()
    found = dict(zip([first], along(grid[[first]]), strict=True))
    order = [place for place in refining_order(grid.size)[:FEWEST] if place != first]
    slow = (time.perf_counter() - start) * FEWEST > max(PATIENCE, seconds)
    batches = [order[:2]] if slow else [order[:4], order[4:]]
    for batch in batches:
        if len(found) > 3 and time.perf_counter() - start > seconds:
            break
        # In ascending order each solution can start the search for the next one.
        places = sorted(batch)
        found |= dict(zip(places, along(grid[places]), strict=True)) if places else {}
    longest = 0.0
    while len(found) < grid.size:
        before = time.perf_counter()
        if before - start + longest > seconds or newer():
            break
        place = _next_place(found)
        found[place] = along(grid[[place]])[0]
        longest = time.perf_counter() - before
    return Nodes(found, grid)


def _next_place(found: dict[int, Metrics]) -> int:
    """Return the middle of the gap in which the line changes most."""
    places = np.array(sorted(found))
    gaps = np.diff(places)
    known = np.array([_is_predicted(found[place]) for place in places])
    values = _values([found[place] for place in places])
    # A line ends between a place with a prediction and one without.
    change = (known[1:] != known[:-1]).astype(float)
    if values.size:
        steps = np.abs(np.diff(values, axis=0)) / np.maximum(np.ptp(values, axis=0), 1e-300)
        change = np.maximum(change, steps.max(axis=1))
    # A gap without a change is halved as well, but later.
    score = np.where(gaps > 1, gaps * (0.1 + change), -1.0)
    widest = int(np.argmax(score))
    return int(places[widest] + gaps[widest] // 2)


def _is_predicted(metrics: Metrics) -> bool:
    """Return True if something is predicted."""
    values = [value for name, value in metrics.items() if name != NO_PREDICTION]
    return any(
        any(entry is not None for entry in value) if isinstance(value, list) else value is not None
        for value in values
    )


def _values(rows: Sequence[Metrics]) -> np.ndarray:
    """Return the numbers of each prediction in columns, without columns that have gaps."""
    names = [name for name in rows[0] if name != NO_PREDICTION and not has_raised(rows[0])]
    columns = []
    for name in names:
        cells = [
            np.atleast_1d(np.asarray(_number(row.get(name)), dtype=float))[:12] for row in rows
        ]
        if len({cell.size for cell in cells}) == 1:
            columns.append(np.array(cells))
    if not columns:
        return np.empty((len(rows), 0))
    table = np.concatenate(columns, axis=1)
    return np.asarray(table[:, np.isfinite(table).all(axis=0)])


def _number(value: object) -> object:
    return np.nan if value is None or isinstance(value, str) else value
