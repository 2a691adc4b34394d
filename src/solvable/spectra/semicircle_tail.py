"""Moments of the semicircle above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NODES, RULE = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class SemicircleTail:
    """Moments of the semicircle on [-2, 2] above a threshold; all are 0 for thresholds above 2."""

    mass: float
    first: float
    second: float
    """j(a), the integral of (x - a)²."""
    slope: float
    """A(a) = (2 j - a j') / 4, the degrees of freedom of the bulk over d²."""


def semicircle_tail(threshold: float) -> SemicircleTail:
    """Moments of the semicircle above a threshold, accurate up to the edge."""
    if threshold >= 2:
        return SemicircleTail(0.0, 0.0, 0.0, 0.0)
    # j(a) ~ 16 (2 - a)^(7/2) / 105 pi and A(a) ~ 4 (2 - a)^(5/2) / 15 pi for a -> 2 (quadratic 23), and
    # j(0) = 1/2, A(0) = 1/4. Gauss-Legendre quadrature in the angle avoids cancellation at the edge.
    end = 2 * np.arcsin(np.sqrt((2 - threshold) / 4))
    angle = end / 2 * (1 + NODES)
    weights = end / 2 * RULE * 2 / np.pi * np.sin(angle) ** 2
    rise = 4 * np.sin((end + angle) / 2) * np.sin((end - angle) / 2)
    mass, first, second = (float(weights @ rise**power) for power in range(3))
    return SemicircleTail(mass, first, second, (second + threshold * first) / 2)
