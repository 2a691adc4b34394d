"""Alignment of lazy kernels with a Hermite polynomial along one direction, at finite dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, lgamma, log

import numpy as np

from solvable.hermite import gaussian_quadrature
from solvable.models.two_layer_posterior.overlap import hermite_modes, profile

LARGEST_DIMENSION = 3_000.0
"""Largest dimension of the sum over harmonics; beyond it cancellation loses too many digits."""


@lru_cache(maxsize=64)
def mode_moments(
    activation: str, degrees: tuple[int, ...], dimension: float, gain: float = 1.0
) -> np.ndarray:
    """Compute moments E[c_i c_j] of the overlaps c_j of prior neurons, shape (degrees, degrees)."""
    # A neuron's component along the target has the variance gain / d.
    z, chance = fluctuations(gain / dimension, 32)
    # degrees have one parity, so that products are even
    z, chance = z[z > 0], 2 * chance[z > 0]
    r, share = perpendicular_law(dimension)
    u = np.sqrt(gain / dimension) * z
    modes = hermite_modes(activation, degrees, u[:, None], r[None, :]).reshape(len(degrees), -1)
    return np.asarray((modes * np.outer(chance, share).ravel()) @ modes.T)


def fluctuations(variance: float, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Build a quadrature for a normal strength of given variance; it has panels for saturated neurons."""
    if variance <= 0.1:
        return gaussian_quadrature(n_nodes)
    z, chance = gaussian_quadrature(20, (0.0,))
    near = np.abs(z) < 8
    return z[near], chance[near]


def perpendicular_law(dimension: float, points: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Build a quadrature of r = chi²_(d-1) / d; the single value (d - 1) / d at large d."""
    # the density of log r is exp((d - 1) log r / 2 - d r / 2); its trapezoid rule converges geometrically
    centre = log((dimension - 1) / dimension)
    width = (2 / dimension) ** 0.5
    low = -max(9 * width, 80 / (dimension - 1)) if dimension < 200 else -9 * width
    place = centre + np.linspace(
        low, 9 * width, points * (1 if dimension >= 200 else 2 if dimension >= 20 else 4)
    )
    weights = (dimension - 1) / 2 * place - dimension / 2 * np.exp(place)
    weights = np.exp(weights - weights.max())
    return np.exp(place), weights / weights.sum()


@lru_cache(maxsize=64)
def lazy_alignment(activations: tuple[str, ...], degree: int, dimension: float) -> float:
    r"""Compute the alignment :math:`\langle y, K, y\rangle` of the kernel of lazy layers with He_m."""
    if dimension > LARGEST_DIMENSION:
        # d^m <y, K, y> = limit + slope / d
        near, far = LARGEST_DIMENSION, LARGEST_DIMENSION / 2
        at_near, at_far = (lazy_alignment(activations, degree, d) * d**degree for d in (near, far))
        limit = 2 * at_near - at_far
        return float((limit + (at_near - limit) * near / dimension) / dimension**degree)
    # With |x|² = rho d, He_m(sqrt(rho d) xi_1) = sum_k a_k(rho) Y_k(xi) over spherical harmonics. K is
    # diagonal in them: <y, K, y> = E_(rho, rho') sum_k a_k(rho) a_k(rho') lambda_k(rho, rho')
    # (scale 16).
    rho, chance = _radial_law(dimension)
    series = _kernel_series(activations, rho, degree + 24)
    total = np.zeros((rho.size, rho.size))
    for k in range(degree % 2, degree + 1, 2):
        share = _hermite_share(degree, k, rho * dimension, dimension)
        eigenvalue = sum(series[j] * _moment(j, k, dimension) for j in range(k, series.shape[0], 2))
        total += share[:, None] * share[None, :] * eigenvalue
    return float(chance @ total @ chance)


def _radial_law(dimension: float, points: int = 24) -> tuple[np.ndarray, np.ndarray]:
    r, share = perpendicular_law(dimension + 1, points)
    return r * (dimension + 1) / dimension, share


def _kernel_series(activations: Sequence[str], rho: np.ndarray, highest: int) -> np.ndarray:
    """Compute the power series of a kernel in the cosine of two inputs, (highest + 1, rho, rho)."""
    series = np.zeros((highest + 1, rho.size, rho.size))
    series[1] = 1.0
    variance = rho
    for activation in activations:
        shape = profile(activation)
        scale = np.sqrt(variance)
        power = np.zeros_like(series)
        power[0] = 1.0
        layer = np.zeros_like(series)
        # Mehler: K(corr; q, q') = sum_p a_p(q) a_p(q') corr^p
        for p in range(highest + 1):
            coefficient = shape.coefficient(p, scale)
            layer += coefficient[:, None] * coefficient[None, :] * power
            power = _product(power, series)
        variance = shape.power(scale)
        series = layer / np.sqrt(variance[:, None] * variance[None, :])
    return series * np.sqrt(variance[:, None] * variance[None, :])


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiply two power series that are truncated at the same degree."""
    found = np.zeros_like(left)
    for j in range(right.shape[0]):
        if right[j].any():
            found[j:] += right[j] * left[: left.shape[0] - j]
    return found


def _moment(power: int, k: int, dimension: float) -> float:
    r"""Compute E[tau^j P_k(tau)] for the cosine of two random directions, with P_k(1) = 1."""
    if power < k or (power - k) % 2:
        return 0.0
    half = (dimension - 1) / 2
    # Rodrigues: j! / (j - k)! / (2^k (half)_k) E[tau^(j - k) (1 - tau²)^k]
    chosen = (
        lgamma(power + 1) - lgamma(power - k + 1) - k * log(2) - lgamma(half + k) + lgamma(half)
    )
    p = (power - k) / 2
    beta = lgamma(p + 0.5) + lgamma(k + half) - lgamma(p + 0.5 + k + half)
    whole = lgamma(0.5) + lgamma(half) - lgamma(0.5 + half)
    return exp(chosen + beta - whole)


def _hermite_share(degree: int, k: int, square: np.ndarray, dimension: float) -> np.ndarray:
    """Compute the component of He_m(|x| xi_1) / sqrt(m!) along the k-th normalised harmonic of xi."""
    # number of harmonics of degree k: (2k + d - 2) / k * binomial(k + d - 3, k - 1)
    count = 1.0
    if k:
        count = (2 * k + dimension - 2) / k
        count *= exp(lgamma(k + dimension - 2) - lgamma(k) - lgamma(dimension - 1))
    found = np.zeros_like(square)
    for i in range(degree % 2, degree + 1, 2):
        # He_m(t) = sum_i m! (-1)^((m-i)/2) / (2^((m-i)/2) ((m-i)/2)! i!) t^i
        pairs = (degree - i) // 2
        size = lgamma(degree + 1) / 2 - pairs * log(2) - lgamma(pairs + 1) - lgamma(i + 1)
        found += (-1) ** pairs * exp(size) * square ** (i / 2) * _moment(i, k, dimension)
    return np.sqrt(count) * found
