"""Denoising errors of Wishart matrices at many noise levels, by the cubic for the resolvent."""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_positive
from solvable.hermite import panel_nodes

NODES = 64
"""number of Gauss nodes on each component of the support"""


def wishart_denoising_errors(width_ratio: float, variances: np.ndarray) -> np.ndarray:
    """Compute `denoising_error` for targets `marchenko_pastur`, vectorised over noise   (spectra 17)."""
    check_positive(width_ratio=width_ratio)
    t = np.asarray(variances, dtype=np.float64).ravel()
    a = width_ratio**-0.5
    low, high = _supports(a, t)
    angle, weight = panel_nodes([0.0, np.pi], NODES)
    middle, half = (low + high)[..., None] / 2, (high - low)[..., None] / 2
    x = middle - half * np.cos(angle)
    density = _imaginary_part(a, t[:, None, None], x) / np.pi
    cubes = np.sum(density**3 * half * np.sin(angle) * weight, axis=(1, 2))
    # E(t) = t - (4 pi² / 3) t² int mu_t(x)³ dx   (spectra 17; arXiv:2503.14121, Equation 8)
    # a t g³ - (t + a z) g² + (z + a - 1/a) g - 1 = 0, a = rho^(-1/2)   (spectra 31)
    return np.asarray((t - 4 * np.pi**2 / 3 * t**2 * cubes).reshape(np.shape(variances)))


def _supports(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the support's two parts for each variance; the parts touch if the support is connected."""
    # Edges are the real critical points of z(g), the roots of -(1 - a g)² + g² + t g² (1 - a g)² = 0.
    one = np.ones_like(t)
    quartic = [a * a * t, -2 * a * t, 1 - a * a + t, 2 * a * one, -one]
    companion = np.zeros((t.size, 4, 4))
    companion[:, 0] = -np.stack(quartic[1:], axis=1) / quartic[0][:, None]
    companion[:, [1, 2, 3], [0, 1, 2]] = 1.0
    g = np.linalg.eigvals(companion)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = 1 / g + 1 / (a * (1 - a * g)) + t[:, None] * g
    real = np.abs(g.imag) < 1e-9 * np.abs(g)
    low = np.where(real, x.real, np.inf).min(axis=1)
    high = np.where(real, x.real, -np.inf).max(axis=1)
    # Two inner roots bound a gap, or are a complex pair; a gap would open at the pair's real part.
    inner = np.sort(x.real, axis=1)[:, 1:3]
    whole = ~real.all(axis=1)
    joint = np.where(real, 0.0, x.real).sum(axis=1) / np.maximum((~real).sum(axis=1), 1)
    inner[whole] = np.clip(joint, low, high)[whole, None]
    return np.stack([low, inner[:, 1]], axis=1), np.stack([inner[:, 0], high], axis=1)


def wishart_denoised(
    width_ratio: float, variance: float, x: np.ndarray, dimension: int
) -> np.ndarray | None:
    """Denoised eigenvalues x - 2 t Re g(x) of a matrix with d rows; None if the support has a gap."""
    a, t = width_ratio**-0.5, float(variance)
    low, high = _supports(a, np.array([t]))
    if low[0, 1] > high[0, 0]:
        return None
    # Beyond the edge there is no signal, except by chance. A few rank-one measurements
    # cause eigenvalues there, which the formula would nearly keep and message passing would follow (at d
    # = 60, 9 samples a coordinate, 1 run of 6 settles; with a cut at the edge 6 of 6).
    room = 1 + largest_by_chance(width_ratio, dimension)
    top = room * _supports(a, np.array([t / room**2]))[1][0, 1]
    places = np.clip(x, low[0, 0], top)
    real = _resolvent(a, np.array(t), np.minimum(places, high[0, 1]))[0]
    beyond = places > high[0, 1]
    if beyond.any():
        real[beyond] = _resolvent_beyond(a, t, places[beyond])
    return np.asarray(places - 2 * t * real)


def largest_by_chance(width_ratio: float, dimension: int) -> float:
    """Relative distance of the cut above the edge: two standard deviations of the largest eigenvalue."""
    # lambda_max = (sqrt d + sqrt r)² with deviation 1.27 (sqrt d + sqrt r) (1/sqrt d + 1/sqrt r)^(1/3)
    # (Tracy and Widom, mean 1.2 of 1.27 below the edge)
    d, r = float(dimension), max(1.0, width_ratio * dimension)
    return float(2 * (d**-0.5 + r**-0.5) ** (1 / 3) / (d**0.5 + r**0.5))


def _resolvent_beyond(a: float, t: float, x: np.ndarray) -> np.ndarray:
    """Real g above the upper edge, where z(g) = 1/g + 1/(a (1 - a g)) + t g decreases from infinity."""
    low, high = np.zeros(x.size), np.full(x.size, 1 / a)
    for _ in range(60):
        g = (low + high) / 2
        with np.errstate(divide="ignore"):
            slope = -1 / g**2 + 1 / (1 - a * g) ** 2 + t
            z = 1 / g + 1 / (a * (1 - a * g)) + t * g
        # g is left of the minimum of z, and z(g) is still above x
        left = (slope < 0) & (z > x)
        low, high = np.where(left, g, low), np.where(left, high, g)
    return np.asarray((low + high) / 2)


def _imaginary_part(a: float, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Imaginary part of g inside the support."""
    return _resolvent(a, t, x)[1]


def _resolvent(a: float, t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary part of g inside the support, where the cubic has a pair of roots."""
    # the cubic is g³ - s g² + p g - q = 0
    s, p, q = (t + a * x) / (a * t), (x + a - 1 / a) / (a * t), 1 / (a * t)
    shift = s / 3
    linear, constant = p - s * shift, -2 * shift**3 + p * shift - q
    # Cardano: y³ + linear y + constant = 0 with g = y + shift
    spread = np.sqrt(np.maximum(constant**2 / 4 + linear**3 / 27, 0.0))
    cube = np.cbrt(-constant / 2 - np.copysign(spread, constant))
    with np.errstate(divide="ignore", invalid="ignore"):
        other = np.where(cube == 0, 0.0, -linear / (3 * cube))
    # complex pair: Re g = shift - (u + v) / 2, Im g = sqrt(3)/2 |u - v|
    return shift - (cube + other) / 2, np.asarray(np.sqrt(3) / 2 * np.abs(cube - other))
