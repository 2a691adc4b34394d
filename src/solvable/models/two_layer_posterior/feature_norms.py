"""Norms of powers of an amplified feature in the kernels of random layers, on samples.

The norm of a function phi on n samples is phi^T K^-1 phi with the n x n kernel matrix K: the squared norm
of the smoothest function that passes through the samples. With more samples it grows to <phi, K^-1, phi>,
the cost of a mean along phi in the next layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt

import numpy as np

from solvable.frame.points import listed
from solvable.hermite import gaussian_quadrature
from solvable.models.two_layer_posterior.feature_kernels import (
    draw_layers,
    layer_kernel,
    powers_of,
    slope_kernel,
)
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.sectors import harmonic_count
from solvable.models.two_layer_posterior.target import HermiteTarget


def has_norms(parameters: CurseParameters) -> bool:
    """Return True if kernel matrices of these layers have an inverse and a predicted one."""
    return not parameters.spike and 2 * parameters.samples <= parameters.last_width


def preactivation_powers(
    parameters: CurseParameters, z: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """Powers of the direction's pre-activation, from x along the direction and |x_perp|²."""
    # erf: (h / sqrt(1 + 2 v))^p; relu: sqrt(v) (h / sqrt(v))^p, with h = sqrt(D/d) z and v the variance
    # of a pre-activation at the input   (two-layer-posterior 22)
    d, gain = parameters.dimension, parameters.gain
    variance = (gain * z**2 + rest) / d
    erf = parameters.activation == "erf"
    scaled = sqrt(gain / d) * z / np.sqrt(1 + 2 * variance if erf else variance)
    size = 1.0 if erf else np.sqrt(variance)
    return np.array([size * scaled**power for power in powers_of(parameters)])


def measure_norms(
    parameters: CurseParameters, target: HermiteTarget, W: np.ndarray, rng: np.random.Generator
) -> list[float | None] | None:
    """Draw samples, and measure the norms of features of unit variance in a network's kernel."""
    if not has_norms(parameters):
        return None
    X = rng.standard_normal((parameters.samples, parameters.dimension))
    hidden = draw_layers(parameters, X, W, rng)
    z = X @ target.direction
    features = preactivation_powers(parameters, z, np.sum(X * X, axis=1) - z**2)
    features /= np.sqrt(_Grid.of(parameters).power)[:, None]
    kernel = hidden @ hidden.T / hidden.shape[1]
    return listed(np.sum(features.T * np.linalg.solve(kernel, features.T), axis=0))


def norm_limits(parameters: CurseParameters) -> list[float | None] | None:
    """Norms on infinitely many samples in the kernel of one wide layer."""
    if not has_norms(parameters) or parameters.second_width:
        return None
    # K = sum_k c_k (u.u')^k, and polynomials of different degrees in u are orthogonal: the norm of u_1^p
    # is 1 / c_p   (two-layer-posterior 22)
    series = (
        {1: 4 / pi, 3: 8 / (3 * pi)}
        if parameters.activation == "erf"
        else {1: 1 / 4, 2: 1 / (4 * pi)}
    )
    power = _Grid.of(parameters).power
    return listed(1 / (power * [series[p] for p in powers_of(parameters)]))


@dataclass(frozen=True)
class _Grid:
    """Quadrature over x along the direction and |x_perp|², and the features on it."""

    z: np.ndarray
    rest: np.ndarray
    chance: np.ndarray
    power: np.ndarray  # mean square of each feature

    @classmethod
    def of(cls, parameters: CurseParameters) -> _Grid:
        """Build the grid; |x_perp|² / 2 has a Gamma law of shape (d - 1) / 2."""
        from scipy.special import roots_genlaguerre

        z, along = gaussian_quadrature(40)
        half, radial = roots_genlaguerre(5, (parameters.dimension - 3) / 2)
        z, rest = (part.ravel() for part in np.meshgrid(z, 2 * half, indexing="ij"))
        chance = np.outer(along, radial / radial.sum()).ravel()
        power = preactivation_powers(parameters, z, rest) ** 2 @ chance
        return cls(z, rest, chance, power)


@dataclass(frozen=True)
class _Operator:
    """Kernel as an operator: a matrix on the grid for each angular momentum, and its trace."""

    counts: np.ndarray  # number of harmonics of each momentum
    matrices: np.ndarray  # shape (momenta, grid, grid), in functions of unit norm
    trace: float

    @property
    def left(self) -> float:
        """Trace outside these momenta."""
        inside = self.counts @ np.trace(self.matrices, axis1=1, axis2=2)
        return max(self.trace - float(inside), 0.0)

    def less(self, share: float, other: _Operator) -> _Operator:
        """Subtract a multiple of another operator."""
        matrices = self.matrices - share * other.matrices
        return _Operator(self.counts, matrices, self.trace - share * other.trace)


def operators(parameters: CurseParameters, grid: _Grid) -> tuple[_Operator, _Operator | None]:
    """Kernel of the wide last layer, and its response to the first layer's kernel, if it is another."""
    from scipy.special import roots_jacobi

    d, activation = parameters.dimension, parameters.activation
    tau, angular = roots_jacobi(12, (d - 4) / 2, (d - 4) / 2)
    radius = np.sqrt(grid.rest)
    variance = (parameters.gain * grid.z**2 + grid.rest) / d
    inner = parameters.gain * np.outer(grid.z, grid.z)[:, :, None]
    inner = (inner + np.outer(radius, radius)[:, :, None] * tau) / d

    # normalised Gegenbauer polynomials of the angle between two x_perp
    momenta, n = 6, d - 1
    waves = [np.ones_like(tau), tau]
    for ell in range(1, momenta):
        waves.append(((2 * ell + n - 2) * tau * waves[ell] - ell * waves[ell - 1]) / (ell + n - 2))
    counts = np.array([harmonic_count(n, ell) for ell in range(momenta + 1)], dtype=float)
    rows = np.array(waves) * angular / angular.sum()
    roots = np.sqrt(grid.chance)

    def operator(kernel: np.ndarray, diagonal: np.ndarray) -> _Operator:
        matrices = np.moveaxis(kernel @ rows.T, 2, 0) * np.outer(roots, roots)
        return _Operator(counts, matrices, float(grid.chance @ diagonal))

    at, other = variance[:, None, None], variance[None, :, None]
    kernel = layer_kernel(activation, inner, at, other)
    diagonal = layer_kernel(activation, variance, variance, variance)
    if not parameters.second_width:
        return operator(kernel, diagonal), None
    last_at, last_other = diagonal[:, None, None], diagonal[None, :, None]
    last = layer_kernel(activation, kernel, last_at, last_other)
    # samples have nearly orthogonal x_perp, where the slope of the last layer is taken
    along = parameters.gain * np.outer(grid.z, grid.z)[:, :, None] / d
    apart = layer_kernel(activation, along, at, other)
    slope = slope_kernel(activation, apart, last_at, last_other)
    own = slope[np.arange(grid.z.size), np.arange(grid.z.size), 0]
    return (
        operator(last, layer_kernel(activation, diagonal, diagonal, diagonal)),
        operator(slope * kernel, own * diagonal),
    )


@lru_cache(maxsize=64)
def predict_norms(parameters: CurseParameters) -> list[float | None] | None:
    """Predict the norms on samples, in the kernel of layers of finite width."""
    # <phi, (K + gamma)^-1, phi> / (1 - n/N), with as many fitted modes Tr K (K + gamma)^-1 as samples
    # (two-layer-posterior 23). A finite first layer lowers K by its response times e / (1 + e), with
    # e = Tr[response (K + gamma)^-1] / N1.
    if not has_norms(parameters):
        return None
    grid = _Grid.of(parameters)
    wide, response = operators(parameters, grid)
    kernel, excess = wide, 0.0
    while True:  # the excess grows, and each change is a fraction of the last one
        values, vectors = np.linalg.eigh(kernel.matrices)
        values = np.maximum(values, 0.0)
        gamma = _shift(kernel, values, parameters.samples)
        if response is None:
            break
        within = np.einsum("lij,lij->lj", vectors, response.matrices @ vectors) / (values + gamma)
        new = float(kernel.counts @ within.sum(axis=1)) + response.left / gamma
        new /= parameters.width
        if abs(new - excess) < 1e-4:
            break
        if new > 0.7:  # the response is no small part of the kernel: far beyond D = d with relu
            return None
        excess = new
        kernel = wide.less(excess / (1 + excess), response)
    features = preactivation_powers(parameters, grid.z, grid.rest)
    features *= np.sqrt(grid.chance / grid.power[:, None])
    parts = (features @ vectors[0]) ** 2 / (values[0] + gamma)
    unused = 1 - parameters.samples / parameters.last_width
    return listed(parts.sum(axis=1) / unused)


def _shift(kernel: _Operator, values: np.ndarray, samples: int) -> float:
    """Solve Tr K (K + gamma)^-1 = n for gamma, by bisection of its logarithm."""
    low, high = 1e-12 * kernel.trace, kernel.trace
    for _ in range(60):
        gamma = sqrt(low * high)
        fitted = kernel.counts @ (values / (values + gamma)).sum(axis=1) + kernel.left / gamma
        low, high = (gamma, high) if fitted > samples else (low, gamma)
    return sqrt(low * high)
