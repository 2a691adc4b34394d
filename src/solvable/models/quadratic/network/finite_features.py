"""Errors of groups of features at a finite dimension, to first order in 1/d."""

# The residual of a sample depends on its x, so that its noise is larger along features with a large error
# (quadratic 17). The element ij of the noise has the variance (1 + w_ij) delta² / d, with w_ij of order
# 1/d, and the resolvent in the basis of the target obeys
#     1 / G_i = z - s_i - delta² (1/d) sum_j (1 + w_ij) G_j .
# Its first order in w changes the error of each feature (quadratic 39). The rest of the correction of the
# mean is a common change of delta and b, in proportion, which leaves features alone that are not learned.

from __future__ import annotations

import numpy as np

from solvable.models.quadratic.network.feature_groups import grouped
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.denoiser import feature_deviations, feature_errors, sides
from solvable.spectra.free_convolution import SpectralLaw

STEP = 1e-3
"""Relative change of noise and threshold for a derivative."""

MOST = 0.25
"""Largest relative change of noise and threshold that gives the corrected mean."""


def finite_group_errors(
    state: QuadraticState, ends: list[int], matrix_error: float, *, samples: bool
) -> list[float]:
    """Mean error of each group of features, whose mean is the error R at this dimension."""
    law, b = state.law, state.threshold
    weights, (lean, errors) = law.target.node_weights, feature_deviations(law, b)
    if samples:
        errors = errors + noise_of_samples(state, ends[-1], lean, errors)
    below, above = (
        feature_errors(SpectralLaw(law.target, noise=law.noise * scale), b * scale)
        for scale in (1 - STEP, 1 + STEP)
    )
    slope, rest = (above - below) / (2 * STEP), matrix_error - float(weights @ errors)
    # R does not fall along S* + t (delta Z - b), as the cone of positive matrices is convex.
    if abs(rest) < MOST * float(weights @ slope):
        errors = errors + slope * (rest / float(weights @ slope))
    else:  # hardly anything is learned, and the energy of a random target differs from its limit
        errors = errors * (matrix_error / float(weights @ errors))
    return grouped(law.target, errors, ends)


def noise_of_samples(
    state: QuadraticState, dimension: int, m: np.ndarray, e: np.ndarray
) -> np.ndarray:
    """Change of the error of each node of the target by the uneven noise of samples (quadratic 39)."""
    # m and e are the means of E_ii and (E²)_ii at the nodes.
    law, t, b = state.law, state.law.variance, state.threshold
    s, weights = law.target.nodes, law.target.node_weights
    unit, scale = np.ones_like(s), 8 / (dimension * state.test_error)
    means = (weights * np.array([unit, e, m])).T
    # Over all x: delta² (1/d) sum_j w_ij, w_ij = 8 (e_i + e_j + m_i m_j) / (d E_test).
    found = np.zeros_like(s)
    for side in sides(law, b, s):
        u, height = side.points.u[:, None], side.points.height[:, None]
        G = 1 / (u - 1j * height - s)
        # h_i = (1/d) sum_j w_ij G_j
        g, eg, mg = (G @ means).T[:, :, None]
        h = scale * (e * g + eg + m * mg)
        # dG_i = delta² G_i² (h_i + dg), dg = delta² <G² h> / (1 - delta² <G²>)
        shared = t * ((G**2 * h) @ weights) / (1 - t * (G**2 @ weights))
        change = t * G[:, side.chosen] ** 2 * (h[:, side.chosen] + shared[:, None])
        # de_i = int_b f (f - 2 s_i) Im dG_i dx / pi, f = x - b; Im g = pi mu = v / delta²
        rise = side.points.x - b
        spread = side.weights * t / side.points.height * rise
        part = (spread * rise) @ change.imag - 2 * s[side.chosen] * (spread @ change.imag)
        if not side.above:
            every = e + weights @ e + m * (weights @ m)
            part = t * scale * every[side.chosen] - part
        found[side.chosen] = part
    return found
