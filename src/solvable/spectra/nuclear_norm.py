"""Number of samples above which minimising the nuclear norm recovers the true matrix."""

from __future__ import annotations

import numpy as np

from solvable.hermite import panel_nodes
from solvable.spectra.rectangular import check_shape
from solvable.spectra.roots import bracketed_root

NODES = 400
"""number of Gauss nodes in an angle; square-root ends are smooth in the angle"""


def nuclear_norm_ratio(*, aspect: float, rank_ratio: float) -> float:
    r"""Compute the samples :math:`n/(dL)` from which the least nuclear norm recovers a noiseless matrix.

    With :math:`b=1/\beta`, :math:`\gamma=\frac{b(1-\rho)}{1-\rho b}`,
    :math:`\gamma_\pm=(1\pm\sqrt\gamma)^2` and
    :math:`P_k=\frac1{2\pi\gamma}\int_{\max(\ell^2,\gamma_-)}^{\gamma_+}t^{k-1}
    \sqrt{(\gamma_+-t)(t-\gamma_-)}\,dt`,

    .. math:: \alpha=\rho+b\rho-b\rho^2+(1-\rho b)\big\{\rho\ell^2+(1-\rho)
              [P_1-2\ell P_{1/2}+\ell^2P_0]\big\},\qquad
              P_{1/2}-\ell P_0=\ell\frac\rho{1-\rho} .

    Parameters
    ----------
    aspect : float
        Ratio :math:`\beta=L/d\ge1`.
    rank_ratio : float
        Rank ratio :math:`\rho=r/d`, above 0; from 1 on all dL samples are needed.

    Returns
    -------
    float
        Threshold, between the degrees of freedom :math:`\rho+b\rho-b\rho^2` and 1.

    Raises
    ------
    InvalidParameter
        If the shape is out of range.

    Notes
    -----
    Source: derivations/spectra (31), from arXiv:2410.18858. Backed by
    ``tests/spectra/test_nuclear_norm.py`` (values of the paper, statistical dimension of cones).

    Examples
    --------
    >>> round(nuclear_norm_ratio(aspect=1.0, rank_ratio=0.2), 6)
    0.57169
    """
    check_shape(aspect, rank_ratio)
    if rank_ratio >= 1:
        return 1.0
    b, rho = 1 / aspect, rank_ratio
    gamma = b * (1 - rho) / (1 - rho * b)
    low, high = (1 - np.sqrt(gamma)) ** 2, (1 + np.sqrt(gamma)) ** 2
    angle, w = panel_nodes([0.0, np.pi], NODES)

    def moments(level: float) -> np.ndarray:
        """Integrals P_k at k = 0, 1/2 and 1."""
        # P_k   (spectra 29): t = high - (high - start) sin²(angle / 2) makes the integrand analytic.
        start = max(level**2, low)
        below = (high - start) * np.sin(angle / 2) ** 2
        t = high - below
        weight = np.sqrt(below * np.maximum(t - low, 0)) * (high - start) * np.sin(angle) / 2
        powers = np.stack([1 / t, t**-0.5, np.ones_like(t)])
        return np.asarray(powers @ (weight * w) / (2 * np.pi * gamma))

    def slope(level: float) -> float:
        zero, half, _ = moments(level)
        return float(half - level * zero - level * rho / (1 - rho))

    level = bracketed_root(slope, 1e-9, float(np.sqrt(high)))
    zero, half, one = moments(level)
    rest = rho * level**2 + (1 - rho) * (one - 2 * level * half + level**2 * zero)
    return float(rho + b * rho - b * rho**2 + (1 - rho * b) * rest)
