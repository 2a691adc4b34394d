"""Density of a label-weighted sample covariance matrix, in Biane's parametrisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter

BISECTIONS = 60  # number of halvings of the imaginary part's bracket, for full double precision

CHUNK_ENTRIES = 200_000  # largest number of (point, weight) pairs in one array


@dataclass(frozen=True)
class SpectralDensity:
    """Spectral density on a grid."""

    x: np.ndarray  # grid of eigenvalues, ascending, not evenly spaced
    density: np.ndarray  # density; its integral is 1 minus the atom
    atom: float  # mass of the atom that the null space causes


def weighted_density(
    *,
    weights: np.ndarray,
    aspect_ratio: float,
    centre: bool = True,
    background_variance: float = 0.0,
    points: int = 200,
) -> SpectralDensity:
    """Density of (1/n) sum w g g^T - mean(w) I for given weights w and Gaussian g ~ N(0, I)."""
    # With delta = n/D and the Stieltjes transform G = delta / b: z(b) = b / delta + E[w] + E[w² /
    # (b - w)] + sigma² delta / b   (spectra 21), where the last term is a free semicircle of
    # variance sigma². On the spectrum b = u + iv, and z is real if E[w² / ((u - w)² + v²)] + sigma²
    # delta / (u² + v²) = 1 / delta. The left side decreases with v, so each u has at most one v >
    # 0. The density at z(b) is (delta / pi) v / (u² + v²).
    check_positive(aspect_ratio=aspect_ratio)
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise InvalidData(f"weights must have shape (m,) with m >= 1; got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise InvalidData("some weights are NaN or infinite; remove these samples first.")
    if not values.any():
        raise InvalidData("all weights are zero: the matrix has no spectrum.")
    if points < 2:
        raise InvalidParameter(f"points is {points}; allowed: an integer of at least 2.")
    if not 0 <= background_variance < np.inf:
        raise InvalidParameter(
            f"background_variance is {background_variance}; allowed: a finite number of at least 0."
        )
    extra = background_variance * aspect_ratio
    # upper bound on v: v <= sqrt(delta (E[w²] + extra)), with w² averaged over weights within reach of u
    radius = float(np.sqrt(aspect_ratio * (np.mean(values**2) + extra)))
    # The grid is even in the angle, because the density is smooth in the angle up to both edges.
    angles = (np.arange(points) + 0.5) * np.pi / points
    middle, half = _reach(values, aspect_ratio, radius, extra)
    places = middle - half * np.cos(angles)
    heights = np.empty(points)
    rows = max(1, CHUNK_ENTRIES // values.size)
    for start in range(0, points, rows):
        some = slice(start, start + rows)
        heights[some] = _imaginary_parts(values, places[some], aspect_ratio, radius, extra)
    inside = heights > 0
    b = places[inside] + 1j * heights[inside]
    moved = np.array([np.mean(values**2 / (point - values)) for point in b])
    x = (b / aspect_ratio + values.mean() + moved + extra / b).real
    density = aspect_ratio / np.pi * heights[inside] / np.abs(b) ** 2
    shift = values.mean() if centre else 0.0
    share = np.count_nonzero(values) / values.size
    order = np.argsort(x)
    return SpectralDensity(
        x[order] - shift,
        density[order],
        float(max(0.0, 1 - aspect_ratio * share)),
    )


def _excess(
    values: np.ndarray, u: np.ndarray, v: np.ndarray, aspect_ratio: float, extra: float
) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (u[:, None] - values) ** 2 + v[:, None] ** 2
        terms = np.where(values == 0, 0.0, values**2 / distance)
        semicircle = extra / (u**2 + v**2) if extra else 0.0
    return np.asarray(terms.mean(axis=1) + semicircle - 1 / aspect_ratio)


def _imaginary_parts(
    values: np.ndarray, u: np.ndarray, aspect_ratio: float, radius: float, extra: float
) -> np.ndarray:
    """Imaginary part v > 0 for each real part u; 0 outside the support."""
    low, high = np.zeros(u.size), np.full(u.size, radius)
    inside = _excess(values, u, low, aspect_ratio, extra) > 0
    for _ in range(BISECTIONS):
        v = (low + high) / 2
        above = _excess(values, u, v, aspect_ratio, extra) > 0
        low, high = np.where(above, v, low), np.where(above, high, v)
    return np.where(inside, (low + high) / 2, 0.0)


def _reach(
    values: np.ndarray, aspect_ratio: float, radius: float, extra: float
) -> tuple[float, float]:
    """Middle and half-width of an interval of u that contains the support."""

    def edge(sign: int) -> float:
        inner = float(np.max(sign * values[values != 0]))
        inner = max(inner, 0.0) if extra else inner
        outer = inner + 2 * radius
        low, high, zero = inner, outer, np.zeros(1)
        for _ in range(BISECTIONS):
            u = (low + high) / 2
            if _excess(values, np.array([sign * u]), zero, aspect_ratio, extra)[0] > 0:
                low = u
            else:
                high = u
        return sign * high

    top, bottom = edge(1), edge(-1)
    return (top + bottom) / 2, (top - bottom) / 2
