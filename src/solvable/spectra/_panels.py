"""Quadrature of a spectral distribution: Gauss-Legendre panels in the angle of each component."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.errors import NotConverged
from solvable.spectra._biane import Points, curve
from solvable.spectra.measures import Measure

PANEL_NODES = (
    16  # number of nodes per panel; an isolated atom needs one panel, a smooth bulk two to six
)

_NODES, _RULE = np.polynomial.legendre.leggauss(PANEL_NODES)

MASS_TOLERANCE = 1e-11  # default relative error of a component's mass at which refinement ends

MAX_LEVELS = (
    12  # largest number of halvings of a panel; resolves a cusp of the density to 1e-8 of the mass
)


class Panels(NamedTuple):
    """Panels in ascending order, each with component and ends, and the curve and weights at the nodes."""

    component: np.ndarray
    ends: np.ndarray
    points: Points
    weights: np.ndarray


def arc(intervals: np.ndarray, component: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Real parts u at given angles of the components."""
    low, high = intervals[component].T
    # Computed from the nearer end, so that the distance to the edge keeps its digits.
    span = high - low
    rise = span * np.sin(angle / 2) ** 2
    fall = span * np.cos(angle / 2) ** 2
    return np.where(angle < np.pi / 2, low + rise, high - fall)


def integrate_arcs(
    measure: Measure,
    variance: float,
    intervals: np.ndarray,
    component: np.ndarray,
    ends: np.ndarray,
) -> tuple[Points, np.ndarray]:
    """Curve and weights at the nodes of one panel on each arc, given by its two end angles."""
    start, stop = ends.T
    half = (stop - start)[:, None] / 2
    angle = ((stop + start)[:, None] / 2 + half * _NODES).ravel()
    which = np.repeat(component, PANEL_NODES)
    u = arc(intervals, which, angle)
    points = curve(measure, u, variance, np.ones(u.size, dtype=bool))
    low, high = intervals[which].T
    speed = (high - low) / 2 * np.sin(angle)
    # mu(dx) = v / (pi t) psi'(u) du, u = c - r cos(theta)   (spectra 15).
    weights = points.height / (np.pi * variance) * points.slope * speed
    return points, weights * (half * _RULE).ravel()


def adaptive_panels(
    measure: Measure,
    variance: float,
    intervals: np.ndarray,
    masses: np.ndarray,
    pieces: np.ndarray,
    tolerance: float = MASS_TOLERANCE,
) -> Panels:
    """Refine panels until each component has its mass, which is known exactly."""
    # ``pieces`` counts the pieces of the target in each component; a single atom starts with one
    # panel.
    wide = measure.pieces[:, 0] < measure.pieces[:, 1]
    smooth = np.logical_or.reduceat(wide, np.cumsum(pieces) - pieces)
    counts = np.where((pieces > 1) | smooth, 3, 1)
    component, place = _numbered(counts)
    ends = np.column_stack([place, place + 1]) * (np.pi / counts[component])[:, None]
    points, weights = integrate_arcs(measure, variance, intervals, component, ends)
    mass = weights.reshape(-1, PANEL_NODES).sum(axis=1)
    error = np.bincount(component, weights=mass) - masses
    settled = (np.abs(error) <= tolerance * masses)[component]
    kept = []
    for level in range(MAX_LEVELS + 1):
        rows = np.column_stack([*points, weights]).reshape(-1, PANEL_NODES, 5)
        kept.append((component[settled], ends[settled], rows[settled]))
        rest = np.flatnonzero(~settled)
        if rest.size == 0:
            break
        # A continuous piece is equally smooth at any noise, so its height sets no scale.
        parts, rough = np.full(rest.size, 2), ~smooth[component[rest]]
        if rough.any():
            parts[rough] = _parts(points, rest[rough])
        parent, place = _numbered(parts)
        step = ((ends[rest, 1] - ends[rest, 0]) / parts)[parent]
        start = ends[rest, 0][parent] + place * step
        component, ends = component[rest][parent], np.column_stack([start, start + step])
        points, weights = integrate_arcs(measure, variance, intervals, component, ends)
        before, mass = mass[rest], weights.reshape(-1, PANEL_NODES).sum(axis=1)
        change = np.abs(np.bincount(parent, weights=mass) - before)[parent]
        settled = change <= tolerance * masses[component]
        settled |= level == MAX_LEVELS - 1
    return _checked(_assemble(kept), masses, max(1e-7, tolerance))


def _numbered(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Owner of each part, and the part's number among the parts of the same owner."""
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)


def _parts(points: Points, panels: np.ndarray) -> np.ndarray:
    """Number of parts into which each panel is cut; the curve is smooth over about twice its height."""
    u, height = (values.reshape(-1, PANEL_NODES)[panels] for values in (points.u, points.height))
    height = np.maximum(np.median(height, axis=1), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        parts = np.ceil((u[:, -1] - u[:, 0]) / (2 * height))
    return np.clip(parts, 2, 16).astype(int)


def _checked(panels: Panels, masses: np.ndarray, allowed: float) -> Panels:
    component = np.repeat(panels.component, PANEL_NODES)
    found = np.bincount(component, weights=panels.weights)
    worst = float(np.max(np.abs(found / masses - 1)))
    if worst > allowed:
        raise NotConverged(
            f"the quadrature of the spectral density misses {worst:.1e} of a component's mass; "
            "the scales in the spectrum are too far apart. Merge eigenvalues that differ by less "
            "than the noise resolves, or use a larger noise.",
            {"mass_error": worst, "nodes": panels.weights.size, "components": masses.size},
        )
    return panels


def _assemble(kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Panels:
    component = np.concatenate([part[0] for part in kept])
    ends = np.concatenate([part[1] for part in kept])
    rows = np.concatenate([part[2] for part in kept])
    order = np.lexsort((ends[:, 0], component))
    columns = rows[order].reshape(-1, 5).T
    return Panels(component[order], ends[order], Points(*columns[:4]), columns[4])
