"""Energies of patterns, with prefactors, for networks with one hidden layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
class Sizes:
    """Numerical sizes of a network; with patches, the dimension is the number of inputs of a patch."""

    dimension: float
    widths: tuple[float, ...]
    # factor of the alignment term: alpha² chi / sigma_a², times the number of patches
    alignment: float
    # True: irrelevant weights of specialised neurons keep their prior norm
    frozen: bool = False
    # True: the alignment from neurons that stay as in the prior is left out
    one_route: bool = False


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
    layers: tuple[LayerNumbers, ...]
    parts: tuple[tuple[str, float], ...]


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


def gain_cost(width: float, gain: float) -> float:
    """Compute the cost N (D - 1 - ln D) / 2 of a gain D in all neurons (scale 15)."""
    return width * (gain - 1 - log(gain)) / 2


def two_layer(first: FirstLayer, sizes: Sizes, kind: Kind) -> Optimum:
    """Minimise the energy of a pattern of a network with one hidden layer (scale 3)."""
    (width,) = sizes.widths
    if kind == "GP":
        energy = sizes.alignment / (2 * first.diffuse())
        return Optimum(energy, (LayerNumbers("GP"),), (("alignment", energy),))
    if kind == "GFL":
        return amplified(width, sizes.alignment, first.diffuse, first.dimension)
    lazy = 0.0 if sizes.one_route else first.diffuse()
    top = log(LARGEST_STRENGTH) if first.bounded else log(1e4) + log(sizes.alignment * width) / 4
    return specialised(
        kind,
        width,
        sizes.alignment,
        lazy,
        lambda u, r: (first.cost(u, r), first.squared(u, r) / width - lazy / width),
        [(-log(first.dimension) / 2 - 6, max(top, 1.0)), rest_range(sizes.frozen)],
        (-1.5, -0.4, 0.0),
    )


def specialised(
    kind: Kind,
    width: float,
    alignment: float,
    lazy: float,
    neuron: Callable[[float, float], tuple[float, float]],
    bounds: list[tuple[float, float]],
    rests: Sequence[float],
) -> Optimum:
    """Minimise the energy of M neurons at (u, r); ``neuron`` gives the cost and gain of each neuron."""

    def parts(place: np.ndarray) -> tuple[float, float, float]:
        each, gain = neuron(*np.exp(place))
        neurons = max(width, 1.0)
        if kind != "Mag":
            neurons = best_neurons(each, lazy, gain, alignment, width)
        return neurons, neurons * each, alignment / (2 * (lazy + neurons * gain))

    grid = [[u, r] for u in np.linspace(*bounds[0], 25) for r in rests]
    grid.sort(key=lambda start: sum(parts(np.array(start))[1:]))
    energy, place = least(lambda p: sum(parts(p)[1:]), bounds, grid[: len(rests)])
    neurons, layer, left = (float(part) for part in parts(place))
    numbers = LayerNumbers(kind, 1, neurons, float(np.exp(place[0])), float(np.exp(place[1])))
    return Optimum(energy, (numbers,), (("layer 1", layer), ("alignment", left)))


def rest_range(frozen: bool) -> tuple[float, float]:
    """Return bounds for log r, where r is the squared norm of a specialised neuron's other weights."""
    return (0.0, 0.0) if frozen else (-6.0, 2.0)


def amplified(
    width: float, alignment: float, diffuse: Callable[[float], float], largest: float
) -> Optimum:
    """Minimise the energy over the gain by which all neurons amplify one direction."""

    def parts(place: np.ndarray) -> tuple[float, float]:
        gain = float(np.exp(place[0]))
        return gain_cost(width, gain), alignment / (2 * diffuse(gain))

    highest = log(largest) + 4
    grid = np.linspace(0.0, highest, 30)
    start = min(grid, key=lambda g: sum(parts(np.array([g]))))
    energy, place = least(lambda p: sum(parts(p)), [(0.0, highest)], [[start]])
    layer, left = parts(place)
    numbers = LayerNumbers("GFL", 1, gain=float(np.exp(place[0])))
    return Optimum(energy, (numbers,), (("layer 1", layer), ("alignment", left)))
