"""Energies, with prefactors, of networks with two hidden layers and a bounded odd activation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import log, sqrt

import numpy as np

from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.two_layer_posterior.overlap import (
    hermite_modes,
    kernel_diagonal,
    linear_gain,
    profile,
)
from solvable.scale.prefactors.lazy_kernels import lazy_alignment, mode_moments
from solvable.scale.prefactors.pattern_sums import (
    LARGEST_STRENGTH,
    FirstLayer,
    Kind,
    LayerNumbers,
    Optimum,
    Sizes,
    best_neurons,
    gain_cost,
    least,
    rest_range,
)

Pattern = tuple[Kind, int | None]


@lru_cache(maxsize=1)
def _line() -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes and weights for the input's coordinate along the target, for odd functions."""
    x, chance = gaussian_quadrature(10, (0.0,))
    return x[x > 0], 2 * chance[x > 0]


@lru_cache(maxsize=4)
def _strengths(wide: bool, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Build the quadrature for strengths that fluctuate about a mean or about 0."""
    z, chance = gaussian_quadrature(10, (0.0,)) if wide else gaussian_quadrature(10)
    # the response is odd, so that its square is even
    kept = (np.abs(z) < 8) & ((z > 0) | (not centred))
    return z[kept], chance[kept] * (2 if centred else 1)


@lru_cache(maxsize=16)
def _mode(degree: int) -> np.ndarray:
    """Compute He_m / sqrt(m!) at the nodes, times the weights."""
    x, chance = _line()
    return np.asarray(chance * hermite_polynomials(x, degree)[degree])


def smoothed(activation: str, means: np.ndarray, variance: float) -> np.ndarray:
    """Compute E sigma(h + sqrt(v) g) at means h."""
    if activation == "erf":
        from scipy.special import erf

        return np.asarray(erf(means / sqrt(1 + 2 * variance)))
    if means.size > 600:
        return _smoothed_table(activation, variance)(means)
    return _smoothed_directly(activation, means, variance)


def _smoothed_directly(activation: str, means: np.ndarray, variance: float) -> np.ndarray:
    g, chance = gaussian_quadrature(24)
    return np.asarray(profile(activation).link(means[..., None] + sqrt(variance) * g) @ chance)


@lru_cache(maxsize=16)
def _smoothed_table(activation: str, variance: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a table of E sigma(h + sqrt(v) g) for many means h at one variance v."""
    from scipy.interpolate import CubicSpline

    # the activation is saturated beyond the table
    place = np.linspace(0, np.arcsinh(60.0), 400)
    spline = CubicSpline(place, _smoothed_directly(activation, np.sinh(place), variance))
    top = float(place[-1])

    def table(means: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(means) * spline(np.minimum(np.arcsinh(np.abs(means)), top)))

    return table


@dataclass(frozen=True)
class Features:
    """Features of the target's direction in the kernel of the first layer."""

    # K_1 e_j at the nodes and <He_j, K_1, He_j>, for the features j of the second layer
    shapes: dict[int, np.ndarray]
    kernel: dict[int, float]
    # <y, K_2, y> if the second layer stays as in the prior
    lazy: float
    cost: float
    numbers: LayerNumbers

    def shape(self, feature: int) -> np.ndarray:
        """Return the cheapest mean that has unit overlap with a feature: K_1 e_j / <e_j, K_1, e_j>."""
        return self.shapes[feature] / self.kernel[feature]


@dataclass(frozen=True)
class SecondLayer:
    """Network with two hidden layers, and the energies of its patterns."""

    activations: tuple[str, str]
    degree: int
    sizes: Sizes
    first: FirstLayer

    @property
    def features(self) -> tuple[int, ...]:
        """Degrees of the features that the first layer makes."""
        return tuple(range(1, self.degree + 1, 2))

    @cached_property
    def variance(self) -> float:
        """Variance q_1 = K_1(x, x) of a pre-activation in the second layer."""
        return kernel_diagonal(self.activations[0])

    @cached_property
    def linear(self) -> float:
        """Linear contribution to the variance q_1, from weights that a neuron can shrink."""
        return linear_gain(self.activations[0])

    def response(self, means: np.ndarray, rest: float = 1.0) -> np.ndarray:
        """Compute the He_m coefficient of sigma at means h(x_1), with the linear noise scaled by r."""
        noise = self.variance - self.linear * (1 - rest)
        return np.asarray(smoothed(self.activations[1], means, noise) @ _mode(self.degree))

    def around(self, mean: float, shape: np.ndarray, variance: float, rest: float = 1.0) -> float:
        """Compute the mean squared coefficient for normal strengths along a shape."""
        z, chance = _strengths(float(variance * (_line()[1] @ shape**2)) > 0.1, mean == 0)
        strengths = mean + sqrt(variance) * z
        return float(chance @ self.response(strengths[:, None] * shape, rest) ** 2)

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        """Hermite degrees in which the kernel of the first layer is expanded."""
        return tuple(range(1, self.degree + 5, 2))

    def moments(self, gain: float = 1.0) -> np.ndarray:
        """Compute each degree of the first layer's kernel, with one direction amplified by a gain."""
        return mode_moments(self.activations[0], self.degrees, self.first.dimension, gain)

    @cached_property
    def modes(self) -> np.ndarray:
        """Values of the Hermite polynomials of these degrees at the nodes."""
        return np.asarray(hermite_polynomials(_line()[0], self.degrees[-1])[list(self.degrees)])

    def prior(self, gain: float = 1.0) -> Features:
        """Compute the features of a first layer that is as in the prior or amplified by a gain."""
        left = self.moments(gain)
        last = self.degrees.index(self.degree)
        # all products of degree m gain the same factor   (scale 6)
        grown = float(left[last, last] / self.moments()[last, last])
        # Overlaps of one random function with He_1 and He_3 are correlated, because |x|² fluctuates;
        # an eigenfunction is the remainder after projection on lower degrees.
        shapes, kernel = {}, {}
        for at, j in enumerate(self.features):
            shapes[j], kernel[j] = left[at] @ self.modes, float(left[at, at])
            left = left - np.outer(left[at], left[at]) / kernel[j]
        return Features(
            shapes,
            kernel,
            lazy_alignment(self.activations, self.degree, self.first.dimension) * grown,
            gain_cost(self.sizes.widths[0], gain),
            LayerNumbers("GFL", 1, gain=gain) if gain > 1 else LayerNumbers("GP"),
        )

    def spiked(self, kind: Kind, neurons: float, u: float, r: float, prior: Features) -> Features:
        """Compute the features of a first layer with M specialised neurons at (u, r)."""
        share = neurons / self.sizes.widths[0]
        spike = smoothed(self.activations[0], u * _line()[0], r)
        sizes = hermite_modes(self.activations[0], self.features, u, r)
        # K_1 = K_rest + (M / N_1) s s^T   (scale 5); the spike s mixes several He_j
        shapes, kernel = {}, {}
        rest = self.moments()
        for at, (j, size) in enumerate(zip(self.features, sizes, strict=True)):
            shapes[j] = rest[at] @ self.modes + share * float(size) * spike
            kernel[j] = float(rest[at, at]) + share * float(size) ** 2
        # the lazy second layer passes the spike on: kappa_1² c² M / N_1 for few neurons
        lazy = prior.lazy + self.around(0.0, spike, share)
        cost = neurons * self.first.cost(u, r)
        return Features(shapes, kernel, lazy, cost, LayerNumbers(kind, 1, neurons, u, r))

    def second(
        self, seen: Features, pattern: Pattern, place: np.ndarray
    ) -> tuple[float, float, LayerNumbers]:
        """Compute the second layer's cost, <y, K_2, y> and values at log mu and log r, or at log D."""
        kind, feature = pattern
        width = self.sizes.widths[1]
        if feature is None:
            return 0.0, seen.lazy, LayerNumbers("GP")
        shape, size = seen.shape(feature), seen.kernel[feature]
        along = self.around(0.0, shape, size)
        rest = max(seen.lazy - along, 0.0)
        spread = size
        if self.sizes.one_route and kind != "GFL":
            along = rest = spread = 0.0
        if kind == "GFL":
            gain = float(np.exp(place[0]))
            grown = self.around(0.0, shape, gain * size)
            return gain_cost(width, gain), rest + grown, LayerNumbers("GFL", feature, gain=gain)
        d = self.first.dimension
        strength, other = float(np.exp(place[0])), float(np.exp(place[1])) if kind == "Sp" else 1.0
        # Delta = mu² / <Phi, K_1, Phi> + d (r - 1 - ln r)   (scale 16)
        each = (strength**2 / size + d * (other - 1 - log(other))) / 2
        raised = (self.around(strength, shape, spread, other) - along) / width
        neurons = (
            best_neurons(each, rest + along, raised, self.sizes.alignment, width)
            if kind == "Sp"
            else max(width, 1.0)
        )
        numbers = LayerNumbers(kind, feature, neurons, strength, other)
        return neurons * each, rest + along + neurons * raised, numbers

    def minimum(self, patterns: tuple[Pattern, Pattern]) -> Optimum:
        """Minimise the energy of a pattern of both layers."""
        one, two = patterns
        d, (first_width, _) = self.first.dimension, self.sizes.widths
        prior = self.prior()
        frozen = self.sizes.frozen
        bounds, starts = _first_box(one[0], d, first_width, frozen)
        held = len(bounds)
        more, continued = _second_box(two[0], d, frozen)

        def seen(place: np.ndarray) -> Features:
            if one[0] == "GP":
                return prior
            if one[0] == "GFL":
                return self.prior(float(np.exp(place[0])))
            u, r = (float(np.exp(part)) for part in place[:2])
            neurons = float(np.exp(place[2])) if one[0] == "Sp" else max(first_width, 1.0)
            return self.spiked(one[0], neurons, u, r, prior)

        def sums(place: np.ndarray) -> tuple[Features, float, float, LayerNumbers]:
            features = seen(place)
            cost, alignment, numbers = self.second(features, two, place[held:])
            return features, cost, self.sizes.alignment / (2 * alignment), numbers

        def energy(place: np.ndarray) -> float:
            features, cost, alignment, _ = sums(place)
            return features.cost + cost + alignment

        bounds, starts = bounds + more, [a + b for a, b in product(starts, continued)]
        if not bounds:
            place = np.empty(0)
        else:
            starts.sort(key=lambda start: energy(np.array(start)))
            _, place = least(energy, bounds, _apart(starts))
        features, cost, alignment, numbers = sums(place)
        parts = (("layer 1", features.cost), ("layer 2", cost), ("alignment", alignment))
        whole = features.cost + cost + alignment
        return Optimum(whole, (features.numbers, numbers), tuple(part for part in parts if part[1]))


Box = tuple[list[tuple[float, float]], list[list[float]]]


def _first_box(kind: Kind, d: float, width: float, frozen: bool) -> Box:
    """Return bounds and starting points for the first layer's log u, log r and log M, or log D."""
    low, high = -log(d) / 2 - 4, log(LARGEST_STRENGTH)
    if kind == "GP":
        return [], [[]]
    if kind == "GFL":
        top = log(d) + 4
        return [(0.0, top)], [[top * share] for share in (0.0, 0.05, 0.2, 0.4, 0.6)]
    if kind == "Mag":
        return [(low, high), rest_range(frozen)], [[u, 0.0] for u in np.linspace(low, 0.5, 6)]
    most = max(log(width), 0.0)
    starts = [
        [u, r, share * most]
        for u, r in ((0.4, -1.3), (-1.0, -0.1))
        for share in (0.0, 0.15, 0.3, 0.5, 0.8)
    ]
    # and a starting point with a small weight
    starts.append([low + 3, 0.0, 0.0])
    return [(low, high), rest_range(frozen), (0.0, most)], starts


def _second_box(kind: Kind, d: float, frozen: bool) -> Box:
    """Return bounds and starting points for the second layer's log mu and log r, or log D."""
    low, high = -1.5 * log(d) - 4, log(LARGEST_STRENGTH)
    if kind == "GP":
        return [], [[]]
    if kind == "GFL":
        top = 3 * log(d) + 4
        return [(0.0, top)], [[top * share] for share in (0.0, 0.05, 0.15, 0.3, 0.5)]
    strengths = np.linspace(low, 0.5, 9)
    if kind == "Mag":
        return [(low, high)], [[mu] for mu in strengths]
    return [(low, high), rest_range(frozen)], [[mu, r] for mu in strengths[2:] for r in (-0.7, 0.0)]


def _apart(starts: list[list[float]], most: int = 3) -> list[list[float]]:
    """Keep the best starting points; drop a point close to a better point."""
    kept: list[list[float]] = []
    for start in starts:
        if all(np.abs(np.subtract(start, other)).max() > 1.5 for other in kept):
            kept.append(start)
        if len(kept) == most:
            break
    return kept


@lru_cache(maxsize=256)
def deep_optimum(
    activations: tuple[str, str],
    degree: int,
    sizes: Sizes,
    patterns: tuple[Pattern, Pattern],
) -> Optimum:
    """Minimise the energy of a pattern of a network with two hidden layers."""
    first = FirstLayer.of(activations[0], degree, sizes.dimension, "hermite")
    return SecondLayer(activations, degree, sizes, first).minimum(patterns)
