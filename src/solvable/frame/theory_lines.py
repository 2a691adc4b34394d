"""Theory lines within a time budget: predictions at some grid values, interpolated between."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvable.frame.points import NO_PREDICTION, Metrics, has_raised
from solvable.plots.figure import Series

FEWEST_PLACES = 8
"""Places from which on a line is drawn as a curve; fewer are joined by straight lines."""

FEWEST_SECONDS = 5.0
"""CPU seconds that theory lines may take even if the measurements were faster."""


@dataclass
class LineBudget:
    """CPU seconds for the theory lines of a study, shared among its curves."""

    seconds: float
    curves: int
    fewest: int = 1  # predictions of a line that are computed even if the seconds are spent

    def share(self) -> float:
        """Return the seconds for the next curve: an equal share of the rest."""
        return self.seconds / max(self.curves, 1)

    def spend(self, seconds: float) -> None:
        """Subtract the seconds that a curve took."""
        self.seconds = max(self.seconds - seconds, 0.0)
        self.curves -= 1


def refining_order(count: int) -> list[int]:
    """Return grid indices: both ends first, then always the middle of the widest gap."""
    order = [0, count - 1][: min(count, 2)]
    while len(order) < count:
        placed = sorted(order)
        gaps = np.diff(placed)
        widest = int(np.argmax(gaps))
        order.append(placed[widest] + int(gaps[widest]) // 2)
    return order


def predict_within(
    predict: Callable[[np.ndarray], Sequence[Metrics]], grid: np.ndarray, budget: LineBudget
) -> dict[int, Metrics]:
    """Predict at as many grid values as the budget allows."""
    found: dict[int, Metrics] = {}
    share, start, longest = budget.share(), time.process_time(), 0.0
    for place in refining_order(grid.size):
        before = time.process_time()
        if len(found) >= budget.fewest and before - start + longest > share:
            break
        found[place] = predict(grid[place : place + 1])[0]
        # The first prediction may have computed values that the others reuse.
        longest = time.process_time() - before
    budget.spend(time.process_time() - start)
    return found


def interpolated(nodes: dict[float, Metrics], grid: np.ndarray, *, log: bool) -> list[Metrics]:
    """Interpolate metrics along a grid by monotone cubic splines between predictions."""
    known = {x: metrics for x, metrics in nodes.items() if not _without(metrics)}
    raised = [metrics for metrics in nodes.values() if has_raised(metrics)]
    places = np.array(sorted(known))
    if not known:
        return [raised[0] if raised else {} for _ in grid]
    rows = [known[x] for x in places]
    x, at = (np.log(places), np.log(grid)) if log else (places, grid)
    nearest = np.abs(at[:, None] - x).argmin(axis=1)
    found: list[Metrics] = [dict(rows[k]) for k in nearest]
    gone = np.array(sorted(set(nodes) - set(known)))
    hidden = _beyond(np.log(gone) if log and gone.size else gone, x, at)
    names = [
        name
        for name in rows[0]
        if name != NO_PREDICTION and not any(isinstance(row.get(name), str) for row in rows)
    ]
    tables = [_columns([row.get(name) for row in rows]) for name in names]
    lines = (
        _interpolate(x, np.concatenate(tables, axis=1), at) if tables else np.empty((at.size, 0))
    )
    lines[hidden] = np.nan
    ends = np.cumsum([table.shape[1] for table in tables])
    for name, line in zip(names, np.split(lines, ends[:-1], axis=1), strict=True):
        values = line.tolist()
        whole = isinstance(rows[0][name], list)
        for metrics, value in zip(found, values, strict=True):
            metrics[name] = value if whole else value[0]
    if raised:
        found[int(np.argmax(hidden))][NO_PREDICTION] = raised[0][NO_PREDICTION]
    return found


def smoothed(line: Series, *, log_x: bool, log_y: bool) -> Series:
    """Return a theory line with three places between neighbours, by monotone cubic splines."""
    # Between the computed places the line is smooth in the scales of the figure; gaps stay.
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    ordered = x.size >= FEWEST_PLACES and (np.diff(x) > 0).all() and (x[0] > 0 or not log_x)
    if line.kind not in ("line", "dashed") or line.error is not None or not ordered:
        return line
    across = np.log(x) if log_x else x
    fine = np.interp(np.arange(4 * x.size - 3) / 4, np.arange(x.size), across)
    up = log_y and bool((y[np.isfinite(y)] > 0).all())
    values = _interpolate(across, (np.log(y) if up else y)[:, None], fine)[:, 0]
    values = np.exp(values) if up else values
    gap = np.isnan(y[:-1]) | np.isnan(y[1:])
    values[:-1][np.repeat(gap, 4)] = np.nan
    values[::4] = y
    places = np.exp(fine) if log_x else fine
    places[::4] = x
    return replace(line, x=places, y=values)


def _without(metrics: Metrics) -> bool:
    """Return True if nothing is predicted here."""
    return has_raised(metrics) or all(
        value is None or (isinstance(value, list) and all(entry is None for entry in value))
        for name, value in metrics.items()
        if name != NO_PREDICTION
    )


def _beyond(gone: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the grid values whose nearest computed value has no prediction."""
    if not gone.size:
        return np.zeros(at.size, dtype=bool)
    far = np.abs(at[:, None] - x).min(axis=1)
    return np.asarray(np.abs(at[:, None] - gone).min(axis=1) < far)


def _columns(values: Sequence[object]) -> np.ndarray:
    """Stack numbers or lists of several predictions, shape (places, longest), filled with NaN."""
    rows = [np.atleast_1d(np.asarray(value, dtype=float)) for value in values]
    longest = max(row.size for row in rows)
    return np.array([np.pad(row, (0, longest - row.size), constant_values=np.nan) for row in rows])


def _interpolate(x: np.ndarray, table: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Interpolate quantities (columns) along the line; NaN outside their predictions."""
    lines = np.empty((at.size, table.shape[1]))
    known = np.isfinite(table)
    # Columns that are known at the same places are interpolated in one call.
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for place, pattern in enumerate(patterns.T):
        chosen = np.ravel(which) == place
        lines[:, chosen] = _between(x, table[:, chosen], pattern, at)
    return lines


def _between(x: np.ndarray, table: np.ndarray, known: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Interpolate columns with the same known places."""
    from scipy.interpolate import PchipInterpolator

    if known.sum() < 2:
        alone = table[known][0] if known.any() else np.full(table.shape[1], np.nan)
        return np.where(np.isin(at, x[known])[:, None], alone, np.nan)
    line = PchipInterpolator(x[known], table[known], extrapolate=False)(at)
    # A gap reaches to the next grid value that has the quantity.
    if not known.all():
        line[~known[np.abs(at[:, None] - x).argmin(axis=1)]] = np.nan
    return np.asarray(line)
