r"""Scaling laws of features whose weights decay as a power of their rank: sums and their exponents."""

from __future__ import annotations

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter

SUM_TERMS = 4096
"""Terms of a long sum that are added one by one; the rest is integrated by Euler and Maclaurin."""


def weight_scale(*, decay: float, features: int) -> float:
    r"""Normalisation :math:`Z_\gamma=\big(\sum_{i\le p}i^{-2\gamma}\big)^{-1/2}` of the weights.

    Notes
    -----
    O(1) in p: long sums are finished by Euler-Maclaurin, to :math:`10^{-12}`. Backed by
    ``tests/models/sequential/test_scaling.py``.
    """
    _check_decay(decay)
    check_positive(features=features)
    return float(power_sum(2 * decay, features) ** -0.5)


def power_sum(exponent: float, terms: int) -> float:
    """Sum of i^-s over i = 1 to m in O(1), to about 1e-12 of itself."""
    first = min(int(terms), SUM_TERMS)
    total = float(np.sum(np.arange(1, first + 1, dtype=np.float64) ** -exponent))
    if terms <= first:
        return total
    a, b, s = float(first), float(terms), exponent
    integral = np.log(b / a) if s == 1 else (b ** (1 - s) - a ** (1 - s)) / (1 - s)
    # Euler-Maclaurin: (f(b) - f(a)) / 2 + (f'(b) - f'(a)) / 12 - (f'''(b) - f'''(a)) / 720
    ends = (b**-s - a**-s) / 2 - s * (b ** (-s - 1) - a ** (-s - 1)) / 12
    third = s * (s + 1) * (s + 2) * (b ** (-s - 3) - a ** (-s - 3)) / 720
    return float(total + integral + ends + third)


def normalised_mse_sum(
    *, decay: float, features: int, aspect_ratio: float | np.ndarray
) -> np.ndarray:
    r"""Normalised error :math:`1-\sum_i\lambda_i^2c_i^4` with power-law weights, any number of them.

    .. math:: c_i^2=\frac{(\nu_i-1)_+}{\nu_i+4\lambda_i^2},\qquad \nu_i=2\lambda_i^2\frac nD .

    The identity readout, labels unmapped, Gaussian features, second layer fitted on fresh data.

    Notes
    -----
    O(number of features recovered): unrecovered ones add nothing to the sum. Derived (note 3.4);
    backed by ``tests/models/sequential/test_scaling.py`` and
    ``tests/models/sequential/test_note_theory.py``.
    """
    delta = _check_ratio(aspect_ratio)
    scale = weight_scale(decay=decay, features=features)
    recovered = recovered_count(decay=decay, features=features, aspect_ratio=delta)
    most = int(np.max(recovered, initial=0))
    squares = scale**2 * np.arange(1, most + 1, dtype=np.float64) ** (-2 * decay)
    errors = np.empty(delta.shape)
    for place, ratio in np.ndenumerate(delta):
        kept = squares[: int(recovered[place])]
        c2 = np.maximum(2 * kept * ratio - 1, 0) / (2 * kept * ratio + 4 * kept)
        errors[place] = 1 - kept @ c2**2  # NMSE = 1 - sum_i lambda_i^2 c_i^4
    return errors


def unrecovered_tail(
    *, decay: float, features: int, aspect_ratio: float | np.ndarray
) -> np.ndarray:
    r"""Share :math:`\sum_{i:\nu_i\le1}\lambda_i^2` of the label in features below their threshold.

    It is not the error: recovered features add noise of the same order
    (:func:`~solvable.theory.total_to_tail_ratio`).
    """
    delta = _check_ratio(aspect_ratio)
    scale = weight_scale(decay=decay, features=features)
    recovered = recovered_count(decay=decay, features=features, aspect_ratio=delta)
    whole = power_sum(2 * decay, features)
    tails = np.empty(delta.shape)
    for place, count in np.ndenumerate(recovered):
        tails[place] = scale**2 * (whole - power_sum(2 * decay, int(count)))
    return np.maximum(tails, 0.0)


def recovered_count(*, decay: float, features: int, aspect_ratio: float | np.ndarray) -> np.ndarray:
    r"""Number of features above threshold, the integer part of :math:`(2Z_\gamma^2n/D)^{1/(2\gamma)}`.

    Notes
    -----
    arXiv:2605.14567 Corollary 3.1 (:math:`m_n=(Z_\gamma^2n/D)^{1/(2\gamma)}`) with its constant.
    """
    delta = _check_ratio(aspect_ratio)
    strongest = 2 * weight_scale(decay=decay, features=features) ** 2 * delta
    if decay == 0:
        return np.where(strongest > 1, features, 0)
    with np.errstate(over="ignore"):
        count = np.minimum(strongest ** (1 / (2 * decay)), float(features))
    return np.floor(count).astype(np.int64)


def normalised_mse_asymptote(
    *, decay: float, aspect_ratio: float | np.ndarray, features: int | None = None
) -> np.ndarray:
    r"""Asymptotic error for infinitely many features, :math:`\gamma>\frac12`.

    .. math::
        Z_\gamma^2m^{1-2\gamma}\Big[\frac1{2\gamma-1}+2-\frac1{2\gamma+1}\Big],\qquad
        m=\Big(\frac{2Z_\gamma^2n}D\Big)^{1/(2\gamma)},

    the unrecovered tail and, after it, the noise in the recovered features.

    Notes
    -----
    arXiv:2605.14567 Theorem 3.2 with its constant, derived; backed by
    ``tests/models/sequential/test_scaling_exponents.py`` (the sum formula with two million features).
    """
    _check_summable(decay)
    delta = _check_ratio(aspect_ratio)
    if features is None:
        from scipy.special import zeta

        squared = 1 / float(zeta(2 * decay))
    else:
        squared = weight_scale(decay=decay, features=features) ** 2
    m = (2 * squared * delta) ** (1 / (2 * decay))
    bracket = 1 / (2 * decay - 1) + 2 - 1 / (2 * decay + 1)
    # the tail, int_m^inf Z^2 x^-2gamma dx, and Z^2 m^(1 - 2 gamma) (2 - 1/(2 gamma + 1)) of the rest
    return np.asarray(squared * m ** (1 - 2 * decay) * bracket)


def total_to_tail_ratio(decay: float) -> float:
    r"""Asymptotic error over its unrecovered tail, :math:`1+(2\gamma-1)(2-\frac1{2\gamma+1})`.

    Notes
    -----
    Derived; backed by ``tests/models/sequential/test_note_theory.py``.
    """
    _check_summable(decay)
    return 1 + (2 * decay - 1) * (2 - 1 / (2 * decay + 1))


def error_exponent(decay: float) -> float:
    r"""Exponent of :math:`n/d^q` in the error (or in the learned energy, for slow decay).

    :math:`\mathrm{MSE}\asymp(n/d^q)^{-1+1/(2\gamma)}` for :math:`\gamma>\frac12`;
    :math:`\Theta(1)-(n/(d_1d^q))^{1/(2\gamma)-1}` for :math:`0<\gamma<\frac12`.

    Notes
    -----
    arXiv:2605.14567 Theorem 3.2. Neither is visible at :math:`n/D<10^3`: compare measured slopes
    with those of :func:`~solvable.theory.normalised_mse_sum`.
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

    Notes
    -----
    arXiv:2605.14567 Theorem 3.1 in exponents; backed by
    ``tests/models/sequential/test_scaling_exponents.py``.
    """
    _check_decay(decay)
    check_positive(degree=degree)
    if not 0 <= rank_exponent <= epsilon < np.inf:
        raise InvalidParameter(
            f"rank_exponent is {rank_exponent} and epsilon {epsilon}; allowed: "
            "0 <= rank_exponent <= epsilon."
        )
    return degree + max(1 - 2 * decay, 0.0) * epsilon + 2 * decay * rank_exponent


def _check_decay(decay: float) -> None:
    """Refuse a decay that is negative or not finite."""
    if not 0 <= decay < np.inf:
        raise InvalidParameter(f"decay is {decay}; allowed: a finite number of at least 0.")


def _check_ratio(aspect_ratio: float | np.ndarray) -> np.ndarray:
    """Return ``aspect_ratio`` as an array, refused unless finite and above 0."""
    delta = np.asarray(aspect_ratio, dtype=np.float64)
    if not (np.isfinite(delta).all() and (delta > 0).all()):
        raise InvalidParameter(f"aspect_ratio is {aspect_ratio}; allowed: finite, above 0 (n / D).")
    return delta


def _check_summable(decay: float) -> None:
    if not 0.5 < decay < np.inf:
        raise InvalidParameter(
            f"decay is {decay}; allowed: above 1/2, where infinitely many weights can be "
            "normalised. Use normalised_mse_sum for slower decay."
        )
