r"""Quadratic networks whose labels are noise: the bulk of the learned spectrum and its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, NotConverged
from solvable.spectra.roots import bracketed_root

NODES, RULE = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class SemicircleTail:
    r"""Moments of the semicircle on :math:`[-2,2]` above :math:`a\in[0,2]`, 0 beyond.

    Parameters
    ----------
    mass, first, second : float
        :math:`\int_a^2(x-a)^k\mu_{sc}` for k = 0, 1, 2; the last is :math:`j(a)`.
    slope : float
        :math:`A=\frac14(2j-aj')`, the degrees of freedom of the bulk over :math:`d^2`.
    """

    mass: float
    first: float
    second: float
    slope: float


def semicircle_tail(threshold: float) -> SemicircleTail:
    r"""Moments of the semicircle above a threshold, to rounding also near its edge.

    .. math:: j(a)=\int_a^2(x-a)^2\mu_{sc}(dx)\simeq\frac{16}{105\pi}(2-a)^{7/2},\qquad
        A(a)\simeq\frac{4}{15\pi}(2-a)^{5/2}\quad(a\to2),\qquad j(0)=\tfrac12,\ A(0)=\tfrac14 .

    Parameters
    ----------
    threshold : float
        :math:`a\ge0`, in units of the noise.

    Returns
    -------
    SemicircleTail
        By Gauss-Legendre in the angle, where nothing cancels.

    Notes
    -----
    Backed by ``tests/models/quadratic/test_phases.py`` (:class:`~solvable.spectra.SpectralLaw`).

    Examples
    --------
    >>> tail = semicircle_tail(0.0)
    >>> round(tail.second, 12), round(tail.slope, 12)
    (0.5, 0.25)
    """
    if not 0 <= threshold < np.inf:
        raise InvalidParameter(f"threshold is {threshold}; allowed: a finite number of at least 0.")
    if threshold >= 2:
        return SemicircleTail(0.0, 0.0, 0.0, 0.0)
    end = 2 * np.arcsin(np.sqrt((2 - threshold) / 4))
    angle = end / 2 * (1 + NODES)
    weights = end / 2 * RULE * 2 / np.pi * np.sin(angle) ** 2
    rise = 4 * np.sin((end + angle) / 2) * np.sin((end - angle) / 2)
    mass, first, second = (float(weights @ rise**power) for power in range(3))
    return SemicircleTail(mass, first, second, (second + threshold * first) / 2)


@dataclass(frozen=True)
class NoiseState:
    r"""Network trained on labels without learnable structure.

    Parameters
    ----------
    effective_noise, threshold : float
        :math:`\delta` and b.
    matrix_error : float
        R, unresolved energy included.
    """

    effective_noise: float
    threshold: float
    matrix_error: float


def noise_only(
    *, sample_ratio: float, label_noise: float, regularisation: float = 0.0, unresolved: float = 0.0
) -> NoiseState:
    r"""Exact solution without a target, or with one of which nothing is learned.

    .. math:: \delta^2=\frac{\Delta/2+R_0}{2\alpha-j(a)},\quad
        \tilde\lambda=4a\delta\,(\alpha-A(a)),\quad b=a\delta,\quad R=R_0+\delta^2j(a),

    where energy :math:`R_0` that is not resolved acts as label noise :math:`2R_0`. Without
    regularisation and below :math:`\alpha=\frac14`, :math:`A(a)=\alpha`: the interpolator of least
    trace. Past it a = 0 and :math:`R=R_0+\frac{\Delta/2+R_0}{4\alpha-1}`.

    Parameters
    ----------
    sample_ratio : float
        :math:`\alpha=n/d^2`.
    label_noise : float
        :math:`\Delta`, a variance.
    regularisation : float
        :math:`\tilde\lambda\ge0`.
    unresolved : float
        :math:`R_0\ge0`; :math:`\Delta+2R_0` must be above 0.

    Returns
    -------
    NoiseState
        With :math:`a\ge2` nothing is fitted and :math:`R=R_0`.

    Raises
    ------
    NotConverged
        At :math:`\alpha=\frac14` without regularisation, where the error has no limit.

    Notes
    -----
    Derived from arXiv:2505.17958; backed by ``tests/models/quadratic/test_phases.py``.

    Examples
    --------
    >>> peak = noise_only(sample_ratio=0.25, label_noise=0.5, regularisation=1e-4)
    >>> round(peak.matrix_error, 2)
    40.64
    """
    check_positive(sample_ratio=sample_ratio)
    check_not_negative(
        label_noise=label_noise, regularisation=regularisation, unresolved=unresolved
    )
    variance = label_noise / 2 + unresolved
    if variance == 0:
        raise InvalidParameter(
            "label_noise and unresolved are both 0; allowed: at least one of them above 0, as "
            "otherwise nothing is fitted."
        )
    alpha = sample_ratio
    null = float(np.sqrt(variance / (2 * alpha)))
    if regularisation >= 8 * alpha * null:
        return NoiseState(null, regularisation / (4 * alpha), unresolved)
    low = 0.0
    if alpha < 0.25:
        low = bracketed_root(
            lambda a: semicircle_tail(a).slope / alpha - 1, 0.0, 2.0, absolute=1e-15
        )

    def noise(a: float) -> float:
        room = 2 * alpha - semicircle_tail(a).second
        return float(np.sqrt(variance / room)) if room > 1e-13 * alpha else np.inf

    def excess(a: float) -> float:
        free = 4 * a * (alpha - semicircle_tail(a).slope)
        return (free * noise(a) if free > 0 else 0.0) - regularisation

    if low == 0 and noise(0.0) == np.inf and regularisation == 0:
        raise NotConverged(
            "the error has no finite limit at a sample ratio of 1/4 without regularisation: it is "
            "the interpolation peak. Use a regularisation above 0.",
            {"sample_ratio": alpha},
        )
    a = low if regularisation == 0 else bracketed_root(excess, low, 2.0)
    delta = noise(a)
    return NoiseState(delta, a * delta, unresolved + delta**2 * semicircle_tail(a).second)


def overfitting_risk(*, sample_ratio: float, label_noise: float) -> float:
    r"""Phase V at few samples: the bulk is what is learned of the noise.

    .. math:: R_V=\frac\Delta{4\alpha}\,\frac{16}{105\pi}\Big(\frac{15\pi\alpha}4\Big)^{7/5}

    Limit of :func:`noise_only` for :math:`\alpha\to0` without regularisation, where
    :math:`2-a=(15\pi\alpha/4)^{2/5}`; corrections are of relative order :math:`\alpha^{2/5}`, 12 %
    still at :math:`\alpha=10^{-3}`.

    Parameters
    ----------
    sample_ratio : float
        :math:`\alpha`.
    label_noise : float
        :math:`\Delta`.

    Returns
    -------
    float
        The law, growing like :math:`\alpha^{2/5}`.

    Examples
    --------
    >>> exact = noise_only(sample_ratio=1e-3, label_noise=0.5).matrix_error
    >>> round(exact / overfitting_risk(sample_ratio=1e-3, label_noise=0.5), 3)
    1.117
    """
    check_positive(sample_ratio=sample_ratio)
    check_not_negative(label_noise=label_noise)
    gap = (15 * np.pi * sample_ratio / 4) ** 0.4
    return float(label_noise / (4 * sample_ratio) * 16 / (105 * np.pi) * gap**3.5)


def interpolation_peak_risk(
    *, regularisation: float, label_noise: float, unresolved: float = 0.0
) -> float:
    r"""Peak of the error where the labels are just interpolated.

    .. math:: R=\frac12\Big(\frac{3\pi}8\Big)^{2/3}\Big(\frac\Delta2+R_0\Big)^{4/3}\tilde\lambda^{-2/3}

    Limit of :func:`noise_only` at :math:`\alpha=\frac14` for small regularisation, where
    :math:`1/\epsilon^2=8\tilde\lambda/3\pi\delta`. A target of extensive trace has a finite limit
    instead, below which this law stops.

    Parameters
    ----------
    regularisation : float
        :math:`\tilde\lambda>0`.
    label_noise : float
        :math:`\Delta`.
    unresolved : float
        Energy :math:`R_0` of features below the noise.

    Returns
    -------
    float
        The law.

    Examples
    --------
    >>> round(interpolation_peak_risk(regularisation=1e-4, label_noise=0.5), 2)
    40.77
    """
    check_positive(regularisation=regularisation)
    check_not_negative(label_noise=label_noise, unresolved=unresolved)
    variance = label_noise / 2 + unresolved
    return float(0.5 * (3 * np.pi / 8) ** (2 / 3) * variance ** (4 / 3) / regularisation ** (2 / 3))


def check_not_negative(**values: float) -> None:
    """Refuse values below 0.

    Parameters
    ----------
    **values : float
        By name.

    Raises
    ------
    InvalidParameter
        Unless each is a finite number of at least 0.
    """
    for name, value in values.items():
        if not 0 <= value < np.inf:
            raise InvalidParameter(f"{name} is {value}; allowed: a finite number of at least 0.")
