"""Standard errors from few replicates: pooled scatter, jackknife over replicates, Student quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FALSE_ALARM = 0.01
"""Probability that a claim fails by chance although its theory is right, over all of its cells."""

SPREAD = 2.0
"""Largest statistical allowance, in stated tolerances; beyond it a cell is not testable."""


@dataclass(frozen=True)
class Errors:
    """Variance of one replicate of each cell, number of replicates, pooled degrees of freedom."""

    variance: np.ndarray
    replicates: np.ndarray
    degrees: float
    # The entries of a list may all move together: then each point counts once.
    points: int
    least_degrees: float

    @property
    def standard_error(self) -> np.ndarray:
        """Of the mean of each cell; NaN where one replicate of each is all there is."""
        if self.degrees == 0:
            return np.full(self.variance.shape, np.nan)
        return np.sqrt(self.variance / self.replicates)

    def allowances(self, *, two_sided: bool, together: bool = False) -> np.ndarray:
        """Deviations that a right theory exceeds in one of a hundred claims; infinite if unknown.

        Entries of a list count as independent, or as the same number with ``together``.
        """
        degrees = self.least_degrees if together else self.degrees
        if degrees == 0:
            return np.full(self.variance.shape, np.inf)
        from scipy.special import stdtrit

        # Student quantile; the worst of all is judged, so each has its share (Bonferroni).
        shares = (self.points if together else self.variance.size) * (2 if two_sided else 1)
        return np.asarray(-stdtrit(degrees, FALSE_ALARM / shares) * self.standard_error)

    def replicates_needed(self, cell: int, allowance: float, *, two_sided: bool) -> int:
        """Fewest replicates of every cell, to a twentieth, with which the allowance of one is this."""
        count = 2
        while count < 10**18:  # variances may be infinite
            grown = Errors(
                self.variance,
                np.full(self.variance.shape, count),
                float((count - 1) * self.variance.size),
                self.points,
                float((count - 1) * self.points),
            )
            if grown.allowances(two_sided=two_sided)[cell] <= allowance:
                return count
            count += max(1, count // 20)
        return count


def pooled_errors(
    values: Sequence[np.ndarray], scales: np.ndarray, points: Sequence[int] | None = None
) -> Errors:
    """Errors of cells whose relative scatter is alike, though not equal.

    The variance of a cell is its own or the common one, whichever is larger: with two to six
    replicates its own is often far too small. The common one is the geometric mean of relative
    variances, which a few noisy cells do not raise. Simulated with 24 cells: a right theory fails in
    less than 1 % of claims while logarithms of the cells' standard deviations scatter by up to .5.
    """
    counts = np.array([value.size for value in values])
    degrees = np.maximum(counts - 1, 0)
    own = np.array([value.var(ddof=1) if value.size > 1 else 0.0 for value in values]) / scales**2
    used = own > 0
    common = 0.0
    if used.any():
        from scipy.special import digamma

        half = degrees[used] / 2
        # E log s^2 = log sigma^2 + digamma(k/2) - log(k/2) with k degrees of freedom
        common = np.exp(np.mean(np.log(own[used]) - digamma(half) + np.log(half)))
    places = range(len(counts)) if points is None else points
    least = dict(zip(places, degrees, strict=True))
    return Errors(
        np.maximum(own, common) * scales**2,
        counts,
        float(degrees.sum()),
        len(least),
        float(sum(least.values())),
    )


@dataclass(frozen=True)
class EstimateError:
    """Standard error of a number that several points give, with its degrees of freedom."""

    standard_error: float
    degrees: float

    def allowance(self, shares: int) -> float:
        """Deviation that a right theory exceeds in one of a hundred claims; infinite if unknown."""
        if not np.isfinite(self.standard_error):
            return float("inf")
        from scipy.special import stdtrit

        return float(-stdtrit(self.degrees, FALSE_ALARM / shares) * self.standard_error)

    def replicates_needed(self, allowance: float, shares: int, replicates: int) -> int:
        """Fewest replicates, to a twentieth, with which the allowance is this."""
        count = replicates
        while count < 10**9:
            count += max(1, count // 20)
            degrees = self.degrees * (count - 1) / (replicates - 1)
            error = self.standard_error * (replicates / count) ** 0.5
            if EstimateError(error, degrees).allowance(shares) <= allowance:
                break
        return count


def jackknife_errors(without_one: Sequence[np.ndarray]) -> EstimateError:
    """Error of a number from its values without each replicate, one array for each point.

    A point with two replicates does not know its scatter: what it adds to the variance is its own
    or the geometric mean over points, whichever is larger (see :func:`pooled_errors`).
    """
    counts = np.array([values.size for values in without_one])
    if (counts < 2).any() or not all(np.isfinite(values).all() for values in without_one):
        return EstimateError(float("nan"), 0.0)
    # v_i = (n - 1) / n sum_r (f_(-r) - mean)^2 (Efron and Stein 1981)
    added = np.array([(v.size - 1) * v.var() for v in without_one])
    degrees = counts - 1.0
    used = added > 1e-16 * added.sum()  # less is rounding
    if not used.any():
        return EstimateError(0.0, float(degrees.sum()))
    from scipy.special import digamma

    half = degrees[used] / 2
    # E log s^2 = log sigma^2 + digamma(k/2) - log(k/2) with k degrees of freedom
    common = np.exp(np.mean(np.log(added[used]) - digamma(half) + np.log(half)))
    if used.sum() > 1:
        added = np.where(used, np.maximum(added, common), 0.0)
    # (sum v)^2 / sum(v^2 / k) (Welch and Satterthwaite)
    freedom = added.sum() ** 2 / np.sum(added**2 / degrees)
    return EstimateError(float(np.sqrt(added.sum())), float(freedom))
