r"""Intervals for errors on test rows, and for differences between two methods on the same rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from solvable.arrays import random_stream

CONFIDENCE = 0.95
"""Of every interval of a measured error."""

NORMAL_QUANTILE = 1.959963984540054
"""Quantile of the normal law at :data:`CONFIDENCE`, both sides."""

RESAMPLES = 2000
"""Bootstrap samples behind the interval of a mean."""

CENTRAL_LIMIT_ROWS = 20_000
"""Rows beyond which the mean is as good as normal and no bootstrap is drawn."""

_CHUNK = 4_000_000


class Interval(NamedTuple):
    """An estimate with its interval at :data:`CONFIDENCE`.

    Parameters
    ----------
    value, lower, upper : float
        Estimate, lower and upper end.
    """

    value: float
    lower: float
    upper: float


def wilson_interval(wrong: int, rows: int) -> Interval:
    r"""Interval of an error rate.

    .. math:: \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1 - \hat p)/n + z^2/4n^2}}{1 + z^2/n}

    Parameters
    ----------
    wrong : int
        Wrong predictions.
    rows : int
        Test rows n, at least 1.

    Returns
    -------
    Interval
        Within [0, 1]; not degenerate when nothing or everything is wrong.

    Notes
    -----
    Wilson 1927. For cross-validation the rows of all folds are pooled, which is valid asymptotically
    for stable learners (Bayle et al., arXiv:2007.12671). Against :mod:`scipy` in
    ``tests/learn/test_intervals.py``.

    Examples
    --------
    >>> [round(one, 3) for one in wilson_interval(5, 100)]
    [0.05, 0.022, 0.112]
    """
    share, z = wrong / rows, NORMAL_QUANTILE
    centre = share + z * z / (2 * rows)
    half = z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    scale = 1 + z * z / rows
    lower = 0.0 if wrong == 0 else (centre - half) / scale
    upper = 1.0 if wrong == rows else (centre + half) / scale
    return Interval(share, lower, upper)


def paired_rate_difference(first: np.ndarray, second: np.ndarray) -> Interval:
    r"""Difference between two error rates on the same rows.

    .. math:: \tilde p_{10} - \tilde p_{01} \pm z \sqrt{\frac{\tilde p_{10} + \tilde p_{01} -
        (\tilde p_{10} - \tilde p_{01})^2}{n + 2}}, \qquad \tilde p = \frac{m + 1}{n + 2},

    with m the rows that one method has wrong and the other has right.

    Parameters
    ----------
    first, second : ndarray of bool, shape (n,)
        Whether each method is wrong.

    Returns
    -------
    Interval
        Of the rate of ``first`` less that of ``second``; the value is the plain difference.

    Notes
    -----
    Bonett and Price 2012, which covers also when few rows are told apart.

    Examples
    --------
    >>> wrong = np.arange(100) < 10
    >>> paired_rate_difference(wrong, np.zeros(100, dtype=bool)).lower > 0
    True
    """
    rows = len(first)
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    one, other = (only_first + 1) / (rows + 2), (only_second + 1) / (rows + 2)
    half = NORMAL_QUANTILE * math.sqrt(max(one + other - (one - other) ** 2, 0.0) / (rows + 2))
    value = (only_first - only_second) / rows
    return Interval(value, max(one - other - half, -1.0), min(one - other + half, 1.0))


def mean_interval(values: np.ndarray, *, seed: int = 0) -> Interval:
    r"""Interval of a mean of skewed values, such as squared errors, by the studentised bootstrap.

    .. math:: \Big[\bar x - t^*_{1-\alpha/2}\, \hat s,\ \bar x - t^*_{\alpha/2}\, \hat s\Big], \qquad
        t^* = (\bar x^* - \bar x) / \hat s^*

    Parameters
    ----------
    values : ndarray of shape (n,)
        One per test row, at least 2.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Interval
        Second-order correct; percentiles of the mean itself cover too rarely when values are skewed.

    Notes
    -----
    Beyond :data:`CENTRAL_LIMIT_ROWS` rows the normal interval. Coverage in
    ``tests/learn/test_intervals.py``.

    Examples
    --------
    >>> x = np.random.default_rng(0).exponential(size=200)
    >>> found = mean_interval(x)
    >>> found.lower < 1 < found.upper
    True
    """
    values = np.asarray(values, dtype=np.float64)
    rows = len(values)
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(rows)
    if error == 0:
        return Interval(mean, mean, mean)
    if rows > CENTRAL_LIMIT_ROWS:
        return Interval(mean, mean - NORMAL_QUANTILE * error, mean + NORMAL_QUANTILE * error)
    rng = random_stream(seed, "studentised bootstrap")
    standardised = (values - mean) / error
    ratios = []
    left = RESAMPLES
    while left > 0:
        count = min(left, max(1, _CHUNK // rows))
        drawn = standardised[rng.integers(rows, size=(count, rows))]
        spread = drawn.std(axis=1, ddof=1) / math.sqrt(rows)
        # A resample of one value only says nothing.
        usable = spread > 0
        ratios.append(drawn.mean(axis=1)[usable] / spread[usable])
        left -= count
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(ratios), [tail, 1 - tail])
    return Interval(mean, mean - float(high) * error, mean - float(low) * error)
