"""Mean of positive values with a heavy tail: its upper end, and whether it seems to be finite."""

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


def tail_exponent(values: np.ndarray) -> tuple[float, float]:
    """Return the tail's exponent from the 2 sqrt(n) largest of n values, and its standard error."""
    # Moment estimator (Dekkers, Einmahl and de Haan 1989) of the exponent xi of a generalised Pareto
    # tail, P(x > t) = (1 + xi t / s)^(-1 / xi). With M_j the mean of log(x_(i) / x_(n - k))^j over the k
    # largest, xi = M_1 + 1 - 1 / (2 (1 - M_1² / M_2)), with variance (1 + xi²) / k for xi >= 0. Unlike
    # Hill's estimate it is also valid for light tails (xi <= 0). The mean is infinite for xi >= 1.
    count = min(max(round(2 * math.sqrt(len(values))), 2), len(values) - 1)
    largest = np.sort(np.partition(values, -count - 1)[-count - 1 :])
    if largest[0] <= 0:
        return math.inf, 0.0
    excess = np.log(largest[1:] / largest[0])
    first, second = float(np.mean(excess)), float(np.mean(excess**2))
    if second - first**2 <= 1e-9 * second:  # the largest values are equal
        return -math.inf, 0.0
    exponent = first + 1 - 0.5 / (1 - first**2 / second)
    return exponent, math.sqrt((1 + max(exponent, 0.0) ** 2) / count)


def grows_without_mean(values: np.ndarray, columns: np.ndarray) -> bool:
    """Return True if errors grow with columns whose squares seem to have no variance."""
    # If a model misses a multiple of x² of a column x, its squared error contains x⁴, whose mean is
    # infinite if the tail of x² has an exponent of 1/2 or more. Few rows are extreme enough to show this
    # in the errors, but all cells of the columns serve to estimate the exponent. The rank correlation of
    # the errors with the distances of the rows from the centre decides whether the errors depend on x.
    least_values, significant = 20, 1.645  # one-sided 5 %
    used = [
        column
        for column in columns.T
        if np.isfinite(column).all() and len(np.unique(column)) > least_values
    ]
    if not used:
        return False
    squares = np.stack([((column - column.mean()) / column.std()) ** 2 for column in used], axis=1)
    exponent, error = tail_exponent(squares.ravel())
    if exponent + error < 0.5:
        return False
    first, second = (
        np.argsort(np.argsort(one)).astype(np.float64) for one in (squares.sum(axis=1), values)
    )
    return bool(np.corrcoef(first, second)[0, 1] * math.sqrt(len(values) - 1) > significant)


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
    if index <= 1 or error == 0 or tail_exponent(values)[0] >= 1:
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
