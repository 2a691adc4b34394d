r"""Scalar saddle point of quadratic networks, found by a bracketed search."""

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
"""Smallest penalty above 0: powers of smaller thresholds underflow."""

LEAST_NOISE = 1e-11
"""Effective noise, relative to the largest eigenvalue, below which recovery counts as perfect."""


LEAST_ERROR = 1e-12
"""Error, relative to the target's energy, that counts as rounding."""


class PerfectRecovery(Exception):
    """Raised when the error, and with it the effective noise, vanishes."""


def check_problem(*, sample_ratio: float, label_noise: float, regularisation: float) -> None:
    """Raise InvalidParameter for parameters outside the domain of the theory."""
    if not 0 < sample_ratio < np.inf:
        raise InvalidParameter(
            f"sample_ratio is {sample_ratio}; allowed: a finite number above 0 (samples over d²)."
        )
    check_not_negative(label_noise=label_noise, regularisation=regularisation)
    if 0 < regularisation < LEAST_PENALTY:
        raise InvalidParameter(
            f"regularisation is {regularisation}; allowed: 0, or at least {LEAST_PENALTY:g}."
        )


def check_not_negative(**values: float) -> None:
    """Raise InvalidParameter for values that are not finite or below 0."""
    for name, value in values.items():
        if not 0 <= value < np.inf:
            raise InvalidParameter(f"{name} is {value}; allowed: a finite number of at least 0.")


@dataclass(frozen=True)
class SaddlePoint:
    """The two scalars delta and b, the error R, the law of S* + delta Z and the law's moments above b."""

    effective_noise: float
    threshold: float
    matrix_error: float
    law: SpectralLaw
    moments: TruncatedMoments


@dataclass
class SaddleProblem:
    """Bracketed search for the saddle point: the best B at each delta, then the root in delta."""

    # The maximum over B of (quadratic 3) is convex in delta. Its slope has the sign of 2 alpha delta²
    # - Delta/2 - R(delta, b), which changes once. For lambda = 0 the same equations hold, with b = 0 if
    # the left side of the equation in `best_threshold` exceeds the right side at b = 0.

    target: Measure
    sample_ratio: float
    label_noise: float
    regularisation: float
    tolerance: float = 0.0  # accepted imbalance, a relative error; 0 for rounding

    def __post_init__(self) -> None:
        self.energy = second_moment(self.target)

    def best_threshold(self, law: SpectralLaw) -> TruncatedMoments:
        """Moments above the best threshold at this noise, or above 0 if the best one is 0."""
        # b solves 2 alpha delta² + Delta/2 + Q* = int_b (x² - b²) mu_delta + lambda delta² / b. The
        # difference of both sides is increasing and concave in b², so that Newton's method from the
        # left is monotone.
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
            # Convergence is quadratic: the next step would be below rounding, or below the tolerance.
            if abs(after - b) <= max(1e-8, np.sqrt(self.tolerance) / 3) * b:
                return _moments_near(law, after, anchor)[0]
            b = after
        raise NotConverged(
            "the threshold at fixed effective noise did not converge; change the regularisation by one "
            "part in a billion.",
            {"threshold": b, "effective_noise": law.noise, "bracket": (low, high)},
        )

    @staticmethod
    def _among_nodes(law: SpectralLaw, total: float, pull: float) -> tuple[float, float, float]:
        """Return a bracket of the root and a first guess, from cumulative sums over the nodes."""
        least, top = pull / total, float(law.edges[-1, 1])
        x, weights = law.x[::-1], law.weights[::-1]
        x, weights = x[x > least], weights[x > least]
        if x.size == 0:
            return least, (least + top) / 2, top
        # Half of the weight of a node lies above the node.
        mass = np.cumsum(weights) - weights / 2
        excess = total - (np.cumsum(weights * x**2) - weights * x**2 / 2 - x**2 * mass) - pull / x
        below = np.flatnonzero(excess <= 0)
        if below.size == 0:
            # All nodes lie above the root, so that the integrals hardly depend on the root.
            rest = total - (weights @ x**2)
            return least, min(pull / rest, float(x[-1])) if rest > 0 else float(x[-1]) / 2, top
        k = int(below[0])
        if k == 0:
            return least, float(x[0]), top
        share = excess[k] / (excess[k] - excess[k - 1])
        return least, float(x[k] + share * (x[k - 1] - x[k])), top

    def imbalance(self, log_noise: float) -> tuple[float, SaddlePoint]:
        """Logarithm of (R + Delta/2) / 2 alpha delta² (quadratic 4), positive below the root in delta."""
        noise = float(np.exp(log_noise))
        law = SpectralLaw(self.target, noise=noise, tolerance=max(1e-11, self.tolerance / 100))
        moments = self.best_threshold(law)
        error = thresholded_error(self.energy, moments)
        # Smaller errors are rounding, as R is a difference of numbers of the size of the energy.
        total = max(error + self.label_noise / 2, LEAST_ERROR * self.energy)
        point = SaddlePoint(noise, float(moments.threshold[0]), error, law, moments)
        return float(np.log(total / (2 * self.sample_ratio * law.variance))), point

    def _range(self) -> tuple[float, float]:
        """Return the logarithms that bracket delta."""
        # noise of the null predictor
        null = float(np.sqrt((self.energy + self.label_noise / 2) / (2 * self.sample_ratio)))
        if null == 0:
            raise PerfectRecovery
        # As R >= 0, the imbalance is positive just below this floor.
        floor = (1 - 1e-6) * np.sqrt(self.label_noise / (4 * self.sample_ratio))
        least = LEAST_NOISE * float(np.abs(self.target.pieces).max())
        # No solution exists above 1e5 times the noise of the null predictor.
        return float(np.log(max(floor, least))), float(np.log(1e5 * null))

    def solve(self, guess: float | None = None) -> SaddlePoint:
        """Find the saddle point; a guess changes the number of evaluations, not the result."""
        low, high = self._range()
        below, above = low, high
        # The error is typically near Q* / (1 + 16 alpha²).
        typical = self.energy / (1 + 16 * self.sample_ratio**2) + self.label_noise / 2
        start = float(np.sqrt(typical / (2 * self.sample_ratio)))
        here = min(max(float(np.log(guess or start)), low + 1e-9), high)
        past: tuple[float, float] | None = None
        slope = -2.0  # slope of the fixed-point iteration
        for _ in range(200):
            gap, point = self.imbalance(here)
            total = point.matrix_error + self.label_noise / 2
            rounding = 1e-12 + 4e-15 * self.energy / max(total, LEAST_ERROR * self.energy)
            if abs(gap) <= max(rounding, self.tolerance):
                if total <= LEAST_ERROR * self.energy:
                    raise PerfectRecovery
                return point
            below, above = (here, above) if gap > 0 else (below, here)
            if below > high - 1e-3:
                raise NotConverged(
                    "the error of the network has no finite limit at this sample ratio without "
                    "regularisation (interpolation peak). Use a regularisation above 0.",
                    {"effective_noise": np.exp(here), "imbalance": gap},
                )
            if above < low + 1e-9:
                raise PerfectRecovery
            # Secant steps in the bracket. After little gain: bisection, or twice the last step.
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
            "the effective noise did not converge in 200 steps; change the regularisation by one part "
            "in a billion.",
            {"effective_noise": np.exp(here), "imbalance": gap, "bracket": (below, above)},
        )


Anchor = tuple[float, float, float] | None


def _moments_near(
    law: SpectralLaw, threshold: float, anchor: Anchor
) -> tuple[TruncatedMoments, Anchor]:
    """Moments at a positive threshold, or at a nearby threshold that is cheaper to evaluate."""
    moments, nearby = truncated_moments_near(law, threshold, anchor)
    away = abs(float(moments.threshold[0]) - threshold)
    # The law resolves tiny thresholds with fewer digits: keep the requested threshold.
    if away <= 1e-14 * law.noise:
        moments = replace(moments, threshold=np.array([threshold]))
    elif away > threshold / 2:
        return truncated_moments(law, threshold), None
    return moments, nearby
