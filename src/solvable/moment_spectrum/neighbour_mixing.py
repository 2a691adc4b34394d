"""Mixing of neighbouring features with close spike heights, a two-level problem with noise."""

from __future__ import annotations

from math import erf

import numpy as np

from solvable.errors import InvalidParameter
from solvable.hermite import gauss_legendre


def neighbour_mixing(
    *,
    heights: np.ndarray,
    products: np.ndarray,
    samples: float | np.ndarray,
    squared_overlap: np.ndarray | None = None,
) -> np.ndarray:
    r"""Predict the squared overlap of each eigenvector with the next feature.

    Two features with heights :math:`\theta_i,\theta_j` and overlaps :math:`c^2=c_ic_j` give the two-level
    matrix

    .. math::
        \begin{pmatrix}\theta_i+\epsilon_{ii}&\epsilon_{ij}\\ \epsilon_{ij}&\theta_j+\epsilon_{jj}
        \end{pmatrix},\qquad
        E\epsilon_{ij}^2=v=\frac{E[T^2h_i^2h_j^2]}{nc^2},\qquad
        \tan2\varphi=\frac{2\epsilon_{ij}}{\theta_i-\theta_j+\epsilon_{ii}-\epsilon_{jj}},

    and :math:`E|\langle u_j,\hat u_i\rangle|^2=c^2E[\sin^2\varphi]` with :math:`|\varphi|\le\pi/4`, as
    eigenvectors are matched to the closest features. Small mixing is
    :math:`E[T^2h_i^2h_j^2]/(n(\theta_i-\theta_j)^2)`, which does not contain D. The mixing of equal
    heights is :math:`(1/2-1/\pi)c^2`.

    Parameters
    ----------
    heights : array of shape (p,)
        Spike heights :math:`\theta_i`.
    products : array of shape (p - 1,)
        Moments :math:`E[T^2h_i^2h_{i+1}^2]`, which are 1 for weak features.
    samples : float or array of shape (m,)
        Sample sizes :math:`n`, above 0.
    squared_overlap : array of shape (p,) or (m, p), optional
        Squared overlaps :math:`c_i^2` in [0, 1]; the default is 1.

    Returns
    -------
    ndarray of shape (p - 1,) or (m, p - 1)
        Squared overlaps; NaN if a third feature is as close as the two that mix, or if a feature is
        not recovered.

    Raises
    ------
    InvalidParameter
        If shapes disagree or a sample size is not positive.

    Notes
    -----
    The cost is O(mp). See Equation 17 of docs/derivations/sequential.md. The limit of small mixing is
    the second moment of arXiv:2605.14567, Equation 3.2. The noise is invariant under rotations of
    the two features, :math:`\mathrm{Var}(\epsilon_{ii}-\epsilon_{jj})=4v`, which is exact for
    equal heights. Backed by ``tests/models/sequential/test_mixing.py`` (simulation).

    Examples
    --------
    >>> pair = np.array([0.5, 0.3])
    >>> neighbour_mixing(heights=pair, products=np.ones(1), samples=10_000).round(5)
    array([0.00252])
    >>> neighbour_mixing(heights=np.ones(2), products=np.ones(1), samples=1000).round(3)
    array([0.182])
    """
    theta, weights = np.asarray(heights, float), np.asarray(products, float)
    if theta.ndim != 1 or weights.shape != (theta.size - 1,):
        raise InvalidParameter(
            f"heights have shape {theta.shape} and products {weights.shape}; allowed: (p,), (p-1,)."
        )
    n = np.asarray(samples, dtype=np.float64)
    if not (n > 0).all():
        raise InvalidParameter(f"samples is {samples}; allowed: above 0.")
    c2 = np.ones(theta.size) if squared_overlap is None else np.asarray(squared_overlap, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt(c2[..., 1:] * c2[..., :-1])
        # v = E[T² h_i² h_j²] / (n c²)   (sequential 17)
        noise = weights / n[..., None] / found
        unit = np.sqrt(4 * noise)
        mixed = found * _two_levels(np.abs(np.diff(theta)) / unit)
        # In simulations of three to five levels this is accurate for a third level one unit away, and a
        # third too high for a third level half a unit away.
        alone = (mixed < 0.02) | (_nearest_third(theta) > unit)
    return np.where((found > 0) & alone, mixed, np.nan)


_erf = np.frompyfunc(erf, 1, 1)  # the sum of math.erf values avoids an import of SciPy


def _two_levels(distance: np.ndarray) -> np.ndarray:
    """Mean E[sin² phi] for (cos 2 phi, sin 2 phi) along (k, 0) + N(0, 1), 2 phi in a half plane."""
    nodes, weights = gauss_legendre(64)
    k = np.asarray(distance, dtype=float)[..., None]
    # Density of the angle t of a Gaussian vector around (k, 0), folded into 0 < t < pi / 2:
    # [2 e^(-k^2/2) + sqrt(2 pi) x erf(x / sqrt 2) e^(-k² sin² t / 2)] / pi, x = k cos t
    top = np.minimum(np.pi / 2, 12 / np.maximum(k, 1.0))
    t = top * (nodes + 1) / 2
    x = k * np.cos(t)
    peak = (
        np.sqrt(2 * np.pi)
        * x
        * np.asarray(_erf(x / np.sqrt(2)), float)
        * np.exp(-((k * np.sin(t)) ** 2) / 2)
    )
    density = (2 * np.exp(-(k**2) / 2) + peak) / np.pi
    # sin² phi = (1 - cos 2 phi) / 2 = sin^2(t / 2)
    return np.asarray(np.sum(density * np.sin(t / 2) ** 2 * weights, axis=-1) * top[..., 0] / 2)


def _nearest_third(theta: np.ndarray) -> np.ndarray:
    """Distance from each pair of neighbours to the nearest height of a third feature."""
    order = np.argsort(theta, kind="stable")
    place = np.argsort(order, kind="stable")
    index = np.concatenate([[-1, -1], order, [-1, -1]])
    nearest = np.full(theta.size - 1, np.inf)
    first = np.arange(theta.size - 1)
    for member, partner in ((first, first + 1), (first + 1, first)):
        for offset in (-2, -1, 1, 2):
            other = index[place[member] + 2 + offset]
            distance = np.where(
                (other >= 0) & (other != partner), np.abs(theta[other] - theta[member]), np.inf
            )
            nearest = np.minimum(nearest, distance)
    return nearest
