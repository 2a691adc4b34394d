r"""Exact moments of quadratic forms in Gaussian inputs, by joint cumulants.

With :math:`h_i = (x^\top M_i x - \mathrm{tr} M_i)/\sqrt2`, :math:`x \sim N(0, I_d)`, the joint
cumulant of four of them is :math:`2\sum \mathrm{tr}(M_a M_{\pi b} M_{\pi c} M_{\pi d})` over the
six orders of the last three.
"""

from __future__ import annotations

from math import comb

import numpy as np


def degree_two_energy(matrices: np.ndarray, weights: np.ndarray) -> float:
    """Energy of the index in Hermite degree 2, the component that a kernel learns first."""
    # The degree-2 component of h_i² is 2 (x^T M_i² x - tr M_i²), so the energy is 4 |S|_F² with S =
    # sum_i lambda_i M_i².
    S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices, optimize=True)
    return float(4 * np.sum(S**2))


def quadratic_index_variance(matrices: np.ndarray, weights: np.ndarray) -> float:
    """Variance of the index sum_i lambda_i (h_i² - 1) / sqrt(2); the cost is O(p² d³)."""
    # sum_ij lambda_i lambda_j [<M_i, M_j>² + 2 tr(M_i M_j M_i M_j)] + 4 |S|_F²   (sequential 21)
    flat = matrices.reshape(len(weights), -1)
    gaussian_part = float(weights @ (flat @ flat.T) ** 2 @ weights)
    products = [first @ matrices for first in matrices]
    crossed = np.array([np.einsum("jab,jba->j", product, product) for product in products])
    alternating = float(weights @ crossed @ weights)
    return gaussian_part + 2 * alternating + degree_two_energy(matrices, weights)


def mean_traces(features: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of tr M_i M_j M_i M_j and tr M_i² M_j² for random orthonormal matrices, (p, p)."""
    d, D = dimension, comb(dimension + 1, 2)
    # Entries of variance (1 + delta_ab) / 2: E tr M² W² = d ((d + 1) / 2)², and
    # E tr M W M W = E [tr M² + (tr M)²] / 2 = (D + d) / 2; E tr M⁴ is the sum over pairings.
    squares, alternating = d * (d + 1) ** 2 / 4, (D + d) / 2
    same = (2 * squares + alternating) / (D * (D + 2))
    gram = np.eye(features)
    found = []
    for mean in (alternating, squares):
        # The inner product of independent unit vectors has mean square 1/D; for orthogonal vectors it
        # is zero.
        other = (mean / D**2 - same / D) / (1 - 1 / D)
        found.append(gram * same + (1 - gram) * other)
    return found[0], found[1]
