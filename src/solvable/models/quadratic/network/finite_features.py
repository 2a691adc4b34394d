"""Errors of groups of features at a finite dimension, to first order in 1/d."""

# The residual of a sample depends on its x, so that its noise is larger along features with a large error
# (quadratic 17). The element ij of the noise has the variance (1 + w_ij) delta² / d, with w_ij of order
# 1/d, and the resolvent in the basis of the target obeys
#     1 / G_i = z - s_i - delta² (1/d) sum_j (1 + w_ij) G_j .
# Its first order in w changes the error of each feature (quadratic 39). The other corrections of order
# 1/d change delta and b: they multiply all errors by the factor that gives the corrected mean.

from __future__ import annotations

import numpy as np

from solvable.models.quadratic.network.feature_groups import group_errors, grouped
from solvable.models.quadratic.network.theory import QuadraticState
from solvable.spectra.denoiser import feature_deviations, sides


def finite_group_errors(
    state: QuadraticState, ends: list[int], matrix_error: float, *, samples: bool
) -> list[float]:
    """Mean error of each group of features, whose mean is the error R at this dimension."""
    errors, mean = np.array(group_errors(state, ends)), state.matrix_error
    if samples:
        change, target = noise_of_samples(state, ends[-1]), state.law.target
        errors += grouped(target, change, ends)
        mean += float(target.node_weights @ change)
    return [float(error) for error in errors * (matrix_error / mean)]


def noise_of_samples(state: QuadraticState, dimension: int) -> np.ndarray:
    """Change of the error of each node of the target by the uneven noise of samples (quadratic 39)."""
    law, t, b = state.law, state.law.variance, state.threshold
    s, weights = law.target.nodes, law.target.node_weights
    m, e = feature_deviations(law, b)
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
