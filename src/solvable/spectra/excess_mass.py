"""Correction of order 1/d to the spectral mass of target plus noise."""

from __future__ import annotations

import numpy as np

from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import Measure
from solvable.spectra.product_measure import MarchenkoPasturMeasure


def excess_mass(law: SpectralLaw, z: np.ndarray) -> np.ndarray:
    """Mass above x at dimension d minus the limiting mass, times d."""
    # T(x) = arg(dz/du) / 2 pi along z = u + delta² g(u)   (spectra 36)
    target = law.target
    mass = np.angle(1 + law.variance * _resolvent_slope(target, z)) / (2 * np.pi)
    if isinstance(target, MarchenkoPasturMeasure):
        mass = mass + _random_mass(target, z)
    return np.asarray(mass)


def _resolvent_slope(target: Measure, z: np.ndarray) -> np.ndarray:
    if isinstance(target, MarchenkoPasturMeasure):
        return np.asarray(target.resolvent(z)[1])
    slope = np.empty(z.shape, dtype=np.complex128)
    for start in range(0, z.size, 2_000):
        block = z[start : start + 2_000, None] - target.nodes
        slope[start : start + 2_000] = -(1 / block**2) @ target.node_weights
    return slope


def _random_mass(target: MarchenkoPasturMeasure, z: np.ndarray) -> np.ndarray:
    """Excess mass T(x) for a random Marchenko-Pastur target with noise."""
    # The finite spectrum has a quarter of an eigenvalue more at each edge, and half an eigenvalue less
    # between the edges, spread by the arcsine law.
    low, high = target.bulk
    root = np.sqrt(z - low) * np.sqrt(z - high)
    ends = np.log(z - low) + np.log(z - high)
    return np.asarray(np.imag(ends / 4 - np.log((z - (low + high) / 2 + root) / 2) / 2) / np.pi)


def excess_moment(law: SpectralLaw, threshold: float, cut: float | None = None) -> float:
    """Coefficient of 1/d in the truncated second moment J(delta, b)."""
    _, points, weights = tail_rule(law, np.array([threshold if cut is None else cut]))
    # J_1 = 2 int_b (x - b) T(x) dx   (spectra 36). Weights / density integrate over x.
    lengths = weights * np.pi * law.variance / points.height
    mass = excess_mass(law, points.u + 1j * points.height)
    return float(2 * lengths @ (mass * (points.x - threshold)))
