r"""Exponents and asymptotic errors of sequential feature recovery, arXiv:2605.14567."""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.models.sequential.power_law import check_decay, check_ratio, weight_scale


def normalised_mse_asymptote(
    *, decay: float, aspect_ratio: float | np.ndarray, features: int | None = None
) -> np.ndarray:
    r"""Asymptotic error for infinitely many features, :math:`\gamma>\frac12`.

    .. math::
        Z_\gamma^2m^{1-2\gamma}\Big[\frac1{2\gamma-1}+2-\frac1{2\gamma+1}\Big],\qquad
        m=\Big(\frac{2Z_\gamma^2n}D\Big)^{1/(2\gamma)},

    the unrecovered tail and, after it, the noise in the recovered features.

    Parameters
    ----------
    decay : float
        :math:`\gamma>1/2`.
    aspect_ratio : float or array
        :math:`n/D`, large.
    features : int, optional
        Number of features behind :math:`Z_\gamma`; infinitely many by default.

    Returns
    -------
    ndarray
        Of the shape of ``aspect_ratio``; falls as :math:`(n/D)^{-1+1/(2\gamma)}`.

    Raises
    ------
    InvalidParameter
        If decay is not above 1/2.

    Notes
    -----
    arXiv:2605.14567 Theorem 3.2 with its constant, derived; backed by
    ``tests/models/sequential/test_exponents.py`` (the sum formula with two million features).

    Examples
    --------
    >>> normalised_mse_asymptote(decay=1.0, aspect_ratio=np.array([1e4, 1e6])).round(5)
    array([0.0147 , 0.00147])
    """
    _check_summable(decay)
    delta = check_ratio(aspect_ratio)
    if features is None:
        from scipy.special import zeta

        squared = 1 / float(zeta(2 * decay))
    else:
        squared = weight_scale(decay=decay, features=features) ** 2
    m = (2 * squared * delta) ** (1 / (2 * decay))
    bracket = 1 / (2 * decay - 1) + 2 - 1 / (2 * decay + 1)
    return np.asarray(squared * m ** (1 - 2 * decay) * bracket)


def total_to_tail_ratio(decay: float) -> float:
    r"""Asymptotic error over its unrecovered tail, :math:`1+(2\gamma-1)(2-\frac1{2\gamma+1})`.

    Parameters
    ----------
    decay : float
        :math:`\gamma>1/2`.

    Returns
    -------
    float
        Above 1: recovered features contribute too.

    Raises
    ------
    InvalidParameter
        If decay is not above 1/2.

    Notes
    -----
    Derived; backed by ``tests/models/sequential/test_note_theory.py``.

    Examples
    --------
    >>> [round(total_to_tail_ratio(gamma), 2) for gamma in (0.75, 1.0, 1.5, 2.0)]
    [1.8, 2.67, 4.5, 6.4]
    """
    _check_summable(decay)
    return 1 + (2 * decay - 1) * (2 - 1 / (2 * decay + 1))


def error_exponent(decay: float) -> float:
    r"""Exponent of :math:`n/d^q` in the error (or in the learned energy, for slow decay).

    :math:`\mathrm{MSE}\asymp(n/d^q)^{-1+1/(2\gamma)}` for :math:`\gamma>\frac12`;
    :math:`\Theta(1)-(n/(d_1d^q))^{1/(2\gamma)-1}` for :math:`0<\gamma<\frac12`.

    Parameters
    ----------
    decay : float
        :math:`\gamma>0`, not 1/2, where there is no power law.

    Returns
    -------
    float
        :math:`-1+1/(2\gamma)`: negative, of the error, above 1/2; positive, of the learned energy,
        below.

    Raises
    ------
    InvalidParameter
        If decay is not positive or equals 1/2.

    Notes
    -----
    arXiv:2605.14567 Theorem 3.2. Neither is visible at :math:`n/D<10^3`: compare measured slopes
    with those of :func:`~solvable.models.sequential.power_law.normalised_mse_sum`.

    Examples
    --------
    >>> error_exponent(1.0), error_exponent(0.25)
    (-0.5, 1.0)
    """
    if not 0 < decay < np.inf or decay == 0.5:
        raise InvalidParameter(
            f"decay is {decay}; allowed: above 0 and not 1/2, where the law is logarithmic."
        )
    return -1 + 1 / (2 * decay)


def threshold_exponent(
    *, degree: int, decay: float, epsilon: float = 0.0, rank_exponent: float = 0.0
) -> float:
    r"""Exponent :math:`\alpha_i` of :math:`n_i\asymp d^{\alpha_i}` for feature :math:`i=d^{r}`.

    .. math:: \alpha_i=q+(1-2\gamma)_+\varepsilon+2\gamma r,\qquad 0\le r\le\varepsilon,

    for :math:`d_1=d^\varepsilon` features: all at :math:`q+\varepsilon` when :math:`\gamma=0`, the
    last always at :math:`q+\varepsilon\max(1,2\gamma)`. In the rank alone, :math:`n_i\propto
    i^{2\gamma}`.

    Parameters
    ----------
    degree : int
        :math:`q\ge1`.
    decay : float
        :math:`\gamma\ge0`.
    epsilon : float
        :math:`\varepsilon\ge0`.
    rank_exponent : float
        :math:`r=\log_di`, from 0 to epsilon.

    Returns
    -------
    float
        :math:`\alpha_i`.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    arXiv:2605.14567 Theorem 3.1 in exponents; backed by ``tests/models/sequential/test_exponents.py``.

    Examples
    --------
    >>> threshold_exponent(degree=2, decay=0.4, epsilon=0.5, rank_exponent=0.5)
    2.5
    """
    check_decay(decay)
    check_positive(degree=degree)
    if not 0 <= rank_exponent <= epsilon < np.inf:
        raise InvalidParameter(
            f"rank_exponent is {rank_exponent} and epsilon {epsilon}; allowed: "
            "0 <= rank_exponent <= epsilon."
        )
    return degree + max(1 - 2 * decay, 0.0) * epsilon + 2 * decay * rank_exponent


def neighbour_mixing(
    *, heights: np.ndarray, products: np.ndarray, samples: float | np.ndarray
) -> np.ndarray:
    r"""Squared overlap of each eigenvector with the next feature, to second order.

    .. math::
        E|\langle u_j,\hat u_k\rangle|^2\simeq\frac{E[T^2h_j^2h_k^2]}{n(\theta_k-\theta_j)^2},

    free of D: small gaps do not hurt recovery of the subspace.

    Parameters
    ----------
    heights : array of shape (p,)
        :math:`\theta_i`.
    products : array of shape (p - 1,)
        :math:`E[T^2h_i^2h_{i+1}^2]`; 1 for weak features.
    samples : float or array of shape (m,)
        :math:`n`, above 0.

    Returns
    -------
    ndarray of shape (p - 1,) or (m, p - 1)
        Valid while it is small.

    Raises
    ------
    InvalidParameter
        If shapes disagree or a sample size is not positive.

    Notes
    -----
    arXiv:2605.14567 eq. 3.2, its second moment derived; backed by
    ``tests/models/sequential/test_exponents.py`` (simulation).

    Examples
    --------
    >>> neighbour_mixing(heights=np.array([0.5, 0.3]), products=np.ones(1), samples=1000)
    array([0.025])
    """
    theta, weights = np.asarray(heights, float), np.asarray(products, float)
    if theta.ndim != 1 or weights.shape != (theta.size - 1,):
        raise InvalidParameter(
            f"heights have shape {theta.shape} and products {weights.shape}; allowed: (p,), (p-1,)."
        )
    n = np.asarray(samples, dtype=np.float64)
    if not (n > 0).all():
        raise InvalidParameter(f"samples is {samples}; allowed: above 0.")
    with np.errstate(divide="ignore"):
        return np.asarray(weights / np.diff(theta) ** 2 / n[..., None])


def _check_summable(decay: float) -> None:
    if not 0.5 < decay < np.inf:
        raise InvalidParameter(
            f"decay is {decay}; allowed: above 1/2, where infinitely many weights can be "
            "normalised. Use normalised_mse_sum for slower decay."
        )
