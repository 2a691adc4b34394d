r"""Sums over features whose weights decay as a power of their rank, for any number of them."""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter

SUM_TERMS = 4096
"""Terms of a long sum that are added one by one; the rest is integrated by Euler and Maclaurin."""


def weight_scale(*, decay: float, features: int) -> float:
    r"""Normalisation :math:`Z_\gamma=\big(\sum_{i\le p}i^{-2\gamma}\big)^{-1/2}` of the weights.

    Parameters
    ----------
    decay : float
        :math:`\gamma\ge0`.
    features : int
        :math:`p\ge1`.

    Returns
    -------
    float
        :math:`Z_\gamma`, so that :math:`|\lambda_i|=Z_\gamma i^{-\gamma}` has squares that sum to 1.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    O(1) in p: long sums are finished by Euler-Maclaurin, to :math:`10^{-12}`. Backed by
    ``tests/models/sequential/test_power_law.py``.

    Examples
    --------
    >>> round(weight_scale(decay=1.0, features=2_000_000) ** -2, 6)  # zeta(2) - 1/p
    1.644934
    """
    check_decay(decay)
    check_positive(features=features)
    return float(power_sum(2 * decay, features) ** -0.5)


def power_sum(exponent: float, terms: int) -> float:
    r"""Sum :math:`\sum_{i=1}^{m}i^{-s}` in O(1).

    Parameters
    ----------
    exponent : float
        :math:`s`.
    terms : int
        :math:`m\ge0`.

    Returns
    -------
    float
        The sum, to about :math:`10^{-12}` of itself.

    Examples
    --------
    >>> power_sum(1.0, 3)
    1.8333333333333333
    """
    first = min(int(terms), SUM_TERMS)
    total = float(np.sum(np.arange(1, first + 1, dtype=np.float64) ** -exponent))
    if terms <= first:
        return total
    a, b, s = float(first), float(terms), exponent
    integral = np.log(b / a) if s == 1 else (b ** (1 - s) - a ** (1 - s)) / (1 - s)
    ends = (b**-s - a**-s) / 2 - s * (b ** (-s - 1) - a ** (-s - 1)) / 12
    third = s * (s + 1) * (s + 2) * (b ** (-s - 3) - a ** (-s - 3)) / 720
    return float(total + integral + ends + third)


def normalised_mse_sum(
    *, decay: float, features: int, aspect_ratio: float | np.ndarray
) -> np.ndarray:
    r"""Normalised error :math:`1-\sum_i\lambda_i^2c_i^4` with power-law weights, any number of them.

    .. math:: c_i^2=\frac{(\nu_i-1)_+}{\nu_i+4\lambda_i^2},\qquad \nu_i=2\lambda_i^2\frac nD .

    The identity readout, labels unmapped, Gaussian features, second layer fitted on fresh data.

    Parameters
    ----------
    decay : float
        :math:`\gamma\ge0`.
    features : int
        :math:`p`; millions are fine.
    aspect_ratio : float or array
        :math:`n/D`, above 0.

    Returns
    -------
    ndarray
        Of the shape of ``aspect_ratio``.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    O(number of features recovered): unrecovered ones add nothing to the sum. Derived (note 3.4);
    backed by ``tests/models/sequential/test_power_law.py`` and
    ``tests/models/sequential/test_note_theory.py``.

    Examples
    --------
    >>> normalised_mse_sum(decay=1.0, features=16, aspect_ratio=np.array([64.0, 256.0])).round(3)
    array([0.192, 0.068])
    """
    delta = check_ratio(aspect_ratio)
    scale = weight_scale(decay=decay, features=features)
    recovered = recovered_count(decay=decay, features=features, aspect_ratio=delta)
    most = int(np.max(recovered, initial=0))
    squares = scale**2 * np.arange(1, most + 1, dtype=np.float64) ** (-2 * decay)
    errors = np.empty(delta.shape)
    for place, ratio in np.ndenumerate(delta):
        kept = squares[: int(recovered[place])]
        c2 = np.maximum(2 * kept * ratio - 1, 0) / (2 * kept * ratio + 4 * kept)
        errors[place] = 1 - kept @ c2**2
    return errors


def unrecovered_tail(
    *, decay: float, features: int, aspect_ratio: float | np.ndarray
) -> np.ndarray:
    r"""Share :math:`\sum_{i:\nu_i\le1}\lambda_i^2` of the label in features below their threshold.

    It is not the error: recovered features add noise of the same order
    (:func:`~solvable.models.sequential.exponents.total_to_tail_ratio`).

    Parameters
    ----------
    decay : float
        :math:`\gamma\ge0`.
    features : int
        :math:`p`.
    aspect_ratio : float or array
        :math:`n/D`, above 0.

    Returns
    -------
    ndarray
        Of the shape of ``aspect_ratio``.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Examples
    --------
    >>> unrecovered_tail(decay=1.0, features=16, aspect_ratio=np.array([64.0])).round(3)
    array([0.036])
    """
    delta = check_ratio(aspect_ratio)
    scale = weight_scale(decay=decay, features=features)
    recovered = recovered_count(decay=decay, features=features, aspect_ratio=delta)
    whole = power_sum(2 * decay, features)
    tails = np.empty(delta.shape)
    for place, count in np.ndenumerate(recovered):
        tails[place] = scale**2 * (whole - power_sum(2 * decay, int(count)))
    return np.maximum(tails, 0.0)


def recovered_count(*, decay: float, features: int, aspect_ratio: float | np.ndarray) -> np.ndarray:
    r"""Number of features above threshold, the integer part of :math:`(2Z_\gamma^2n/D)^{1/(2\gamma)}`.

    Parameters
    ----------
    decay : float
        :math:`\gamma\ge0`.
    features : int
        :math:`p`.
    aspect_ratio : float or array
        :math:`n/D`, above 0.

    Returns
    -------
    ndarray of int
        From 0 to p.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    arXiv:2605.14567 Corollary 3.1 (:math:`m_n=(Z_\gamma^2n/D)^{1/(2\gamma)}`) with its constant.

    Examples
    --------
    >>> recovered_count(decay=1.0, features=16, aspect_ratio=np.array([0.1, 64.0]))
    array([0, 8])
    """
    delta = check_ratio(aspect_ratio)
    strongest = 2 * weight_scale(decay=decay, features=features) ** 2 * delta
    if decay == 0:
        return np.where(strongest > 1, features, 0)
    with np.errstate(over="ignore"):
        count = np.minimum(strongest ** (1 / (2 * decay)), float(features))
    return np.floor(count).astype(np.int64)


def check_decay(decay: float) -> None:
    """Refuse a decay that is negative or not finite."""
    if not 0 <= decay < np.inf:
        raise InvalidParameter(f"decay is {decay}; allowed: a finite number of at least 0.")


def check_ratio(aspect_ratio: float | np.ndarray) -> np.ndarray:
    """Return ``aspect_ratio`` as an array, refused unless finite and above 0."""
    delta = np.asarray(aspect_ratio, dtype=np.float64)
    if not (np.isfinite(delta).all() and (delta > 0).all()):
        raise InvalidParameter(f"aspect_ratio is {aspect_ratio}; allowed: finite, above 0 (n / D).")
    return delta
