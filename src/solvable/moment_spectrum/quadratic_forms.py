r"""Exact moments of quadratic forms in Gaussian inputs, by joint cumulants.

With :math:`h_i = (x^\top M_i x - \mathrm{tr} M_i)/\sqrt2`, :math:`x \sim N(0, I_d)`, the joint
cumulant of four of them is :math:`2\sum \mathrm{tr}(M_a M_{\pi b} M_{\pi c} M_{\pi d})` over the
six orders of the last three.
"""

from __future__ import annotations

import numpy as np


def weighted_square(matrices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`S = \sum_i \lambda_i M_i^2`, which carries the degree-2 part of the index."""
    total = np.zeros(matrices.shape[1:])
    for matrix, weight in zip(matrices, weights, strict=True):
        total += weight * (matrix @ matrix)
    return total


def degree_two_energy(matrices: np.ndarray, weights: np.ndarray) -> float:
    r"""Energy of the index in Hermite degree 2, :math:`4\|S\|_F^2`.

    It is what a rotation-invariant kernel learns first, for :math:`d^2 \ll n \ll d^4/24`.

    Notes
    -----
    Derived: the degree-2 part of :math:`h_i^2` is :math:`2(x^\top M_i^2 x - \mathrm{tr} M_i^2)`.
    Tested by simulation in ``tests/models/sequential/test_symmetric.py``.
    """
    return float(4 * np.sum(weighted_square(matrices, weights) ** 2))


def quadratic_index_variance(matrices: np.ndarray, weights: np.ndarray) -> float:
    r"""Variance of :math:`\frac1{\sqrt2}\sum_i\lambda_i(h_i^2-1)` for quadratic features.

    .. math::
        \mathrm{Var} = \sum_{ij}\lambda_i\lambda_j\Big[\langle M_i, M_j\rangle^2
        + 2\,\mathrm{tr}(M_iM_jM_iM_j)\Big] + 4\|S\|_F^2,\qquad S=\sum_i\lambda_iM_i^2 .

    Notes
    -----
    Costs :math:`p^2 d^3` operations. Derived; tested by simulation and by the closed form of a
    single diagonal feature in ``tests/models/sequential/test_symmetric.py``.
    """
    count = len(weights)
    # sum_ij lambda_i lambda_j [<M_i, M_j>^2 + 2 tr(M_i M_j M_i M_j)] + 4 |S|_F^2
    flat = matrices.reshape(count, -1)
    gaussian_part = float(weights @ (flat @ flat.T) ** 2 @ weights)
    crossed = 0.0
    for i in range(count):
        for j in range(i, count):
            product = matrices[i] @ matrices[j]
            trace = float(np.sum(product * product.T))
            crossed += (1 if i == j else 2) * weights[i] * weights[j] * trace
    return float(gaussian_part + 2 * crossed) + degree_two_energy(matrices, weights)
