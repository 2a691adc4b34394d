r"""The scalar saddle point of a quadratic network: objective, and a bracketed solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, NotConverged
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import TruncatedMoments, truncated_moments
from solvable.spectra.measures import Measure, discrete

LEAST_NOISE = 1e-11
"""Effective noise, relative to the largest eigenvalue, below which recovery counts as perfect."""

LARGEST_NOISE = 1e5
"""Effective noise, relative to that of the null predictor, above which there is no solution."""


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
    kept = moments.second[0] + 2 * moments.threshold[0] * moments.first[0]
    return max(float(energy + 4 * moments.noise**2 * moments.slope[0] - kept), 0.0)


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

    def __post_init__(self) -> None:
        self.energy = second_moment(self.target)
        self._seen: dict[float, tuple[float, SaddlePoint]] = {}

    def best_threshold(self, law: SpectralLaw) -> float:
        """Root of the first equation above, 0 where there is none."""
        total = 2 * self.sample_ratio * law.variance + self.label_noise / 2 + self.energy
        pull = self.regularisation * law.variance
        top = law.edges[-1, 1]
        if top <= 0 or total - pull / top <= 0:
            return pull / total
        start = truncated_moments(law, 0.0)
        if pull == 0 and total - start.second[0] >= 0:
            return 0.0
        low, high = pull / total, float(top)
        low, high = self._nodes_bracket(law, total, pull, low, high)
        b = low if low > 0 else np.sqrt((start.second[0] - total) / start.mass[0])
        for _ in range(100):
            moments = truncated_moments(law, b)
            kept = moments.second[0] + 2 * b * moments.first[0]
            excess = total - kept - (pull / b if b else 0.0)
            low, high = (b, high) if excess <= 0 else (low, b)
            slope = moments.mass[0] + (pull / (2 * b**3) if b else 0.0)
            moved = b * b - excess / slope
            after = np.sqrt(moved) if moved > 0 else 0.0
            if not low <= after <= high:
                after = np.sqrt(low * high) if low > 0 else high / 2
            if abs(after - b) <= 1e-14 * b:
                return float(after)
            b = after
        raise NotConverged(
            "the threshold at fixed effective noise did not settle; change the regularisation by one "
            "part in a billion.",
            {"threshold": b, "effective_noise": law.noise, "bracket": (low, high)},
        )

    @staticmethod
    def _nodes_bracket(
        law: SpectralLaw, total: float, pull: float, low: float, high: float
    ) -> tuple[float, float]:
        """Narrow the bracket by sums over the nodes above, whose error the caller undoes."""
        x, weights = law.x[::-1], law.weights[::-1]
        x, weights = x[x > low], weights[x > low]
        if x.size == 0:
            return low, high
        mass = np.cumsum(weights)
        excess = total - (np.cumsum(weights * x**2) - x**2 * mass) - pull / x
        below = np.flatnonzero(excess <= 0)
        if below.size == 0:
            return low, high
        # One node further: within a panel the sums are off by less than one node's share.
        return float(x[min(below[0] + 1, x.size - 1)]), high

    def imbalance(self, log_noise: float) -> float:
        r"""Logarithm of :math:`(R+\frac\Delta2)/(2\alpha\delta^2)`: positive below the root."""
        if log_noise in self._seen:
            return self._seen[log_noise][0]
        self.evaluations += 1
        noise = float(np.exp(log_noise))
        law = SpectralLaw(self.target, noise=noise)
        threshold = self.best_threshold(law)
        moments = truncated_moments(law, threshold)
        error = thresholded_error(self.energy, moments)
        point = SaddlePoint(noise, threshold, error, law, moments)
        with np.errstate(divide="ignore"):
            gap = np.log((error + self.label_noise / 2) / (2 * self.sample_ratio * law.variance))
        self._seen[log_noise] = (float(gap), point)
        return float(gap)

    def bracket(self, guess: float) -> tuple[float, float]:
        """Logarithms of two noises between which the sign changes, from any positive guess."""
        null = np.sqrt((self.energy + self.label_noise / 2) / (2 * self.sample_ratio))
        floor = np.sqrt(self.label_noise / (4 * self.sample_ratio))
        here = float(np.log(max(guess, floor * (1 + 1e-9))))
        gap = self.imbalance(here)
        if gap == 0:
            return here, here
        step = gap / 2
        while True:
            there = here + step
            if step < 0:
                least = LEAST_NOISE * float(np.abs(self.target.pieces).max())
                lowest = np.log(max(floor * (1 - 1e-12), least))
                if here <= lowest:
                    raise PerfectRecovery
                there = max(there, float(lowest))
            elif there > np.log(LARGEST_NOISE * null):
                raise NotConverged(
                    "the error of the network has no finite limit at this sample ratio without "
                    "regularisation: it sits on the interpolation peak. Use a regularisation above 0.",
                    {"effective_noise": np.exp(here), "imbalance": gap},
                )
            next_gap = self.imbalance(there)
            if (next_gap > 0) != (gap > 0) or next_gap == 0:
                return (here, there) if here < there else (there, here)
            here, gap, step = there, next_gap, 2 * step

    def solve(self, guess: float | None = None) -> SaddlePoint:
        """Find the saddle point; a guess changes the number of evaluations, not the answer."""
        from scipy.optimize import brentq

        if guess is None:
            guess = np.sqrt((self.energy + self.label_noise / 2) / (2 * self.sample_ratio))
        if not guess > 0:
            raise PerfectRecovery
        low, high = self.bracket(guess)
        root = low
        if low < high:
            root = brentq(self.imbalance, low, high, xtol=1e-13, rtol=1e-13)
        self.imbalance(root)
        return self._seen[root][1]


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
