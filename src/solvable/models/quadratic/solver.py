r"""Bracketed solver of the saddle point of a quadratic network."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from solvable.errors import NotConverged
from solvable.models.quadratic.saddle import (
    LEAST_NOISE,
    SaddlePoint,
    energy_above,
    second_moment,
    thresholded_error,
)
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import TruncatedMoments, truncated_moments, truncated_moments_near
from solvable.spectra.measures import Measure

LARGEST_NOISE = 1e5
"""Effective noise, relative to that of the null predictor, above which there is no solution."""

RESOLVED_ERROR = 1e-12
"""Error, relative to the target's second moment, below which recovery counts as perfect."""

IMBALANCE = 1e-12
"""Relative error of the effective variance at which the search stops."""


class PerfectRecovery(Exception):
    """The error vanishes: there is no effective noise left to solve for."""


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
            if total - energy_above(moments) >= 0:
                return moments
        low, b, high = self._among_nodes(law, total, pull)
        anchor = None
        for _ in range(100):
            moments, anchor = _moments_near(law, b, anchor)
            b = float(moments.threshold[0])
            excess = total - energy_above(moments) - (pull / b if b else 0.0)
            if abs(excess) <= 1e-15 * total:
                return moments
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
        self._seen[log_noise] = point
        total = error + self.label_noise / 2
        # Below, the error is a difference of rounded numbers of the size of the energy.
        if total <= RESOLVED_ERROR * self.energy:
            return np.nan
        return float(np.log(total / (2 * self.sample_ratio * law.variance)))

    def _range(self) -> tuple[float, float, float]:
        """Logarithms between which the solution lies, and the noise of the null predictor."""
        null = float(np.sqrt((self.energy + self.label_noise / 2) / (2 * self.sample_ratio)))
        if null == 0:
            raise PerfectRecovery
        # At the floor the error is at least 0, and just below it the imbalance above 0.
        floor = (1 - 1e-6) * np.sqrt(self.label_noise / (4 * self.sample_ratio))
        least = LEAST_NOISE * float(np.abs(self.target.pieces).max())
        return float(np.log(max(floor, least))), float(np.log(LARGEST_NOISE * null)), null

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
        low, high, null = self._range()
        here = min(max(float(np.log(guess or null)), low + 1e-9), high)
        below, above = -np.inf, np.inf
        past: list[tuple[float, float]] = []
        for _ in range(200):
            gap = self.imbalance(here)
            if np.isnan(gap):
                if not past or past[-1][1] - here < 0.7:
                    raise PerfectRecovery
                low, here = here, (here + past[-1][1]) / 2
                continue
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
                there = (here + low) / 2
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
    if step * gap <= 0 or abs(step) > 2 * last + 2:
        step = np.sign(gap) * 2 * last
    return here + float(step) if len(past) > 1 else there
