"""Intervals for errors on test rows, and for error differences between two methods on the same rows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from solvable.arrays import random_stream

CONFIDENCE = 0.95
"""Confidence of each error's interval; also the family-wise confidence of all error differences."""

CENTRAL_LIMIT_ROWS = 20_000
"""Largest number of rows with a bootstrap interval of the mean; more rows use a normal interval."""


class Interval(NamedTuple):
    """Estimate with the two ends of its interval."""

    value: float
    lower: float
    upper: float


def _normal_quantile(confidence: float) -> float:
    """Return the half width of a normal interval in standard deviations."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson_interval(
    wrong: int, rows: int, confidence: float = CONFIDENCE, *, inflation: float = 1.0
) -> Interval:
    """Return Wilson's interval of an error rate; its width is not zero even for rates of 0 and 1."""
    # Dependence that raises the variance by a factor F, the inflation, leaves rows / F independent rows.
    # Wilson 1927: (p + z² / 2n +- z sqrt(p (1 - p) / n + z² / 4n²)) / (1 + z² / n).
    # In cross-validation the rows of all folds are pooled, which is valid asymptotically for stable
    # learners (Bayle et al., arXiv:2007.12671).
    found = _of_share(wrong / rows, rows / inflation, confidence)
    return found._replace(
        lower=found.lower if wrong else 0.0, upper=found.upper if wrong < rows else 1.0
    )


def _of_share(share: float, rows: float, confidence: float) -> Interval:
    z = _normal_quantile(confidence)
    centre = share + z * z / (2 * rows)
    half = z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    scale = 1 + z * z / rows
    return Interval(share, (centre - half) / scale, (centre + half) / scale)


def paired_rate_difference(
    first: np.ndarray, second: np.ndarray, confidence: float = CONFIDENCE
) -> Interval:
    """Return one method's error rate minus another's, from the masks of wrongly predicted rows."""
    # Interval by Bonett and Price (2012), valid also if the methods differ on few rows. With
    # p_10 = (m + 1) / (n + 2) for the m rows that only the first method predicts wrongly,
    # p_10 - p_01 +- z sqrt((p_10 + p_01 - (p_10 - p_01)²) / (n + 2)).
    rows = len(first)
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    p10, p01 = (only_first + 1) / (rows + 2), (only_second + 1) / (rows + 2)
    variance = max(p10 + p01 - (p10 - p01) ** 2, 0.0) / (rows + 2)
    half = _normal_quantile(confidence) * math.sqrt(variance)
    value = (only_first - only_second) / rows
    return Interval(value, max(p10 - p01 - half, -1.0), min(p10 - p01 + half, 1.0))


def mean_interval(
    values: np.ndarray,
    confidence: float = CONFIDENCE,
    *,
    positive: bool = False,
    inflation: float = 1.0,
    seed: int = 0,
) -> Interval:
    """Return a bootstrap interval of the mean of skewed values; positive if all values are positive."""
    # Dependence raises the variance by a factor, the inflation; its root multiplies the distances of both
    # ends from the mean.
    # The studentised bootstrap is second-order correct: [x - t*_(1 - a/2) s, x - t*_(a/2) s] with
    # t* = (x* - x) / s*. The percentile bootstrap covers too rarely for skewed values. For positive
    # values the lower end is that of log x, with standard error s / x: x exp(-t*_(1 - a/2) s / x).
    # The inflation multiplies both distances of log x from the mean. For squares of Student's t with
    # 2.5 degrees of freedom, an inflation of 2.25 then covers in 85 instead of 82 of 100 samples; for
    # fourth powers with three degrees, whose expected value is infinite, in 57 instead of 50.
    values = np.asarray(values, dtype=np.float64)
    rows = len(values)
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(rows)
    if error == 0:
        return Interval(mean, mean, mean)
    stretch = math.sqrt(inflation)
    if rows > CENTRAL_LIMIT_ROWS:
        half = _normal_quantile(confidence) * error * stretch
        lower = mean * math.exp(-half / mean) if positive else mean - half
        return Interval(mean, lower, mean + half)
    rng = random_stream(seed, "studentised bootstrap")
    standardised = (values - mean) / error
    ratios, of_logarithm = [], []
    left = 2000
    while left > 0:
        # As many resamples are drawn at once as fit into the cache.
        count = min(left, max(1, 400_000 // rows))
        drawn = standardised[rng.integers(rows, size=(count, rows))]
        away, squares = drawn.mean(axis=1), np.einsum("ij,ij->i", drawn, drawn)
        # The standardised values have mean zero, so this difference is accurate.
        variance = (squares - rows * away**2) / (rows - 1)
        # Resamples of a single value have no spread and are left out.
        usable = variance > 1e-12 * squares / rows
        away, spread = away[usable], np.sqrt(np.maximum(variance, 0.0) / rows)
        ratios.append(away / spread[usable])
        if positive:
            grown = np.maximum(
                1 + away * error / mean, 1e-15
            )  # ratio x* / x of the resampled mean to the mean
            of_logarithm.append(np.log(grown) * grown * mean / (error * spread[usable]))
        left -= count
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(ratios), [tail, 1 - tail])
    lower = mean - float(high) * error * stretch
    upper = mean - float(low) * error * (1.0 if positive else stretch)
    if positive:
        farthest = float(np.quantile(np.concatenate(of_logarithm), 1 - tail))
        lower = mean * math.exp(-farthest * error * stretch / mean)
        upper = mean * (upper / mean) ** stretch
    return Interval(mean, lower, upper)


def loss_of_clusters(
    values: np.ndarray,
    clusters: np.ndarray,
    confidence: float = CONFIDENCE,
    *,
    rate: bool,
    inflation: float = 1.0,
) -> Interval:
    """Return the interval of a mean loss over clustered rows; ``rate`` is True for losses of 0 and 1."""
    mean = float(values.mean())
    number = len(np.unique(clusters))
    if rate and values.min() == values.max():
        # If no row or every row is wrong, each cluster counts as one independent observation.
        return wilson_interval(number * int(values[0]), number, confidence, inflation=inflation)
    error = _sums_of_clusters(values, clusters)[1]
    many_clusters = (
        50  # smallest number of clusters for the bootstrap; fewer clusters use Student's t
    )
    if number < many_clusters or error == 0:
        found = clustered_interval(values, clusters, confidence, inflation=inflation)
        top = 1.0 if rate else math.inf
        return found._replace(lower=max(found.lower, 0.0), upper=min(found.upper, top))
    if rate:
        # number of independent rows that would give this standard error (Korn and Graubard 1998)
        independent = min(mean * (1 - mean) / error**2, len(values))
        return _of_share(mean, independent / inflation, confidence)
    sums = means_of_clusters(values, clusters)
    return mean_interval(sums, confidence, positive=True, inflation=inflation)


def means_of_clusters(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return one value per cluster, with the mean of all values as their mean."""
    deviations = _sums_of_clusters(values, clusters)[0]
    return np.asarray(values.mean() + deviations * len(deviations) / len(values))


def clustered_interval(
    values: np.ndarray,
    clusters: np.ndarray,
    confidence: float = CONFIDENCE,
    *,
    inflation: float = 1.0,
) -> Interval:
    """Return Student's interval of the mean of values that depend on one another within clusters."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    sums, error = _sums_of_clusters(values, clusters)
    # Student's t distribution with G - 1 degrees of freedom for G clusters
    quantile = float(stdtrit(max(len(sums) - 1, 1), (1 + confidence) / 2))
    half = quantile * error * math.sqrt(inflation)
    return Interval(mean, mean - half, mean + half)


def _sums_of_clusters(values: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, float]:
    """Return each cluster's sum of deviations from the mean, and the standard error of the mean."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=values - values.mean())
    count = len(sums)
    # The squared standard error is the sandwich estimate for G clusters of n values with mean v,
    # s² = G / (G - 1) sum_g (sum_{i in g} (v_i - v))² / n².
    return sums, math.sqrt(count / max(count - 1, 1) * float(sums @ sums)) / len(values)
