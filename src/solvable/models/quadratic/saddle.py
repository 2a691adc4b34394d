r"""The scalar saddle point of a quadratic network: its objective and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import TruncatedMoments, truncated_moments
from solvable.spectra.measures import Measure, discrete

LEAST_NOISE = 1e-11
"""Effective noise, relative to the largest eigenvalue, below which recovery counts as perfect."""


def as_measure(target: Measure | np.ndarray) -> Measure:
    r"""Target spectrum as a measure.

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`, or eigenvalues of equal weight; none below 0.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    InvalidData
        If an eigenvalue is negative or not finite.

    Examples
    --------
    >>> as_measure(np.array([0.0, 2.0])).node_weights
    array([0.5, 0.5])
    """
    given = isinstance(target, np.ndarray | Sequence)
    measure = discrete(np.asarray(target)) if given else cast("Measure", target)
    ends = measure.pieces
    if ends[0, 0] < -1e-10 * np.abs(ends).max():
        raise InvalidData(
            f"the target has an eigenvalue {ends[0, 0]:.4g}; allowed: at least 0, as the network is "
            "a sum of squares. Shift the spectrum or drop its negative part."
        )
    return measure


def second_moment(target: Measure) -> float:
    r""":math:`Q^\star=\int s^2\mu^\star(ds)`.

    Parameters
    ----------
    target : Measure
        :math:`\mu^\star`.

    Returns
    -------
    float
        :math:`Q^\star`.
    """
    return float(target.node_weights @ np.square(target.nodes))


def saddle_objective(
    target: Measure | np.ndarray,
    *,
    residual_norm: float,
    effective_noise: float,
    sample_ratio: float,
    label_noise: float,
    regularisation: float,
) -> float:
    r"""Scalar function whose saddle point, max over B and min over delta, is the trained network.

    .. math::
        \Phi(B,\delta)=2\alpha B\delta+\frac{B\Delta}{2\delta}-B^2
        +\frac B\delta\Big(Q^\star-J\big(\delta,\tfrac{\tilde\lambda\delta}{2B}\big)\Big),
        \qquad J(\delta,b)=\int_b^\infty\mu^\star_\delta(dx)(x-b)^2 .

    It is convex in :math:`\delta` and concave in B: it is a minimum over S of a function that is
    jointly convex in :math:`(S,\delta)` and, up to :math:`-B^2`, linear in B.

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`.
    residual_norm : float
        B, above 0; at the saddle :math:`B^2=\frac1{d^2}\sum_\mu r_\mu^2`.
    effective_noise : float
        :math:`\delta`, above 0.
    sample_ratio, label_noise, regularisation : float
        :math:`\alpha=n/d^2`, :math:`\Delta` (a variance) and :math:`\tilde\lambda`.

    Returns
    -------
    float
        :math:`\Phi`; at the saddle the minimum of the training objective.

    Notes
    -----
    Derived by a Gaussian comparison; its stationarity is the system of arXiv:2505.17958. Backed by
    ``tests/models/quadratic/test_saddle.py``.

    Examples
    --------
    >>> value = saddle_objective(
    ...     np.array([0.0]), residual_norm=1.0, effective_noise=1.0, sample_ratio=1.0,
    ...     label_noise=1.0, regularisation=0.0,
    ... )
    >>> round(value, 10)  # J(1, 0) = 1/2
    1.0
    """
    measure = as_measure(target)
    threshold = regularisation * effective_noise / (2 * residual_norm)
    second = truncated_moments(SpectralLaw(measure, noise=effective_noise), threshold).second[0]
    free = 2 * sample_ratio * effective_noise + label_noise / (2 * effective_noise)
    spread = (second_moment(measure) - float(second)) / effective_noise
    return residual_norm * (free + spread) - residual_norm**2


@dataclass(frozen=True)
class SaddlePoint:
    r"""The saddle point :math:`(\delta,b)` with the law and the moments above the threshold.

    Attributes
    ----------
    effective_noise : float
        :math:`\delta`.
    threshold : float
        :math:`b`.
    matrix_error : float
        R of :math:`(S^\star+\delta Z-b)_+`.
    law : SpectralLaw
        Of :math:`S^\star+\delta Z`.
    moments : TruncatedMoments
        Above b.
    """

    effective_noise: float
    threshold: float
    matrix_error: float
    law: SpectralLaw
    moments: TruncatedMoments


def thresholded_error(energy: float, moments: TruncatedMoments) -> float:
    r"""Error :math:`R=\frac1d\|(S^\star+\delta Z-b)_+-S^\star\|_F^2`.

    .. math:: R=Q^\star+4\delta^2A-\int_b^\infty\mu_\delta(dx)(x^2-b^2).

    Parameters
    ----------
    energy : float
        :math:`Q^\star`.
    moments : TruncatedMoments
        Of one threshold.

    Returns
    -------
    float
        R, at least 0.

    Examples
    --------
    >>> law = SpectralLaw([0.0], noise=1.0)
    >>> round(thresholded_error(0.0, truncated_moments(law, 0.0)), 12)
    0.5
    """
    return max(float(energy + 4 * moments.noise**2 * moments.slope[0] - energy_above(moments)), 0.0)


def energy_above(moments: TruncatedMoments) -> float:
    r"""Integral :math:`\int_b^\infty\mu_\delta(dx)(x^2-b^2)`.

    Parameters
    ----------
    moments : TruncatedMoments
        Of one threshold.

    Returns
    -------
    float
        :math:`J-b\,\partial_2J`.
    """
    return float(moments.second[0] + 2 * moments.threshold[0] * moments.first[0])


def check_problem(*, sample_ratio: float, label_noise: float, regularisation: float) -> None:
    r"""Refuse parameters outside the theory's domain.

    Parameters
    ----------
    sample_ratio : float
        :math:`\alpha`, finite and above 0.
    label_noise, regularisation : float
        :math:`\Delta` and :math:`\tilde\lambda`, finite and at least 0.

    Raises
    ------
    InvalidParameter
        If one is out of range.

    Examples
    --------
    >>> check_problem(sample_ratio=0.5, label_noise=0.0, regularisation=0.1)
    """
    if not 0 < sample_ratio < np.inf:
        raise InvalidParameter(
            f"sample_ratio is {sample_ratio}; allowed: a finite number above 0 (samples over d^2)."
        )
    for name, value in (("label_noise", label_noise), ("regularisation", regularisation)):
        if not 0 <= value < np.inf:
            raise InvalidParameter(f"{name} is {value}; allowed: a finite number of at least 0.")
