"""Closed form of the population flow of quadratic networks, times of learning, and floor of the risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, eq=False)
class QuadraticFlow:
    """Risk and learned features of the population flow at a sequence of times."""

    times: np.ndarray
    risk: np.ndarray  # |Lambda - W W^T|² / |Lambda|² at each time
    captured: (
        np.ndarray
    )  # diagonal of W W^T over lambda_j, NaN where lambda_j is 0; shape (times, d)
    strengths: np.ndarray  # lambda_j


def flow_matrix(strengths: np.ndarray, weights: np.ndarray, time: float) -> np.ndarray:
    """Matrix G = W W^T of the population flow at a time, from its Riccati equation (quadratic 34)."""
    # W' = (Lambda - W W^T) W, the flow of arXiv:2508.03688, has G' = Lambda G + G Lambda - 2 G²:
    #     G(t) = e^(t Lambda) W_0 (I + W_0^T (e^(2 t Lambda) - 1) / Lambda W_0)^-1 W_0^T e^(t Lambda).
    # With E = ((e^(2 t Lambda) - 1) / Lambda)^(1/2) the entries of E W_0 exceed the range of a double.
    # Sort the rows by E and rotate the columns so that W_0 is lower triangular, and divide column k of
    # E W_0 by its largest entry c_k. Then G = D Q_1 Q_1^T D, where D = e^(t Lambda) / E and Q_1 holds the
    # upper rows of the orthonormal factor of (E W_0 C^-1; C^-1).
    rates, start = _checked(strengths, weights)
    if not 0 <= time < np.inf:
        raise InvalidParameter(f"time is {time}; allowed: a finite number of at least 0.")
    if time == 0:
        return np.asarray(start @ start.T)
    order = np.argsort(-rates, kind="stable")
    rates = rates[order]
    triangle = np.linalg.qr(start[order].T)[1].T
    growth = _log_growth(rates, time)
    with np.errstate(divide="ignore"):
        size = growth[:, None] + np.log(np.abs(triangle))
    scale = np.maximum(size.max(axis=0), 0.0)
    stacked = np.concatenate([np.sign(triangle) * np.exp(size - scale), np.diag(np.exp(-scale))])
    upper = np.linalg.qr(stacked)[0][: rates.size]
    upper = upper * np.exp(rates * time - growth)[:, None]
    solution = np.empty((rates.size, rates.size))
    solution[np.ix_(order, order)] = upper @ upper.T
    return solution


def _log_growth(rates: np.ndarray, time: float) -> np.ndarray:
    """Logarithm of E, without overflow and for rates of 0 too."""
    exponent = 2 * time * rates
    modulus = np.abs(exponent)
    # (e^z - 1) / z = e^{max(z, 0)} (1 - e^{-|z|}) / |z|.
    fraction = np.ones(rates.size)
    large = modulus > 1e-300
    fraction[large] = -np.expm1(-modulus[large]) / modulus[large]
    return np.asarray((np.maximum(exponent, 0.0) + np.log(fraction) + np.log(2 * time)) / 2)


def quadratic_flow(strengths: np.ndarray, weights: np.ndarray, times: np.ndarray) -> QuadraticFlow:
    r"""Compute the risk and the learned share of each feature along the population flow.

    Closed form of the matrix Riccati equation (quadratic 34), O(d r (d + r)) for each time.

    Parameters
    ----------
    strengths : array of shape (d,)
        :math:`\lambda_j`, of any sign and order; :math:`j^{-a}` in arXiv:2508.03688.
    weights : array of shape (d, r)
        :math:`W_0`, for example Gaussian of small variance.
    times : array of shape (T,)
        Times, at least 0.

    Returns
    -------
    QuadraticFlow
        Risk over its value at :math:`G=0`, and the learned share of each feature.

    Examples
    --------
    >>> flow = quadratic_flow(np.array([1.0, 0.0]), 0.1 * np.eye(2), np.array([0.0, 100.0]))
    >>> flow.risk.round(4)
    array([0.9802, 0.    ])
    """
    rates, start = _checked(strengths, weights)
    if not rates.any():
        raise InvalidData(
            "every strength is 0; allowed: at least one other value, or the risk is not defined."
        )
    moments = np.atleast_1d(np.asarray(times, dtype=np.float64))
    risk, captured = np.empty(moments.size), np.empty((moments.size, rates.size))
    for place, time in enumerate(moments):
        solution = flow_matrix(rates, start, float(time))
        diagonal = np.diagonal(solution).copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            captured[place] = np.where(rates == 0, np.nan, diagonal / rates)
        np.fill_diagonal(solution, diagonal - rates)
        risk[place] = np.sum(solution**2)
    return QuadraticFlow(moments, risk / np.sum(rates**2), captured, rates)


def _checked(strengths: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rates = np.asarray(strengths, dtype=np.float64)
    start = np.asarray(weights, dtype=np.float64)
    if rates.ndim != 1 or rates.size == 0 or start.ndim != 2 or len(start) != rates.size:
        raise InvalidData(
            f"the strengths have shape {rates.shape} and the weights {start.shape}; "
            "allowed: (d,) and (d, r)."
        )
    if not (np.isfinite(rates).all() and np.isfinite(start).all()):
        raise InvalidData(
            "the strengths or the weights contain NaN or infinity; remove these values."
        )
    return rates, start


def feature_learning_times(strengths: np.ndarray | float, *, initial_strength: float) -> np.ndarray:
    r"""Compute the time at which half of each feature is learned, for an isotropic start.

    .. math:: t_j=\frac1{2\lambda_j}\log\Big(\frac{\lambda_j}{g_0}-1\Big),\qquad
        g_j(t)=\frac{\lambda_j}{1+(\lambda_j/g_0-1)e^{-2\lambda_jt}},

    exact for :math:`W_0W_0^\top=g_0I` (quadratic 35). A random start changes the argument of the
    logarithm by a factor.

    Parameters
    ----------
    strengths : array of any shape
        :math:`\lambda_j>0`.
    initial_strength : float
        :math:`g_0>0`.

    Returns
    -------
    ndarray
        The times :math:`t_j`; 0 for a feature that is at least half learned at the start.

    Examples
    --------
    >>> feature_learning_times([1.0, 0.1], initial_strength=1e-3).round(2)
    array([ 3.45, 22.98])
    """
    check_positive(initial_strength=initial_strength)
    rates = np.asarray(strengths, dtype=np.float64)
    if not np.isfinite(rates).all() or (rates <= 0).any():
        raise InvalidData(
            "a strength is not a finite number above 0; such features are never learned. Remove them."
        )
    return np.asarray(np.log(np.maximum(rates / initial_strength - 1, 1.0)) / (2 * rates))


def width_floor(strengths: np.ndarray, *, width: int) -> float:
    r"""Least risk of a network of this width: :math:`\sum_{j>r_s}\lambda_j^2/\sum_j\lambda_j^2`.

    Parameters
    ----------
    strengths : array of shape (d,)
        :math:`\lambda_j\ge0`, in any order.
    width : int
        :math:`r_s`.

    Returns
    -------
    float
        The risk floor (quadratic 36), of order :math:`r_s^{1-2a}` for :math:`\lambda_j=j^{-a}`.

    Examples
    --------
    >>> round(width_floor(1 / np.arange(1, 401), width=10), 4)
    0.0564
    """
    check_positive(width=width)
    energy = np.sort(np.asarray(strengths, dtype=np.float64) ** 2)[::-1]
    return float(energy[int(width) :].sum() / energy.sum())


def gamma_quadrature(shape: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss quadrature with 40 nodes for means over a gamma variable of any shape."""
    from scipy.linalg import eigh_tridiagonal

    # Golub-Welsch algorithm, as SciPy's rule contains Gamma(shape), which overflows above 171.
    k = np.arange(40)
    nodes, vectors = eigh_tridiagonal(2 * k + shape, np.sqrt(k * (k + shape - 1))[1:])
    return nodes, vectors[0] ** 2
