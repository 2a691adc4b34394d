"""Strength of features in the kernels of random layers with an amplified direction or a spike.

The first layer has weights w ~ N(0, 1/d) with the variance D/d along the direction, and M of its neurons
are replaced by w = mu w_*. A second layer, if any, is lazy. The strength of a feature phi is
<phi, K, phi>; its inverse is the cost of alignment with phi.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from solvable.frame.points import listed
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.target import HermiteTarget
from solvable.operators.activations import evaluate

STRENGTH = 1.5
"""Overlap mu of the neurons of a spike with the direction."""

DRAWS = 32
"""Number of draws of the inputs orthogonal to the direction, in each of two halves."""


def line() -> tuple[np.ndarray, np.ndarray]:
    """Quadrature over the input's coordinate along the direction, fine enough for saturated neurons."""
    z, chance = gaussian_quadrature(64)
    kept = np.abs(z) < 8
    return z[kept], chance[kept]


def powers_of(parameters: CurseParameters) -> tuple[int, int]:
    """Degrees of the features: the first two degrees above 0 in the kernel of the activation."""
    return (1, 3) if parameters.activation == "erf" else (1, 2)


def feature_names(parameters: CurseParameters) -> list[str]:
    """Names of the features."""
    names = [f"degree {power}" for power in powers_of(parameters)]
    return [*names, "spike"] if parameters.spike else names


def features_at(parameters: CurseParameters, z: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Values of two Hermite polynomials and the spike's function sigma(mu z), each of unit variance."""
    spike = evaluate(parameters.activation, STRENGTH * z)
    powers = list(powers_of(parameters))
    rows = [*hermite_polynomials(z, 3)[powers], spike / np.sqrt(chance @ spike**2)]
    return np.array(rows[: len(feature_names(parameters))])


def draw_layers(
    parameters: CurseParameters, X: np.ndarray, W: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Values of the last hidden layer at inputs, with fresh weights of a second layer."""
    hidden = evaluate(parameters.activation, X @ W.T.astype(X.dtype))
    if not parameters.second_width:
        return hidden
    shape = (len(W), parameters.second_width)
    V = rng.standard_normal(shape, dtype=np.float32) / np.float32(sqrt(len(W)))
    return evaluate(parameters.activation, hidden @ V.astype(X.dtype))


def draw_weights(
    parameters: CurseParameters, target: HermiteTarget, rng: np.random.Generator
) -> np.ndarray:
    """Draw a first layer with an amplified direction and a spike."""
    W = rng.standard_normal((parameters.width, parameters.dimension)) / sqrt(parameters.dimension)
    W += (sqrt(parameters.gain) - 1) * np.outer(W @ target.direction, target.direction)
    W[: parameters.spike] = STRENGTH * target.direction
    return np.asarray(W)


def measure_strengths(
    parameters: CurseParameters, target: HermiteTarget, W: np.ndarray, rng: np.random.Generator
) -> list[float | None]:
    """Measure the strengths of features in the kernel of a network with a given first layer."""
    # Quadrature along the direction and draws across it, in two independent halves: the product of their
    # overlaps has no bias.
    z, chance = line()
    across = rng.standard_normal((2 * DRAWS, parameters.dimension))
    across -= np.outer(across @ target.direction, target.direction)
    X = across[:, None, :] + z[:, None] * target.direction
    X = X.reshape(-1, parameters.dimension).astype(np.float32)
    hidden = draw_layers(parameters, X, W, rng)
    by_place = hidden.reshape(2, DRAWS, z.size, -1).mean(axis=1, dtype=float)
    overlaps = (features_at(parameters, z, chance) * chance) @ by_place
    # <phi, K, phi> = mean over neurons of <phi, sigma(h)>²
    return listed(np.mean(overlaps[0] * overlaps[1], axis=1))


def power_laws(parameters: CurseParameters) -> list[float | None]:
    """Strengths without a gain times the powers of the gain that they follow up to D near d."""
    plain, powers = strengths_of(parameters, lazy=True), powers_of(parameters)
    return listed(plain[:2] * parameters.gain ** np.array(powers))


def strengths_of(parameters: CurseParameters, *, lazy: bool = False) -> np.ndarray:
    """Integrate the kernel of wide layers against each feature; if lazy, without gain and spike."""
    # (two-layer-posterior 20)
    from scipy.special import roots_genlaguerre, roots_jacobi

    activation = parameters.activation
    d, gain = parameters.dimension, 1.0 if lazy else parameters.gain
    z, chance = line()
    # |x_perp|² / 2 has a Gamma law of shape (d - 1) / 2; the cosine of two x_perp has the density
    # (1 - tau²)^((d - 4) / 2)
    half, radial = roots_genlaguerre(6, (d - 3) / 2)
    tau, angular = roots_jacobi(10, (d - 4) / 2, (d - 4) / 2)
    radial, angular = radial / radial.sum(), angular / angular.sum()
    # axes: z, z', |x_perp|², |x'_perp|², tau
    first, second = (
        (slice(None), None, slice(None), None, None),
        (None, slice(None), None, slice(None), None),
    )
    along = np.multiply.outer(z, z)[:, :, None, None, None]
    across = 2 * np.sqrt(np.multiply.outer(half, half))[:, :, None] * tau
    variance = (gain * z[:, None] ** 2 + 2 * half) / d
    inner = (gain * along + across) / d
    kernel = layer_kernel(activation, inner, variance[first], variance[second])
    variance = layer_kernel(activation, variance, variance, variance)
    if parameters.spike and not lazy:
        share = parameters.spike / parameters.width
        spike = evaluate(activation, STRENGTH * z)
        pairs = np.multiply.outer(spike, spike)[:, :, None, None, None]
        kernel = (1 - share) * kernel + share * pairs
        variance = (1 - share) * variance + share * spike[:, None] ** 2
    if parameters.second_width:
        kernel = layer_kernel(activation, kernel, variance[first], variance[second])
    mean = np.einsum("ijklm,k,l,m->ij", kernel, radial, radial, angular, optimize=True)
    rows = features_at(parameters, z, chance) * chance
    return np.asarray(np.einsum("fi,ij,fj->f", rows, mean, rows))


def layer_kernel(
    activation: str, inner: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Kernel of a wide layer, from the covariance and the variances of its pre-activations."""
    if activation == "erf":
        return np.asarray(
            2 / pi * np.arcsin(2 * inner / np.sqrt((1 + 2 * first) * (1 + 2 * second)))
        )
    size = np.sqrt(first * second)
    cosine = np.clip(inner / size, -1, 1)
    angle = np.arccos(cosine)
    return np.asarray(size / (2 * pi) * (np.sin(angle) + (pi - angle) * cosine))


def slope_kernel(
    activation: str, inner: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Derivative of the kernel of a wide layer by the covariance of its pre-activations."""
    if activation == "erf":
        return np.asarray(4 / pi / np.sqrt((1 + 2 * first) * (1 + 2 * second) - 4 * inner**2))
    angle = np.arccos(np.clip(inner / np.sqrt(first * second), -1, 1))
    return np.asarray((pi - angle) / (2 * pi))
