r"""Moments of a nonlinear readout in the limit of many weak features, and its error."""

from __future__ import annotations

import numpy as np

from solvable.errors import DegenerateReadout, InvalidParameter
from solvable.hermite import gaussian_quadrature, hermite_polynomials


def check_coefficients(coefficients: np.ndarray) -> np.ndarray:
    r"""Coefficients :math:`g_1,g_2,\dots` of a readout, from those with :math:`g_0` in front.

    Parameters
    ----------
    coefficients : array of shape (k,)
        Orthonormal Hermite coefficients :math:`g_0,g_1,\dots`; the mean :math:`g_0` is dropped.

    Returns
    -------
    ndarray of shape (k - 1,)
        Of the centred readout.

    Raises
    ------
    InvalidParameter
        If there are fewer than two, or one is not finite.
    DegenerateReadout
        If :math:`\nu_1=g_1=0`.

    Examples
    --------
    >>> check_coefficients(np.array([0.3, 1.0, 0.2]))
    array([1. , 0.2])
    """
    g = np.asarray(coefficients, dtype=np.float64)
    if g.ndim != 1 or g.size < 2 or not np.isfinite(g).all():
        raise InvalidParameter(
            f"coefficients have shape {g.shape}; allowed: g_0, g_1, ... , at least two and finite."
        )
    if abs(g[1]) <= 1e-6 * np.linalg.norm(g[1:]):
        raise DegenerateReadout(
            f"the first Hermite coefficient of the readout is {g[1]:.3g}: the label has no linear "
            "trace of the index. Allowed: g_1 != 0; map the labels so that it is."
        )
    return np.asarray(g[1:])


def limit_couplings(*, weights: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    r"""Coupling :math:`E[g^2h_i^2]/E[g^2]` of weak features, to second order in their weights.

    .. math::
        1+\frac{\sqrt2\lambda_iE[(g^2)']+2\lambda_i^2E[(g^2)'']}{E[g^2]},

    exact for the identity, :math:`1+4\lambda_i^2`.

    Parameters
    ----------
    weights : array of shape (p,)
        :math:`\lambda_i`.
    coefficients : array of shape (k,)
        :math:`g_1,g_2,\dots`.

    Returns
    -------
    ndarray of shape (p,)
        At least 0.

    Notes
    -----
    Derived by expanding in the part of the index that is independent of feature i; backed by
    ``tests/models/sequential/test_readout_moments.py`` (Monte Carlo).

    Examples
    --------
    >>> limit_couplings(weights=np.array([0.5]), coefficients=np.ones(1))
    array([2.])
    """
    nodes, chances = gaussian_quadrature(128)
    basis = hermite_polynomials(nodes, coefficients.size)
    squared = (coefficients @ basis[1:]) ** 2
    second_moment = float(chances @ squared)
    # E[phi'] = E[phi z] and E[phi''] = E[phi (z^2 - 1)].
    slope = float(chances @ (squared * nodes)) / second_moment
    curvature = float(chances @ (squared * (nodes**2 - 1))) / second_moment
    strengths = np.asarray(weights, dtype=np.float64)
    return np.maximum(1 + np.sqrt(2) * strengths * slope + 2 * strengths**2 * curvature, 0.0)


def readout_error(*, explained: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    r"""Normalised error of the best function of an index of correlation :math:`\rho` with the true one.

    .. math:: \frac{\sum_{k\ge1}g_k^2(1-\rho^{2k})}{\sum_{k\ge1}g_k^2}

    Parameters
    ----------
    explained : array
        :math:`\rho^2` in [0, 1].
    coefficients : array of shape (k,)
        :math:`g_1,g_2,\dots`.

    Returns
    -------
    ndarray
        Of the shape of ``explained``.

    Notes
    -----
    Derived (the two indices jointly Gaussian); backed by
    ``tests/models/sequential/test_readout_moments.py``.

    Examples
    --------
    >>> readout_error(explained=np.array([0.0, 0.5, 1.0]), coefficients=np.ones(1))
    array([1. , 0.5, 0. ])
    """
    power = coefficients**2 / np.sum(coefficients**2)
    orders = np.arange(1, power.size + 1)
    shares = np.asarray(explained, dtype=np.float64)[..., None] ** orders
    return np.asarray(1 - shares @ power)
