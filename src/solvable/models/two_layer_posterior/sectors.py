r"""Modes of a neuron's function, sorted by angular momentum about the target's direction."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from solvable.models.two_layer_posterior.overlap import profile


@dataclass(frozen=True)
class Sector:
    """Modes of one angular momentum in the d - 1 directions orthogonal to the target's."""

    momentum: int  # angular momentum l; l = 0 contains functions of x_1 and |x_perp| alone
    multiplicity: int  # number of spherical harmonics of momentum l
    modes: np.ndarray  # amplitude of each neuron in each kind of mode, shape (neurons, kinds)
    labels: tuple[
        tuple[int, int], ...
    ]  # degree in x_1, and power k of |x_perp|^(2k), for each kind of mode


def harmonic_count(dimension: int, momentum: int) -> int:
    """Return the number of spherical harmonics of a momentum in a dimension."""
    if momentum < 2:
        return dimension if momentum else 1
    n, ell = dimension, momentum
    return comb(n + ell - 1, ell) - comb(n + ell - 3, ell - 2)


def power_weights(highest: int, dimension: int) -> np.ndarray:
    """Compute the weights k[q, l] of t^q = sum_l k[q, l] C_l(t), with Gegenbauer C_l(1) = 1."""
    n = dimension
    weights = np.zeros((highest + 1, highest + 2))
    weights[0, 0] = 1.0
    for q in range(highest):
        # t C_l = ((l + n - 2) C_(l+1) + l C_(l-1)) / (2l + n - 2), and t C_0 = C_1
        weights[q + 1, 1] += weights[q, 0]
        for ell in range(1, q + 1):
            scale = weights[q, ell] / (2 * ell + n - 2)
            weights[q + 1, ell + 1] += scale * (ell + n - 2)
            weights[q + 1, ell - 1] += scale * ell
    return weights


def sectors(
    activation: str, dimension: int, u: np.ndarray, r: np.ndarray
) -> tuple[list[Sector], np.ndarray]:
    """Compute the sectors of neurons at (u, r), momentum 0 first, and the power outside them."""
    # h_m(w.x/s) = sum_j sqrt(C(m,j)) cos^j sin^(m-j) h_j(x_1) h_(m-j)(w_perp.x), and momentum l holds
    # the fraction k[q, l] of the squared norm of the tensor w_perp^q   (two-layer-posterior 11).
    highest, mixed, momenta = 15, 9, 7
    n = dimension - 1
    s = np.sqrt(u * u + r)
    cosine, sine = u / s, np.sqrt(r) / s
    shape = profile(activation)
    amplitudes = [shape.coefficient(m, s) for m in range(highest + 1)]
    shares = power_weights(mixed, n)
    parts, power = [], np.zeros_like(s)
    for ell in range(momenta + 1):
        modes, labels = [], []
        for q in range(ell, mixed + 1, 2):
            for j in range((highest if q == 0 else mixed) - q + 1):
                mode = amplitudes[q + j] * sqrt(comb(q + j, j) * shares[q, ell])
                mode = mode * cosine**j * sine**q
                if np.abs(mode).max() > 1e-10:
                    modes.append(mode)
                    labels.append((j, (q - ell) // 2))
        count = harmonic_count(n, ell)
        if modes and count > 0:
            sector = Sector(ell, count, np.stack(modes, axis=1), tuple(labels))
            power += (sector.modes**2).sum(1)
            parts.append(sector)
    return parts, np.maximum(shape.power(s) - power, 0.0)
