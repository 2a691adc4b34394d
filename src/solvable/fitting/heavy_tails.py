"""Upper end of the mean of positive values, where a Pareto tail replaces the largest ones."""

from __future__ import annotations

import math

import numpy as np

from solvable.arrays import random_stream

RESAMPLES = 2000


def tail_index(values: np.ndarray) -> float:
    """Return Hill's estimate of the tail index from the sqrt(n) largest of n positive values."""
    # Hill (1975): 1 / a = mean of log(x_(i) / x_(n - k)) over the k largest values x_(i). The mean of a
    # Pareto tail P(x > t) = (x_0 / t)^a is infinite for a <= 1, and its variance for a <= 2.
    threshold, largest = _parts(values)[1:]
    excess = float(np.mean(np.log(largest / threshold))) if threshold > 0 else math.inf
    return 1 / excess if excess > 0 else math.inf


def upper_end(
    values: np.ndarray, confidence: float, *, inflation: float = 1.0, seed: int = 0
) -> float:
    """Return the upper end of an interval of the mean; infinite if the tail has no finite mean.

    The inflation multiplies the variance of the mean, as in ``mean_interval``.
    """
    values = np.asarray(values, dtype=np.float64)
    rows, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(rows)
    index = tail_index(values)
    if index <= 1 or error == 0:
        return mean if error == 0 else math.inf
    # Resampling a sample never draws a value above its largest one, so it misses the rare rows that
    # decide the mean of a heavy tail. Semi-parametric bootstrap (Davidson and Flachaire 2007): a
    # value comes from a Pareto law above x_0 = x_(n - k) with probability p = k / n, else from the other
    # values. The mean of this law is mu = (1 - p) m_0 + p x_0 a / (a - 1), and the upper end is
    # x - t_(1 - c)/2 s with the quantile of t = (x* - mu) / s*.
    body, threshold, largest = _parts(values)
    share = len(largest) / rows
    centre = (1 - share) * float(body.mean()) + share * threshold * (
        1.0 if math.isinf(index) else index / (index - 1)
    )
    rng = random_stream(seed, "bootstrap with a Pareto tail")
    ratios, left = [], RESAMPLES
    while left > 0:
        # As many resamples are drawn at once as fit into the cache.
        count = min(left, max(1, 400_000 // rows))
        drawn = body[rng.integers(len(body), size=(count, rows))]
        above = rng.random((count, rows)) < share
        drawn[above] = threshold * rng.random(int(above.sum())) ** (-1 / index)
        spread = drawn.std(axis=1, ddof=1) / math.sqrt(rows)
        usable = spread > 1e-9 * error
        ratios.append((drawn.mean(axis=1)[usable] - centre) / spread[usable])
        left -= count
    low = float(np.quantile(np.concatenate(ratios), (1 - confidence) / 2))
    return float(mean * ((mean - min(low, 0.0) * error) / mean) ** math.sqrt(inflation))


def _parts(values: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Split off the sqrt(n) largest of n values; return the others, their largest, and those."""
    ordered = np.sort(values)
    count = min(max(round(math.sqrt(len(ordered))), 1), len(ordered) - 1)
    return ordered[:-count], float(ordered[-count - 1]), ordered[-count:]
