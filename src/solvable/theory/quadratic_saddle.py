r"""The scalar saddle point of a quadratic network: objective, and a bracketed solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import (
    TruncatedMoments,
    truncated_moments,
    truncated_moments_near,
)
from solvable.spectra.measures import Measure, discrete

LEAST_NOISE = 1e-11
"""Effective noise, relative to the largest eigenvalue, below which recovery counts as perfect."""

LARGEST_NOISE = 1e5
"""Effective noise, relative to that of the null predictor, above which there is no solution."""

IMBALANCE = 1e-12
"""Relative error of the effective variance at which the search stops."""


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
    ``tests/theory/test_quadratic_saddle.py``.

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
    return max(float(energy + 4 * moments.noise**2 * moments.slope[0] - _lost(moments)), 0.0)


def _lost(moments: TruncatedMoments) -> float:
    r""":math:`\int_b^\infty\mu_\delta(dx)(x^2-b^2)`."""
    return float(moments.second[0] + 2 * moments.threshold[0] * moments.first[0])


@dataclass
class SaddleProblem:
    r"""Bracketed solver: at each :math:`\delta` the best B, then the one root in :math:`\delta`.

    At fixed :math:`\delta` the best B, with :math:`b=\tilde\lambda\delta/2B`, solves

    .. math:: 2\alpha\delta^2+\tfrac\Delta2+Q^\star=\int_b^\infty\mu_\delta(dx)(x^2-b^2)
              +\frac{\tilde\lambda\delta^2}b,

    where the difference of both sides is increasing and concave in :math:`b^2`: Newton from the left
    is monotone. The maximum over B is convex in :math:`\delta`, and its slope has the sign of
    :math:`2\alpha\delta^2-\frac\Delta2-R(\delta,b)`: one change of sign. With
    :math:`\tilde\lambda=0` the same two equations hold, with b = 0 where the left side is larger.

    Parameters
    ----------
    target : Measure
        :math:`\mu^\star`.
    sample_ratio, label_noise, regularisation : float
        :math:`\alpha>0`, :math:`\Delta\ge0`, :math:`\tilde\lambda\ge0`.
    """

    target: Measure
    sample_ratio: float
    label_noise: float
    regularisation: float
    evaluations: int = field(default=0, init=False)
    slope: float = field(default=-2.0, init=False)

    def __post_init__(self) -> None:
        self.energy = second_moment(self.target)
        self._seen: dict[float, SaddlePoint] = {}

    def best_threshold(self, law: SpectralLaw) -> TruncatedMoments:
        """Moments above the root of the first equation, or above 0 where there is none."""
        total = 2 * self.sample_ratio * law.variance + self.label_noise / 2 + self.energy
        pull = self.regularisation * law.variance
        top = float(law.edges[-1, 1])
        if top <= 0 or total - pull / top <= 0:
            return truncated_moments(law, pull / total)
        if pull == 0:
            moments = truncated_moments(law, 0.0)
            if total - _lost(moments) >= 0:
                return moments
        low, b, high = self._among_nodes(law, total, pull)
        anchor = None
        for _ in range(100):
            moments, anchor = _moments_near(law, b, anchor)
            b = float(moments.threshold[0])
            excess = total - _lost(moments) - (pull / b if b else 0.0)
            low, high = (b, high) if excess <= 0 else (low, b)
            moved = b * b - excess / (moments.mass[0] + (pull / (2 * b**3) if b else 0.0))
            after = float(np.sqrt(moved)) if moved > 0 else 0.0
            if not low <= after <= high:
                after = float(np.sqrt(low * high)) if low > 0 else high / 2
            # The steps are quadratic: the next would be below rounding.
            if abs(after - b) <= 1e-8 * b:
                return _moments_near(law, after, anchor)[0]
            b = after
        raise NotConverged(
            "the threshold at fixed effective noise did not settle; change the regularisation by one "
            "part in a billion.",
            {"threshold": b, "effective_noise": law.noise, "bracket": (low, high)},
        )

    @staticmethod
    def _among_nodes(law: SpectralLaw, total: float, pull: float) -> tuple[float, float, float]:
        """Bracket of the root and a guess, from sums over the nodes above each node."""
        least, top = pull / total, float(law.edges[-1, 1])
        x, weights = law.x[::-1], law.weights[::-1]
        x, weights = x[x > least], weights[x > least]
        if x.size == 0:
            return least, (least + top) / 2, top
        # Half a node lies above its own place.
        mass = np.cumsum(weights) - weights / 2
        excess = total - (np.cumsum(weights * x**2) - weights * x**2 / 2 - x**2 * mass) - pull / x
        below = np.flatnonzero(excess <= 0)
        if below.size == 0:
            # All nodes are above the root: the integrals hardly depend on it.
            rest = total - (weights @ x**2)
            return least, min(pull / rest, float(x[-1])) if rest > 0 else float(x[-1]) / 2, top
        k = int(below[0])
        if k == 0:
            return least, float(x[0]), top
        share = excess[k] / (excess[k] - excess[k - 1])
        return least, float(x[k] + share * (x[k - 1] - x[k])), top

    def imbalance(self, log_noise: float) -> float:
        r"""Logarithm of :math:`(R+\frac\Delta2)/(2\alpha\delta^2)`: positive below the root."""
        self.evaluations += 1
        noise = float(np.exp(log_noise))
        law = SpectralLaw(self.target, noise=noise)
        moments = self.best_threshold(law)
        error = thresholded_error(self.energy, moments)
        point = SaddlePoint(noise, float(moments.threshold[0]), error, law, moments)
        spread = (error + self.label_noise / 2) / (2 * self.sample_ratio * law.variance)
        if spread < 1 and error + self.label_noise / 2 < 1e-15 * self.energy:
            raise PerfectRecovery
        gap = np.log(spread)
        self._seen[log_noise] = point
        return float(gap)

    def solve(self, guess: float | None = None, slope: float = -2.0) -> SaddlePoint:
        """Find the saddle point; a guess changes the number of evaluations, not the answer.

        Parameters
        ----------
        guess : float, optional
            Of the effective noise; that of the null predictor by default.
        slope : float
            Of the imbalance near the solution, below 0; -2 is the fixed-point iteration.

        Returns
        -------
        SaddlePoint
            The solution.

        Raises
        ------
        NotConverged
            If there is no finite one.
        PerfectRecovery
            If the error vanishes.
        """
        null = np.sqrt((self.energy + self.label_noise / 2) / (2 * self.sample_ratio))
        floor = np.sqrt(self.label_noise / (4 * self.sample_ratio))
        least = LEAST_NOISE * float(np.abs(self.target.pieces).max())
        if null == 0:
            raise PerfectRecovery
        # At the floor the imbalance is positive: the error is.
        low, high = float(np.log(max(floor, least))), float(np.log(LARGEST_NOISE * null))
        here = float(np.log(null if guess is None else guess))
        here = min(max(here, low + 1e-9), high)
        below, above = -np.inf, np.inf
        past: list[tuple[float, float]] = []
        for _ in range(200):
            gap = self.imbalance(here)
            below, above = (here, above) if gap > 0 else (below, here)
            if past and past[-1][1] != here and gap != past[-1][0]:
                self.slope = min((gap - past[-1][0]) / (here - past[-1][1]), -0.01)
            rounding = 4e-15 * self.energy / (self._seen[here].matrix_error + self.label_noise / 2)
            if abs(gap) <= IMBALANCE + rounding:
                return self._seen[here]
            past = [*past[-2:], (gap, here)]
            there = _next(past, below, above, slope)
            if there >= high:
                raise NotConverged(
                    "the error of the network has no finite limit at this sample ratio without "
                    "regularisation: it sits on the interpolation peak. Use a regularisation above 0.",
                    {"effective_noise": np.exp(here), "imbalance": gap},
                )
            if there <= low:
                if here <= low + 1e-9:
                    raise PerfectRecovery
                there = (here + low) / 2 if floor > least else low + 5e-10
            if abs(there - here) <= 1e-14:
                return self._seen[here]
            here = there
        raise NotConverged(
            "the effective noise did not settle in 200 steps; change the regularisation by one part "
            "in a billion.",
            {"effective_noise": np.exp(here), "imbalance": gap, "bracket": (below, above)},
        )


Anchor = tuple[float, float, float] | None


def _moments_near(
    law: SpectralLaw, threshold: float, anchor: Anchor
) -> tuple[TruncatedMoments, Anchor]:
    """Moments at or near a positive threshold."""
    moments, found = truncated_moments_near(law, threshold, anchor)
    away = abs(float(moments.threshold[0]) - threshold)
    # A tiny threshold has more digits than places of the law have: keep the one asked for.
    if away <= 1e-14 * law.noise:
        moments = replace(moments, threshold=np.array([threshold]))
    elif away > threshold / 2:
        return truncated_moments(law, threshold), None
    return moments, found


def _next(past: list[tuple[float, float]], below: float, above: float, slope: float) -> float:
    """Next logarithm of the noise: inverse interpolation, kept inside the bracket."""
    gap, here = past[-1]
    there = here - gap / slope
    if len(past) > 1 and len({value for value, _ in past}) == len(past):
        # Place as a polynomial in the imbalance, at imbalance 0 (Lagrange).
        there = 0.0
        for value, place in past:
            share = [other / (other - value) for other, _ in past if other != value]
            there += place * float(np.prod(share))
    closed = np.isfinite(below) and np.isfinite(above)
    if closed:
        stuck = len(past) > 1 and abs(gap) > abs(past[-2][0]) / 2
        return (below + above) / 2 if stuck or not below < there < above else there
    # Not past a root yet: go on in its direction, at least as far as the last step did.
    step = gap / 2 if len(past) == 1 else there - here
    last = abs(here - past[-2][1]) if len(past) > 1 else abs(step)
    if step * gap <= 0 or abs(step) > 4 * last + 4:
        step = np.sign(gap) * 2 * last
    return here + float(step) if len(past) > 1 else there


class PerfectRecovery(Exception):
    """The error vanishes: there is no effective noise left to solve for."""


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
