r"""Gradient flow of a quadratic network on the population loss: when each feature is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, eq=False)
class QuadraticFlow:
    r"""The flow at a sequence of times.

    Parameters
    ----------
    times : ndarray of shape (T,)
        :math:`t`, in the units of :math:`\dot W=(\Lambda-WW^\top)W`.
    risk : ndarray of shape (T,)
        :math:`\|\Lambda-WW^\top\|_F^2/\|\Lambda\|_F^2`.
    captured : ndarray of shape (T, d)
        Diagonal of :math:`WW^\top` over :math:`\lambda_j`, which is 0 for a feature not learned and
        1 for one that is; NaN where :math:`\lambda_j=0`.
    strengths : ndarray of shape (d,)
        :math:`\lambda_j`.
    """

    times: np.ndarray
    risk: np.ndarray
    captured: np.ndarray
    strengths: np.ndarray

    def learning_times(self) -> np.ndarray:
        """First time at which half of each feature is captured; NaN where it is not reached."""
        half = np.full(self.strengths.size, np.nan)
        for feature, fraction in enumerate(self.captured.T):
            above = np.flatnonzero(fraction >= 0.5)
            if above.size == 0:
                continue
            step = int(above[0])
            half[feature] = self.times[step]
            if step:
                half[feature] = np.interp(
                    0.5, fraction[step - 1 : step + 1], self.times[step - 1 : step + 1]
                )
        return half


def flow_matrix(strengths: np.ndarray, weights: np.ndarray, time: float) -> np.ndarray:
    r"""Solution :math:`G=WW^\top` of the matrix Riccati equation of the population flow.

    .. math:: \dot W=(\Lambda-WW^\top)W,\qquad \dot G=\Lambda G+G\Lambda-2G^2,\qquad
        G(t)=e^{t\Lambda}W_0\Big(I+W_0^\top\frac{e^{2t\Lambda}-1}\Lambda W_0\Big)^{-1}
        W_0^\top e^{t\Lambda}.

    Parameters
    ----------
    strengths : array of shape (d,)
        :math:`\lambda_j`, the diagonal of :math:`\Lambda`, of any sign and order.
    weights : array of shape (d, r)
        :math:`W_0`.
    time : float
        :math:`t\ge0`.

    Returns
    -------
    ndarray of shape (d, d)
        :math:`G(t)`.

    Raises
    ------
    InvalidData
        If an array is not finite or the shapes do not fit.
    InvalidParameter
        If the time is negative or not finite.

    Notes
    -----
    With :math:`E=\sqrt{(e^{2t\Lambda}-1)/\Lambda}` the growth :math:`EW_0` spans more decades than
    a double holds. Rows in the order of E and a rotation of the columns make :math:`W_0` lower
    triangular; column k is then divided by its largest entry :math:`c_k`, which keeps all of it
    bounded, and :math:`G=DQ_1Q_1^\top D` with :math:`D=e^{t\Lambda}/E` and :math:`Q_1` the upper
    rows of the orthonormal factor of :math:`(EW_0C^{-1};\,C^{-1})`. O(d r (d + r)). Derived, for
    the flow of arXiv:2508.03688; backed by ``tests/models/quadratic/test_flow_theory.py`` (SciPy's
    integrator, the scalar logistic law).

    Examples
    --------
    >>> G = flow_matrix(np.array([1.0, 0.5]), 0.1 * np.eye(2), 1_000.0)
    >>> G.round(6)
    array([[1. , 0. ],
           [0. , 0.5]])
    """
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
    """Logarithm of E, without overflow and through a rate of 0."""
    exponent = 2 * time * rates
    modulus = np.abs(exponent)
    # (e^z - 1) / z = e^{max(z, 0)} (1 - e^{-|z|}) / |z|.
    fraction = np.ones(rates.size)
    large = modulus > 1e-300
    fraction[large] = -np.expm1(-modulus[large]) / modulus[large]
    return np.asarray((np.maximum(exponent, 0.0) + np.log(fraction) + np.log(2 * time)) / 2)


def quadratic_flow(strengths: np.ndarray, weights: np.ndarray, times: np.ndarray) -> QuadraticFlow:
    r"""Risk and captured features of the population flow at many times.

    Parameters
    ----------
    strengths : array of shape (d,)
        :math:`\lambda_j`; :func:`flow_strengths` for the power law of arXiv:2508.03688.
    weights : array of shape (d, r)
        :math:`W_0`, for example Gaussian of small variance.
    times : array of shape (T,)
        Times, at least 0.

    Returns
    -------
    QuadraticFlow
        Risk over its value at :math:`G=0`, and what is captured of each feature.

    Raises
    ------
    InvalidData
        If an array is not finite, the shapes do not fit or every strength is 0.

    Notes
    -----
    As many times the cost of :func:`flow_matrix`.

    Examples
    --------
    >>> flow = quadratic_flow(np.array([1.0, 0.0]), 0.1 * np.eye(2), np.array([0.0, 100.0]))
    >>> flow.risk.round(4)
    array([0.9802, 0.    ])
    """
    rates, start = _checked(strengths, weights)
    if not rates.any():
        raise InvalidData("every strength is 0, so that there is nothing to learn.")
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
        raise InvalidData("the strengths or the weights hold NaN or infinity; remove them.")
    return rates, start


def flow_strengths(*, dimension: int, features: int, exponent: float) -> np.ndarray:
    r"""Strengths :math:`\lambda_j=j^{-a}` for :math:`j\le r` and 0 beyond.

    Parameters
    ----------
    dimension : int
        :math:`d`.
    features : int
        :math:`r`, at most d.
    exponent : float
        :math:`a>0`.

    Returns
    -------
    ndarray of shape (d,)
        Descending.

    Examples
    --------
    >>> flow_strengths(dimension=4, features=2, exponent=1.0)
    array([1. , 0.5, 0. , 0. ])
    """
    check_positive(dimension=dimension, features=features, exponent=exponent)
    if features > dimension:
        raise InvalidParameter(
            f"features is {features} and dimension {dimension}; allowed: at most one each."
        )
    strengths = np.zeros(int(dimension))
    strengths[: int(features)] = np.arange(1, int(features) + 1, dtype=np.float64) ** -exponent
    return strengths


def feature_learning_times(strengths: np.ndarray | float, *, initial_strength: float) -> np.ndarray:
    r"""Time at which half of each feature is captured, from a start that commutes with the target.

    .. math:: t_j=\frac1{2\lambda_j}\log\Big(\frac{\lambda_j}{g_0}-1\Big),\qquad
        g_j(t)=\frac{\lambda_j}{1+(\lambda_j/g_0-1)e^{-2\lambda_jt}},

    exact for :math:`W_0W_0^\top=g_0I`; for a random start of the same diagonal, up to a factor
    in the logarithm.

    Parameters
    ----------
    strengths : array of any shape
        :math:`\lambda_j>0`.
    initial_strength : float
        :math:`g_0>0`.

    Returns
    -------
    ndarray
        0 where a feature starts half captured or more.

    Notes
    -----
    Backed by ``tests/models/quadratic/test_flow_theory.py``.

    Examples
    --------
    >>> feature_learning_times([1.0, 0.1], initial_strength=1e-3).round(2)
    array([ 3.45, 22.98])
    """
    check_positive(initial_strength=initial_strength)
    rates = np.asarray(strengths, dtype=np.float64)
    if not np.isfinite(rates).all() or (rates <= 0).any():
        raise InvalidData("the strengths must be finite and above 0: others are never learned.")
    return np.asarray(np.log(np.maximum(rates / initial_strength - 1, 1.0)) / (2 * rates))


def flow_exponent(exponent: float) -> float:
    r"""Exponent of the risk in :math:`t/\log t`: :math:`-(2a-1)/a`.

    At time t the features with :math:`\lambda_j\gtrsim\log(\cdot)/2t` are learned, and the rest is
    a tail :math:`\sum_{j>k}j^{-2a}\simeq k^{1-2a}/(2a-1)` with :math:`k=(2t/\log)^{1/a}`.

    Parameters
    ----------
    exponent : float
        :math:`a`, above 1/2.

    Returns
    -------
    float
        The exponent; slopes in t alone are steeper because of the logarithm.

    Examples
    --------
    >>> flow_exponent(1.0)
    -1.0
    """
    if not 0.5 < exponent < np.inf:
        raise InvalidParameter(
            f"exponent is {exponent}; allowed: above 1/2, else the tail holds all the energy."
        )
    return -(2 * exponent - 1) / exponent


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
        For :math:`\lambda_j=j^{-a}` of order :math:`r_s^{1-2a}`.

    Examples
    --------
    >>> round(width_floor(flow_strengths(dimension=600, features=400, exponent=1.0), width=10), 4)
    0.0564
    """
    check_positive(width=width)
    energy = np.sort(np.asarray(strengths, dtype=np.float64) ** 2)[::-1]
    return float(energy[int(width) :].sum() / energy.sum())


def learned_features(
    times: np.ndarray | float, *, exponent: float, initial_strength: float
) -> np.ndarray:
    """Number of features learned by a time, not rounded, for strengths j^-a and a start g_0 I."""
    from scipy.special import lambertw

    check_positive(exponent=exponent, initial_strength=initial_strength)
    moments = np.asarray(times, dtype=np.float64)
    if not np.isfinite(moments).all() or (moments <= 0).any():
        raise InvalidParameter("the times must be finite and above 0.")
    # t = k^a log(k^-a / g_0) / 2, so that k^-a = -W_-1(-2 t g_0) / 2 t (derived). Then d log k / d log t
    # is l / (l - 1) / a with l = log(k^-a / g_0): why slopes of the risk in t are steeper than
    # `flow_exponent`, by 8 % at l = 14. NaN where 2 t g_0 > 1/e: by then the start itself is as large
    # as what is left to learn.
    argument = 2 * moments * initial_strength
    strength = -lambertw(-np.minimum(argument, np.exp(-1)), -1).real / (2 * moments)
    return np.where(argument <= np.exp(-1), strength ** (-1 / exponent), np.nan)
