"""Biane's parametrisation of the free convolution with a semicircle: heights, edges, panels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.spectra.measures import Measure

# largest number of (point, atom) pairs in one array; larger arrays are slower to fill
CHUNK_ENTRIES = 25_000

NEWTON_STEPS = 100  # safety limit: the steps are monotone and need far fewer


class Points(NamedTuple):
    """Biane's curve over real parts ``u``: heights, points x, slopes and components."""

    u: np.ndarray
    height: np.ndarray
    x: np.ndarray
    slope: np.ndarray


def _chunks(size: int, columns: int) -> Iterator[slice]:
    rows = max(1, CHUNK_ENTRIES // max(1, columns))
    for start in range(0, size, rows):
        yield slice(start, min(size, start + rows))


def squared_heights(measure: Measure, u: np.ndarray, variance: float) -> np.ndarray:
    """Squared heights y = v² of the curve over the u with positive height."""
    # The heights solve int mu(ds) / ((u - s)² + y) = 1/t   (spectra 15). Newton's method on the concave
    # increasing function 1/S_1(y) - t, from the left: monotone and quadratic.
    y = measure.start(u, variance)
    sums = measure.inverse_squares(u)
    active = np.arange(u.size)
    for _ in range(NEWTON_STEPS):
        first, second = sums(y[active])
        step = first * (first * variance - 1) / second
        # At the root, rounding errors decide the sign of the step.
        y[active] = np.minimum(y[active] + np.maximum(step, 0.0), variance)
        # Steps converge quadratically: the remaining error is about the square of the last step.
        moving = step > 1e-9 * y[active]
        if not moving.any():
            return y
        if np.count_nonzero(moving) < 0.7 * active.size:
            active = active[moving]
            sums = measure.inverse_squares(u[active])
    raise NotConverged(
        "Newton's method for the density of the spectral law did not converge; shift or rescale the "
        "spectrum.",
        {"places": u[active], "variance": variance},
    )


def curve(measure: Measure, u: np.ndarray, variance: float, inside: np.ndarray) -> Points:
    """Points x = psi(u) with height and slope; ``inside`` marks positive heights."""
    height, x, slope = np.zeros(u.size), np.empty(u.size), np.empty(u.size)
    for some in _chunks(u.size, measure.terms):
        part, within = u[some], inside[some]
        y = np.zeros(part.size)
        if within.any():
            y[within] = squared_heights(measure, part[within], variance)
        # x = psi(u) = u + t int (u - s) mu(ds) / ((u - s)² + v²), and psi' along the curve
        # (spectra 15).
        odd, odd_slope = measure.odd_sums(part, y)
        x[some] = part + variance * odd
        height[some] = np.sqrt(y)
        gradient = np.empty(part.size)
        if within.any():
            _, second = measure.inverse_squares(part[within])(y[within])
            tilt = odd_slope[within]
            gradient[within] = 2 * variance * (y[within] * second + tilt**2 / second)
        if not within.all():
            first, _ = measure.outside(part[~within])
            gradient[~within] = 1 - variance * first
        slope[some] = gradient
    return Points(u, height, x, slope)


def _march(
    measure: Measure, starts: np.ndarray, ends: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first edge between each start and its end; also return True if an edge exists."""
    # (int mu(ds) / (u - s)²)^(-1/2) is concave between neighbouring pieces of the support (a power
    # mean of linear functions). Newton's method on its crossing of sqrt(t) from below is monotone,
    # and passes the maximum if there is no crossing.
    u = starts.copy()
    sign = np.sign(ends - starts)
    found = np.zeros(u.size, dtype=bool)
    active = np.flatnonzero(sign != 0)
    for _ in range(NEWTON_STEPS):
        if active.size == 0:
            return u, found
        first, third = measure.outside(u[active])
        slope = sign[active] * third / first**1.5
        with np.errstate(divide="ignore", invalid="ignore"):
            step = (np.sqrt(variance) - first**-0.5) / slope
        moved = u[active] + sign[active] * np.maximum(step, 0.0)
        done = (slope > 0) & (
            step <= 4e-16 * np.abs(moved - starts[active]) + 4e-16 * np.abs(moved)
        )
        lost = (slope <= 0) | (sign[active] * (ends[active] - moved) <= 0)
        found[active[done & ~lost]] = True
        u[active] = np.where(lost, u[active], moved)
        active = active[~done & ~lost]
    raise NotConverged(
        "an edge of the spectral law did not settle; two parts of the spectrum are about to merge. "
        "Change the noise by one part in a billion.",
        {"places": u[active], "variance": variance},
    )


def _own_reach(measure: Measure, variance: float) -> np.ndarray:
    """Distance from its end that a piece alone covers; a march from there starts inside the support."""
    pieces, masses = measure.pieces, measure.masses
    atom = pieces[:, 0] == pieces[:, 1]
    # At the edge of a continuous piece the sum is infinite, so the march starts just outside.
    return np.where(atom, np.sqrt(variance * masses), 1e-13 * (pieces[:, 1] - pieces[:, 0]))


def components(measure: Measure, variance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals of ``u`` with positive height, each with its mass and its pieces."""
    pieces, masses = measure.pieces, measure.masses
    reach = _own_reach(measure, variance)
    far = 2 * np.sqrt(variance) + 1.0
    outer, _ = _march(
        measure,
        np.array([pieces[0, 0] - reach[0], pieces[-1, 1] + reach[-1]]),
        np.array([pieces[0, 0] - far, pieces[-1, 1] + far]),
        variance,
    )
    left, right = pieces[:-1, 1] + reach[:-1], pieces[1:, 0] - reach[1:]
    # Even at the largest possible distance, the two pieces alone close the gap.
    span = pieces[1:, 1] - pieces[:-1, 0]
    pair = (np.cbrt(masses[:-1]) + np.cbrt(masses[1:])) ** 3
    open_ = np.flatnonzero((left < right) & (pair * variance < span**2))
    if open_.size:
        lower, from_left = _march(measure, left[open_], right[open_], variance)
        upper, from_right = _march(measure, right[open_], left[open_], variance)
        true = from_left & from_right & (lower < upper)
        open_, lower, upper = open_[true], lower[true], upper[true]
    else:
        lower = upper = np.empty(0)
    intervals = np.column_stack(
        [np.concatenate([outer[:1], upper]), np.concatenate([lower, outer[1:]])]
    )
    firsts = np.concatenate([[0], open_ + 1])
    counts = np.diff(np.concatenate([firsts, [masses.size]]))
    return intervals, np.add.reduceat(masses, firsts), counts


def invert(
    measure: Measure,
    noise: float,
    x: np.ndarray,
    bracket: tuple[np.ndarray, np.ndarray, np.ndarray],
    inside: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve psi(u) = x by Newton steps inside a bracket; return u and the height at u."""
    low, u, high = bracket
    height = np.zeros(x.size)
    active = np.arange(x.size)
    for _ in range(100):
        if active.size == 0:
            return u, height
        points = curve(measure, u[active], noise**2, inside[active])
        height[active] = points.height
        excess = points.x - x[active]
        low[active] = np.where(excess <= 0, u[active], low[active])
        high[active] = np.where(excess >= 0, u[active], high[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = u[active] - excess / points.slope
        middle = (low[active] + high[active]) / 2
        moved = np.where((moved > low[active]) & (moved < high[active]), moved, middle)
        scale = 4e-16 * np.maximum(np.abs(x[active]), noise)
        done = (np.abs(moved - u[active]) <= scale) | (high[active] - low[active] <= scale)
        u[active] = np.where(done, u[active], moved)
        active = active[~done]
    return u, height
