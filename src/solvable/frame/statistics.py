"""Standard errors from few replicates: pooled scatter, jackknife over replicates, Student quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from solvable.plots.words import counted

FALSE_ALARM = 0.01
"""Probability that a claim fails by chance although its theory is right."""

ALLOWANCE = (
    "The verdict adds an allowance for the scatter of replicates, chosen so that a correct theory "
    "fails in 1 % of claims."
)
"""Sentence on the statistical part of a tolerance."""

SPREAD = 2.0
"""Largest statistical error of a testable cell, in units of the stated tolerance."""


USUAL_EXCESS, USUAL_SPREAD, LEAST_EXCESS = 1.0, 1.5, 0.04
"""Typical variance of the log variances of the cells of a claim.

Median over the 72 rows of our own quick presets that have six cells or more: 0.56; half of them lie
between 0.1 and 1.3, and a sixth above 1.6 (docs/verdicts.md).
"""


def too_noisy(tolerance: float, missing: int) -> str:
    """Return why a claim is not testable, and the number of replicates to add."""
    more = counted(max(1, missing), "more replicate")
    return f"too noisy for a tolerance of {tolerance:.2g}: run at least {more}"


@dataclass(frozen=True)
class Errors:
    """Estimated scatter of the replicates of each cell."""

    variance: np.ndarray
    replicates: np.ndarray
    # pooled over all cells, and of each cell shrunk towards the pooled value
    total: float
    degrees: np.ndarray
    # Entries of a list may be correlated: then each point counts once.
    points: int
    least_total: float

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of the mean of each cell; NaN if every cell has one replicate."""
        if self.total == 0:
            return np.full(self.variance.shape, np.nan)
        return np.sqrt(self.variance / self.replicates)

    def allowances(self, *, two_sided: bool, together: bool = False) -> np.ndarray:
        """Return the deviations that a right theory exceeds in 1 % of claims; infinite if unknown."""
        # Entries of a list count as independent, or with `together` as fully correlated.
        if self.total == 0:
            return np.full(self.variance.shape, np.inf)
        from scipy.special import stdtrit

        degrees = np.minimum(self.degrees, self.least_total if together else self.total)
        # Student quantile with a Bonferroni correction, as the worst cell is judged
        shares = (self.points if together else self.variance.size) * (2 if two_sided else 1)
        return np.asarray(-stdtrit(degrees, FALSE_ALARM / shares) * self.standard_error)

    def replicates_needed(self, cell: int, allowance: float, *, two_sided: bool) -> int:
        """Return the smallest number of replicates, to 5 %, with which a cell's error is small enough."""
        from scipy.special import stdtrit

        prior = max(float(self.degrees[cell]) - (int(self.replicates[cell]) - 1), 0.0)
        shares = self.variance.size * (2 if two_sided else 1)
        for counts in _replicate_numbers():
            degrees = np.minimum(prior + counts - 1, (counts - 1.0) * self.variance.size)
            errors = np.sqrt(self.variance[cell] / counts)
            enough = -stdtrit(degrees, FALSE_ALARM / shares) * errors <= allowance
            if enough.any():
                return int(counts[enough.argmax()])
        return 10**18


@cache
def _replicate_numbers() -> tuple[np.ndarray, ...]:
    """Yield numbers of replicates from 2 to 10^18, each 5 % above the last, in blocks of sixty-four."""
    numbers, count = [], 2
    while count < 10**18:  # variances may be infinite
        numbers.append(float(count))
        count += max(1, count // 20)
    return tuple(np.array(numbers[i : i + 64]) for i in range(0, len(numbers), 64))


def pooled_errors(
    values: Sequence[np.ndarray], scales: np.ndarray, points: Sequence[int] | None = None
) -> Errors:
    """Estimate errors of cells, shrunk towards a common relative scatter."""
    # With two to six replicates the variance of a single cell is often far too small. It is averaged
    # with the pooled variance; the weights depend on how much the variances of cells differ (moderated
    # t statistics: Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004). This difference is itself poorly
    # estimated, so it is shrunk towards its typical value. Simulations: docs/verdicts.md.
    counts = np.array([value.size for value in values])
    degrees = np.maximum(counts - 1, 0).astype(float)
    own = np.array([value.var(ddof=1) if value.size > 1 else 0.0 for value in values]) / scales**2
    variance, prior = _moderated(own, degrees)
    places = range(len(counts)) if points is None else points
    least = dict(zip(places, degrees, strict=True))
    return Errors(
        variance * scales**2,
        counts,
        float(degrees.sum()),
        degrees + prior,
        len(least),
        float(sum(least.values())),
    )


def _moderated(own: np.ndarray, degrees: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the shrunk variances, and the degrees of freedom of the pooled variance."""
    used = own > 0
    if not used.any():
        return own, np.inf
    from scipy.special import digamma, polygamma

    half = degrees[used] / 2
    # e = log s² - digamma(k/2) + log(k/2), of mean log sigma² and variance trigamma(k/2) (Smyth, eq. 3)
    e = np.log(own[used]) - digamma(half) + np.log(half)
    trigamma = polygamma(1, half).mean()
    seen = e.var(ddof=1) - trigamma if e.size > 1 else 0.0
    # Variance of that variance for a logarithm of chi²: its fourth cumulant plus twice its square
    noise = (polygamma(3, half).mean() + 2 * trigamma**2) / e.size
    excess = (USUAL_EXCESS / USUAL_SPREAD**2 + seen / noise) / (1 / USUAL_SPREAD**2 + 1 / noise)
    half_prior = _inverse_trigamma(max(float(excess), LEAST_EXCESS))
    # s_0² = exp(mean e + digamma(d_0/2) - log(d_0/2)); (d_0 s_0² + k s²) / (d_0 + k) (eqs. 2 and 4)
    common = np.exp(e.mean() + digamma(half_prior) - np.log(half_prior))
    prior = 2 * half_prior
    return (prior * common + degrees * own) / (prior + degrees), prior


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method on its reciprocal, which is convex."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


@dataclass(frozen=True)
class EstimateError:
    """Standard error of a number computed from several points, with its degrees of freedom."""

    standard_error: float
    degrees: float

    def allowance(self, shares: int) -> float:
        """Return the deviation that a right theory exceeds in 1 % of claims; infinite if unknown."""
        if not np.isfinite(self.standard_error):
            return float("inf")
        from scipy.special import stdtrit

        return float(-stdtrit(self.degrees, FALSE_ALARM / shares) * self.standard_error)

    def replicates_needed(self, allowance: float, shares: int, replicates: int) -> int:
        """Return the smallest number of replicates, to 5 %, with which the error is this small."""
        count = replicates
        while count < 10**9:
            count += max(1, count // 20)
            degrees = self.degrees * (count - 1) / (replicates - 1)
            error = self.standard_error * (replicates / count) ** 0.5
            if EstimateError(error, degrees).allowance(shares) <= allowance:
                break
        return count


def jackknife_errors(without_one: Sequence[np.ndarray]) -> EstimateError:
    """Estimate the jackknife error of a number; each array holds one point's leave-one-out values."""
    # Two replicates determine the scatter of a point poorly: such a point contributes its own variance
    # or the geometric mean over points, whichever is larger (see pooled_errors).
    counts = np.array([values.size for values in without_one])
    if (counts < 2).any() or not all(np.isfinite(values).all() for values in without_one):
        return EstimateError(float("nan"), 0.0)
    # v_i = (n - 1) / n sum_r (f_(-r) - mean)² (Efron and Stein 1981)
    added = np.array([(v.size - 1) * v.var() for v in without_one])
    degrees = counts - 1.0
    used = added > 1e-16 * added.sum()  # smaller values are rounding errors
    if not used.any():
        return EstimateError(0.0, float(degrees.sum()))
    from scipy.special import digamma

    half = degrees[used] / 2
    # E log s² = log sigma² + digamma(k/2) - log(k/2) with k degrees of freedom
    common = np.exp(np.mean(np.log(added[used]) - digamma(half) + np.log(half)))
    if used.sum() > 1:
        added = np.where(used, np.maximum(added, common), 0.0)
    # (sum v)² / sum(v² / k) (Welch and Satterthwaite)
    freedom = added.sum() ** 2 / np.sum(added**2 / degrees)
    return EstimateError(float(np.sqrt(added.sum())), float(freedom))
