"""Delay of a feature by the random part of the gradient, to first order in learning rate / batch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvable.hermite import gaussian_quadrature
from solvable.models.multi_index.emergence.link import EvenLink, even_link


def noise_ratios(link: EvenLink, y: float) -> tuple[float, float]:
    """Variance of a gradient along and across its feature, over that with independent labels.

    The label is sigma(<w, x>); the student has the squared overlap y with the feature w.
    """
    z, weights = gaussian_quadrature(60, (0.0,))
    u, t = np.meshgrid(z, z, indexing="ij")
    # With x = (u, t) in the plane of student and feature: E sigma(sqrt(y) u + sqrt(1 - y) t)² sigma'(u)²,
    # times t² along the feature.
    label = link.evaluate(np.sqrt(y) * u + np.sqrt(1 - y) * t)[0]
    squares = np.outer(weights, weights) * (label * link.evaluate(u.copy())[1]) ** 2 / link.activity
    return float((squares * t**2).sum()), float(squares.sum())


@lru_cache(maxsize=16)
def _integrals(name: str, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts y, and the integrals from y to 1/2 that multiply both kinds of noise   (multi-index 40)."""
    link, y = even_link(name), np.geomspace(1e-4, 0.5, 160)
    along, across = np.array([noise_ratios(link, value) for value in y]).T - 1
    pull, slope = link.pull(y), link.pull_slope(y)
    f, bend = 2 * pull * (1 - y), 2 * (slope * (1 - y) - pull)  # the speed at a = 1, and df/dy
    spread = 2 * y * (1 - y) * bend / f**3  # (multi-index 39)
    shared = spread * along + ((dimension - 2) * y * across - (1 - y) * along) / f**2
    return y, _above(y, spread), _above(y, shared)


def _above(y: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Integrals from each y to the last one."""
    pieces = np.diff(y) * (values[1:] + values[:-1]) / 2
    return np.append(np.cumsum(pieces[::-1])[::-1], 0.0)


def noise_delays(
    strength: float,
    starts: np.ndarray,
    link: EvenLink,
    *,
    kappa: np.ndarray | float,
    gradient_noise: float,
    dimension: int,
) -> np.ndarray:
    """Compute the mean delay of a feature from each start; kappa is the rate of isotropic noise."""
    y, spread, shared = _integrals(link.name, dimension)
    own = gradient_noise * link.activity * strength**2
    alone, joint = (np.interp(starts, y, column) for column in (spread, shared))
    return np.asarray((kappa * alone + own * joint) / strength**2)
