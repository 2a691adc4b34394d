"""Energies of patterns, with prefactors, for networks with one hidden layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import numpy as np

from solvable.hermite import gaussian_quadrature
from solvable.models.two_layer_posterior.overlap import (
    NeuronOverlap,
    Target,
    neuron_overlap,
    profile,
)
from solvable.scale.prefactors.lazy_kernels import fluctuations, mode_moments, perpendicular_law

Kind = Literal["GP", "GFL", "Sp", "Mag"]

LARGEST_STRENGTH = 50.0
"""Largest strength of a neuron with a bounded activation; at this strength the neuron is saturated."""


@dataclass(frozen=True)
class LayerNumbers:
    """Values of one layer: number M of neurons, strength mu, squared norm r of other weights, gain D."""

    kind: Kind
    feature: int | None = None
    neurons: float | None = None
    strength: float | None = None
    rest: float | None = None
    gain: float | None = None


@dataclass(frozen=True)
class Optimum:
    """Least energy of a pattern, and the minimiser."""

    energy: float
    layer: LayerNumbers
    cost: float  # part of the energy that the layer takes; the alignment takes the rest


def best_neurons(each: float, lazy: float, gain: float, alignment: float, most: float) -> float:
    """Find M in [1, most] that minimises M each + alignment / (2 (lazy + M gain))."""
    # the derivative vanishes at each = alignment gain / (2 (lazy + M gain)²)
    if each <= 0:
        return most
    wanted = (sqrt(alignment * gain / (2 * each)) - lazy) / gain if gain > 0 else 1.0
    return min(max(wanted, 1.0), max(most, 1.0))


def least(
    function: Callable[[np.ndarray], float],
    bounds: list[tuple[float, float]],
    starts: list[list[float]],
) -> tuple[float, np.ndarray]:
    """Minimise a function in a box from several starting points; it is smooth unless M is clipped."""
    from scipy.optimize import minimize

    low, high = (np.array(side) for side in zip(*bounds, strict=True))

    def inside(place: np.ndarray) -> float:
        return function(np.clip(place, low, high))

    found = []
    for start in starts:
        first = np.clip(np.array(start), low, high)
        result = minimize(inside, first, method="L-BFGS-B", bounds=bounds)
        found.append((float(result.fun), np.clip(result.x, low, high)))
    value, place = min(found, key=lambda pair: pair[0])
    # finite differences stop early in flat valleys and where M is clipped
    result = minimize(
        inside,
        place,
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10 * abs(value), "maxfev": 400 * len(bounds)},
    )
    if result.fun < value:
        return float(result.fun), np.clip(result.x, low, high)
    return value, place


@dataclass(frozen=True)
class FirstLayer:
    """First layer: overlaps of neurons with Hermite modes of the target's direction."""

    activation: str
    overlap: NeuronOverlap
    dimension: float

    @classmethod
    def of(cls, activation: str, degree: int, dimension: float, target: Target) -> FirstLayer:
        """Build the layer for a target and the dimension of the input or patch."""
        return cls(activation, neuron_overlap(activation, degree, target), dimension)

    @property
    def bounded(self) -> bool:
        """Return True if a strong neuron saturates."""
        return not profile(self.activation).homogeneous

    def cost(self, u: float, r: float) -> float:
        """Compute the divergence from the prior for a neuron moved to u w_* and shrunk by sqrt(r)."""
        # Delta / 2 with Delta = d u² + (d - 1) (r - 1 - ln r)   (scale 14)
        return float(self.dimension * u * u + (self.dimension - 1) * (r - 1 - log(r))) / 2

    def squared(self, u: float, r: float) -> float:
        """Compute E c² for a neuron moved to u w_* and shrunk by sqrt(r), with prior fluctuations."""
        z, chance = gaussian_quadrature(16)
        near, share = perpendicular_law(self.dimension, 24)
        places = u + z / sqrt(self.dimension)
        return float(chance @ self.overlap.value(places[:, None], r * near[None, :]) ** 2 @ share)

    def diffuse(self, gain: float = 1.0) -> float:
        """Compute E c² for prior neurons whose variance along the target is multiplied by D."""
        if self.overlap.target == "hermite":
            degree = self.overlap.degree
            moments = mode_moments(self.activation, (degree,), self.dimension, gain)
            return float(moments[0, 0])
        # c = v(w_+) - v(w_-), with the components along (1, 1) and (1, -1); w_+ is amplified
        z, chance = fluctuations(gain / self.dimension, 48)
        r, share = perpendicular_law(self.dimension - 1)
        first, second = (
            self.overlap.value(np.sqrt(size / self.dimension) * z[:, None], r[None, :])
            for size in (gain, 1.0)
        )
        mean = chance @ first * (chance @ second)
        return float(share @ (chance @ first**2 + chance @ second**2 - 2 * mean))


def optimum(first: FirstLayer, width: float, alignment: float, kind: Kind) -> Optimum:
    """Minimise the energy of a pattern; ``alignment`` is alpha² chi / sigma_a², times the patches."""
    # sum of the layer's cost and alignment / (2 <y, K, y>)   (scale 3)
    if kind == "GP":
        return Optimum(alignment / (2 * first.diffuse()), LayerNumbers("GP"), 0.0)
    if kind == "GFL":
        return _amplified(first, width, alignment)
    return _specialised(first, width, alignment, kind)


def _specialised(first: FirstLayer, width: float, alignment: float, kind: Kind) -> Optimum:
    """Minimise the energy over the number M of neurons, their strength u and other weights r."""
    lazy = first.diffuse()

    def parts(place: np.ndarray) -> tuple[float, float, float]:
        u, r = np.exp(place)
        each, gain = first.cost(u, r), (first.squared(u, r) - lazy) / width
        neurons = max(width, 1.0)
        if kind != "Mag":
            neurons = best_neurons(each, lazy, gain, alignment, width)
        return neurons, neurons * each, alignment / (2 * (lazy + neurons * gain))

    top = log(LARGEST_STRENGTH) if first.bounded else log(1e4) + log(alignment * width) / 4
    bounds = [(-log(first.dimension) / 2 - 6, max(top, 1.0)), (-6.0, 2.0)]
    grid = [[u, r] for u in np.linspace(*bounds[0], 25) for r in (-1.5, -0.4, 0.0)]
    grid.sort(key=lambda start: sum(parts(np.array(start))[1:]))
    energy, place = least(lambda p: sum(parts(p)[1:]), bounds, grid[:3])
    neurons, layer, _ = (float(part) for part in parts(place))
    strength, rest = (float(value) for value in np.exp(place))
    return Optimum(energy, LayerNumbers(kind, 1, neurons, strength, rest), layer)


def _amplified(first: FirstLayer, width: float, alignment: float) -> Optimum:
    """Minimise the energy over the gain by which all neurons amplify one direction."""

    def parts(place: np.ndarray) -> tuple[float, float]:
        gain = float(np.exp(place[0]))
        # N (D - 1 - ln D) / 2   (scale 15)
        return width * (gain - 1 - log(gain)) / 2, alignment / (2 * first.diffuse(gain))

    highest = log(first.dimension) + 4
    grid = np.linspace(0.0, highest, 30)
    start = min(grid, key=lambda g: sum(parts(np.array([g]))))
    energy, place = least(lambda p: sum(parts(p)), [(0.0, highest)], [[start]])
    return Optimum(energy, LayerNumbers("GFL", 1, gain=float(np.exp(place[0]))), parts(place)[0])
