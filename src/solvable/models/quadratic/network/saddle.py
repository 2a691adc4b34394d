r"""The scalar saddle point of a quadratic network: its objective, and the one search that finds it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import (
    TruncatedMoments,
    energy_above,
    thresholded_error,
    truncated_moments,
    truncated_moments_near,
)
from solvable.spectra.measures import Measure, second_moment

LEAST_PENALTY = 1e-100
"""Penalty, if any, below which powers of its threshold are beyond arithmetic."""

LEAST_NOISE = 1e-11
"""Effective noise, relative to the largest eigenvalue, below which recovery counts as perfect."""


LEAST_ERROR = 1e-12
"""Error, relative to the target's energy, that is rounding."""


class PerfectRecovery(Exception):
    """The error vanishes: there is no effective noise left to solve for."""


def check_problem(*, sample_ratio: float, label_noise: float, regularisation: float) -> None:
    """Refuse parameters outside the theory's domain."""
    if not 0 < sample_ratio < np.inf:
        raise InvalidParameter(
            f"sample_ratio is {sample_ratio}; allowed: a finite number above 0 (samples over d^2)."
        )
    check_not_negative(label_noise=label_noise, regularisation=regularisation)
    if 0 < regularisation < LEAST_PENALTY:
        raise InvalidParameter(
            f"regularisation is {regularisation}; allowed: 0, or at least {LEAST_PENALTY:g}."
        )


def check_not_negative(**values: float) -> None:
    """Refuse values that are not finite numbers of at least 0, by name."""
    for name, value in values.items():
        if not 0 <= value < np.inf:
            raise InvalidParameter(f"{name} is {value}; allowed: a finite number of at least 0.")


@dataclass(frozen=True)
class SaddlePoint:
    """The two scalars delta and b, the error R, the law of S* + delta Z and its moments above b."""

    effective_noise: float
    threshold: float
    matrix_error: float
    law: SpectralLaw
    moments: TruncatedMoments


@dataclass
class SaddleProblem:
    """Bracketed search: at each delta the best B, then the one root in delta."""

    # The maximum over B is convex in delta, and its slope has the sign of 2 alpha delta² - Delta/2
    # - R(delta, b): one change of sign. With lambda = 0 the same two equations hold, with b = 0
    # where the left side of the one in `best_threshold` is larger.

    target: Measure
    sample_ratio: float
    label_noise: float
    regularisation: float

    def __post_init__(self) -> None:
        self.energy = second_moment(self.target)

    def best_threshold(self, law: SpectralLaw) -> TruncatedMoments:
        """Moments above the threshold of the best B, or above 0 where there is none."""
        # b solves 2 alpha delta² + Delta/2 + Q* = int_b (x² - b²) mu_delta + lambda delta² / b;
        # the difference of both sides is increasing and concave in b²: Newton from the left is
        # monotone.
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

    def imbalance(self, log_noise: float) -> tuple[float, SaddlePoint]:
        """Logarithm of (R + Delta/2) / 2 alpha delta², positive below the root in delta."""
        noise = float(np.exp(log_noise))
        law = SpectralLaw(self.target, noise=noise)
        moments = self.best_threshold(law)
        error = thresholded_error(self.energy, moments)
        # A smaller error is a difference of rounded numbers of the size of the energy.
        total = max(error + self.label_noise / 2, LEAST_ERROR * self.energy)
        point = SaddlePoint(noise, float(moments.threshold[0]), error, law, moments)
        return float(np.log(total / (2 * self.sample_ratio * law.variance))), point

    def _range(self) -> tuple[float, float, float]:
        """Logarithms between which the solution lies, and the noise of the null predictor."""
        null = float(np.sqrt((self.energy + self.label_noise / 2) / (2 * self.sample_ratio)))
        if null == 0:
            raise PerfectRecovery
        # At the floor the error is at least 0, and just below it the imbalance above 0.
        floor = (1 - 1e-6) * np.sqrt(self.label_noise / (4 * self.sample_ratio))
        least = LEAST_NOISE * float(np.abs(self.target.pieces).max())
        # Beyond 1e5 times the noise of the null predictor there is no solution.
        return float(np.log(max(floor, least))), float(np.log(1e5 * null)), null

    def solve(self, guess: float | None = None) -> SaddlePoint:
        """Find the saddle point; a guess changes the number of evaluations, not the answer."""
        low, high, null = self._range()
        below, above = low, high
        here = min(max(float(np.log(guess or null)), low + 1e-9), high)
        past: tuple[float, float] | None = None
        slope = -2.0  # that of the fixed-point iteration
        for _ in range(200):
            gap, point = self.imbalance(here)
            total = point.matrix_error + self.label_noise / 2
            if abs(gap) <= 1e-12 + 4e-15 * self.energy / max(total, LEAST_ERROR * self.energy):
                if total <= LEAST_ERROR * self.energy:
                    raise PerfectRecovery
                return point
            below, above = (here, above) if gap > 0 else (below, here)
            if below > high - 1e-3:
                raise NotConverged(
                    "the error of the network has no finite limit at this sample ratio without "
                    "regularisation: it sits on the interpolation peak. Use a regularisation above 0.",
                    {"effective_noise": np.exp(here), "imbalance": gap},
                )
            if above < low + 1e-9:
                raise PerfectRecovery
            # Secants in the bracket; where they hardly gain, bisection, or twice the last step.
            least, slow = 0.0, past is not None and abs(gap) > abs(past[1]) / 2
            closed = below > low and above < high
            if past is not None and past[0] != here and past[1] != gap:
                slope = min((gap - past[1]) / (here - past[0]), -0.01)
                least = 2 * min(abs(here - past[0]), 1.5) if slow and not closed else 0.0
            there = here + float(np.sign(gap) * np.clip(-abs(gap) / slope, least, 3.0))
            if (slow and closed) or not below < there < above:
                there = (below + above) / 2
            if abs(there - here) <= 1e-14:
                return point
            past, here = (here, gap), there
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
    moments, nearby = truncated_moments_near(law, threshold, anchor)
    away = abs(float(moments.threshold[0]) - threshold)
    # A tiny threshold has more digits than places of the law have: keep the one asked for.
    if away <= 1e-14 * law.noise:
        moments = replace(moments, threshold=np.array([threshold]))
    elif away > threshold / 2:
        return truncated_moments(law, threshold), None
    return moments, nearby
