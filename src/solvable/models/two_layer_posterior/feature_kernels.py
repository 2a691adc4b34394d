"""Strength of features in the kernels of random layers with an amplified direction or a spike.

The first layer has weights w ~ N(0, 1/d) with the variance D/d along the direction, and M of its neurons
are replaced by w = mu w_*. A second layer, if any, is lazy. The strength of a feature phi is
<phi, K, phi>; its inverse is the cost of alignment with phi.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from solvable.frame.points import Metrics
from solvable.hermite import gaussian_quadrature, hermite_polynomials
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.target import HermiteTarget

STRENGTH = 1.5
"""Overlap mu of the neurons of a spike with the direction."""

DRAWS = 32
"""Number of draws of the inputs orthogonal to the direction, in each of two halves."""


def line() -> tuple[np.ndarray, np.ndarray]:
    """Quadrature over the input's coordinate along the direction, fine enough for saturated neurons."""
    z, chance = gaussian_quadrature(64)
    kept = np.abs(z) < 8
    return z[kept], chance[kept]


def feature_names(parameters: CurseParameters) -> list[str]:
    """Names of the features."""
    return ["degree 1", "degree 3", "spike"][: 3 if parameters.spike else 2]


def features_at(parameters: CurseParameters, z: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Values of He_1, He_3 and the spike's function erf(mu z), each of unit variance."""
    from scipy.special import erf

    spike = erf(STRENGTH * z)
    rows = [*hermite_polynomials(z, 3)[[1, 3]], spike / np.sqrt(chance @ spike**2)]
    return np.array(rows[: len(feature_names(parameters))])


def measure_strengths(
    parameters: CurseParameters, target: HermiteTarget, rng: np.random.Generator
) -> Metrics:
    """Draw a network, and measure the strengths of features in its kernel."""
    from scipy.special import erf

    d, width, second = parameters.dimension, parameters.width, parameters.second_width
    W = rng.standard_normal((width, d)) / sqrt(d)
    W += (sqrt(parameters.gain) - 1) * np.outer(W @ target.direction, target.direction)
    W[: parameters.spike] = STRENGTH * target.direction
    # Quadrature along the direction and draws across it, in two independent halves: the product of their
    # overlaps has no bias.
    z, chance = line()
    across = rng.standard_normal((2 * DRAWS, d))
    across -= np.outer(across @ target.direction, target.direction)
    X = (across[:, None, :] + z[:, None] * target.direction).reshape(-1, d).astype(np.float32)
    hidden = erf(X @ W.T.astype(np.float32))
    if second:
        V = rng.standard_normal((width, second), dtype=np.float32) / np.float32(sqrt(width))
        hidden = erf(hidden @ V)
    by_place = hidden.reshape(2, DRAWS, z.size, -1).mean(axis=1, dtype=float)
    overlaps = (features_at(parameters, z, chance) * chance) @ by_place
    # <phi, K, phi> = mean over neurons of <phi, sigma(h)>²
    return {"strengths": list(map(float, np.mean(overlaps[0] * overlaps[1], axis=1)))}


def predict_strengths(parameters: CurseParameters) -> Metrics:
    """Predict the strengths, and the powers of the gain that they follow up to D near d."""
    first = strengths_of(parameters, lazy=True)
    powers = [first[0] * parameters.gain, first[1] * parameters.gain**3]
    return {
        "strengths": list(map(float, strengths_of(parameters))),
        "power_laws": list(map(float, powers)),
    }


def strengths_of(parameters: CurseParameters, *, lazy: bool = False) -> np.ndarray:
    """Integrate the kernel of wide layers against each feature; if lazy, without gain and spike."""
    # (two-layer-posterior 20)
    from scipy.special import erf, roots_genlaguerre, roots_jacobi

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
    kernel = arcsine((gain * along + across) / d, variance[first], variance[second])
    variance = arcsine(variance, variance, variance)
    if parameters.spike and not lazy:
        share, spike = parameters.spike / parameters.width, erf(STRENGTH * z)
        pairs = np.multiply.outer(spike, spike)[:, :, None, None, None]
        kernel = (1 - share) * kernel + share * pairs
        variance = (1 - share) * variance + share * spike[:, None] ** 2
    if parameters.second_width:
        kernel = arcsine(kernel, variance[first], variance[second])
    mean = np.einsum("ijklm,k,l,m->ij", kernel, radial, radial, angular, optimize=True)
    rows = features_at(parameters, z, chance) * chance
    return np.asarray(np.einsum("fi,ij,fj->f", rows, mean, rows))


def arcsine(inner: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Kernel of a wide layer of erf neurons, from the covariance and the variances of its inputs."""
    return np.asarray(2 / pi * np.arcsin(2 * inner / np.sqrt((1 + 2 * first) * (1 + 2 * second))))
