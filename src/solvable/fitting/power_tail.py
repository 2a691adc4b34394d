"""Fit a power-law tail by maximum likelihood, test it, and compare it with a log-normal tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gap

MINIMUM_TAIL = 50  # smallest number of values in a tail

# Smallest ratio of a tail's end values: over less than half a decade, a power law cannot be
# distinguished from other smooth decays.
MINIMUM_REACH = 3.0


@dataclass(frozen=True)
class TailFit:
    """Fit of a power law to the values above a threshold."""

    exponent: float  # exponent alpha of the density ~ lambda^(-alpha)
    interval: tuple[
        float, float
    ]  # standard error of the exponent, including the choice of the threshold
    threshold: float  # threshold, the smallest value in the tail
    n_tail: int  # number of values in the tail
    reach: float  # largest value divided by the threshold
    distance: float  # Kolmogorov-Smirnov distance between the tail and the fitted power law
    p_value: float  # p-value of this distance; below 0.1 the power law is rejected
    # p-value, under the power law, of the log-likelihood's gain by the best truncated log-normal; below
    # 0.05 the log-normal is better
    power_law_p_value: float

    @property
    def refuted(self) -> bool:
        """Return True if the goodness-of-fit test rejects the power law."""
        return self.p_value < 0.1

    @property
    def plausible(self) -> bool:
        """Return True if the power law is not rejected and no log-normal is better."""
        return not self.refuted and self.power_law_p_value >= 0.05


@dataclass(frozen=True)
class _Scan:
    exponent: float
    start: int
    distance: float


def fit_tail(
    values: np.ndarray, *, confidence: float = 0.95, draws: int = 99, seed: int = 0
) -> TailFit:
    """Fit the exponent of a power-law tail, and test the power law by parametric bootstrap."""
    # Method of Clauset, Shalizi and Newman, arXiv:0706.1062. Eigenvalues repel each other, so a spectrum
    # passes the test too often, and the edge of a noise bulk may pass as a tail. Callers must
    # therefore also test for a bulk.
    from scipy.special import ndtri

    ordered = _checked(values)
    found = _scan(ordered)
    if found is None:
        raise InvalidData(
            f"no exponent is fitted: no tail of at least {MINIMUM_TAIL} values has a ratio of at least "
            f"{MINIMUM_REACH:g} between its largest and smallest value."
        )
    n_body, n = found.start, ordered.size
    tail = ordered[n_body:]
    rng = np.random.default_rng(seed)
    distances, exponents = [], []
    # Each replicate draws the body from the data and the tail from the law, and its threshold is
    # chosen again.
    for _ in range(draws):
        n_below = int(rng.binomial(n, n_body / n))
        body = rng.choice(ordered[:n_body], n_below) if n_below else np.zeros(0)
        law = tail[0] * rng.random(n - n_below) ** (-1 / (found.exponent - 1))
        again = _scan(np.sort(np.concatenate([body, law])))
        # A replicate without a tail counts in favour of the power law, so that the test is conservative.
        distances.append(np.inf if again is None else again.distance)
        if again is not None:
            exponents.append(again.exponent)
    exceeding = int((np.array(distances) >= found.distance).sum())
    plain = (found.exponent - 1) / np.sqrt(tail.size)
    spread = max(plain, float(np.std(exponents)) if len(exponents) > 1 else 0.0)
    reach = float(ndtri(0.5 + confidence / 2)) * spread
    return TailFit(
        found.exponent,
        (max(1.0, found.exponent - reach), found.exponent + reach),
        float(tail[0]),
        int(tail.size),
        float(tail[-1] / tail[0]),
        found.distance,
        (1 + exceeding) / (1 + draws),
        _p_value_against_lognormal(np.log(tail / tail[0]), found.exponent, rng, 99),
    )


def tail_exponent(values: np.ndarray) -> tuple[float, int] | None:
    """Return exponent and size of the tail without any test; None if no tail is long enough."""
    try:
        found = _scan(_checked(values))
    except InvalidData:
        return None
    return None if found is None else (found.exponent, values.size - found.start)


def _checked(values: np.ndarray) -> np.ndarray:
    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    if not np.isfinite(ordered).all() or (ordered < 0).any():
        raise InvalidData("a value is negative or not finite; allowed: numbers from 0 up.")
    ordered = ordered[ordered > 0]
    if ordered.size < MINIMUM_TAIL:
        raise InvalidData(
            f"there are {ordered.size} positive values; allowed: at least {MINIMUM_TAIL} for a tail."
        )
    if ordered[0] == ordered[-1]:
        raise InvalidData(
            f"all {ordered.size} values are {ordered[0]:.6g}; allowed: several different values."
        )
    return ordered


def _scan(ordered: np.ndarray) -> _Scan | None:
    """Choose the threshold with the smallest distance; None if no tail is long enough."""
    n = ordered.size
    # Logarithms are summed once, and thresholds are tried at geometrically spaced tail sizes, in
    # O(N log N) instead of O(N²) for all thresholds.
    logs = np.log(ordered)
    beyond = np.cumsum(logs[::-1])[::-1]
    counts = np.unique(np.geomspace(MINIMUM_TAIL, n, 60).astype(int))
    best: _Scan | None = None
    for count in counts:
        # A tail includes all values that are equal to its smallest value.
        start = int(np.searchsorted(ordered, ordered[n - count]))
        size = n - start
        total = beyond[start] - size * logs[start]
        if total <= 0 or logs[-1] - logs[start] < np.log(MINIMUM_REACH):
            continue
        rate = size / total  # alpha - 1 = n / sum_{i <= n} log(lambda_i / lambda_min)
        law = 1 - np.exp(-rate * (logs[start:] - logs[start]))
        distance = largest_gap(law)
        if best is None or distance < best.distance:
            best = _Scan(float(1 + rate), start, distance)
    return best


def _p_value_against_lognormal(
    logs: np.ndarray, exponent: float, rng: np.random.Generator, draws: int
) -> float:
    # Logarithms of a truncated log-normal have density ~ exp(-a t - b t² / 2) for t > 0, with b > 0.
    # The power law is the limit b = 0, so its gain in log-likelihood is at most zero.
    gain = _gains(logs[None])[0]
    under_law = _gains(rng.exponential(1 / (exponent - 1), (draws, logs.size)))
    return float((1 + (under_law <= gain).sum()) / (1 + draws))


def _gains(logs: np.ndarray) -> np.ndarray:
    """Compute the log-likelihood of the power law minus the best log-normal's, per row; at most zero."""
    # With alpha = a / sqrt(b) and sigma = b^(-1/2) the distribution is a Gaussian beyond alpha standard
    # deviations. At fixed alpha the best sigma is the root of sigma² - alpha m_1 sigma - m_2, so only
    # alpha is searched, for all rows at once.
    from scipy.special import erfcx

    # The tail starts at most 25 standard deviations below the maximum of the log-normal.
    start = np.arcsinh(-25.0)
    first, second = logs.mean(axis=1)[:, None], (logs**2).mean(axis=1)[:, None]

    def at(alpha: np.ndarray) -> np.ndarray:
        sigma = (alpha * first + np.sqrt((alpha * first) ** 2 + 4 * second)) / 2
        norm = np.log(np.sqrt(np.pi / 2) * erfcx(alpha / np.sqrt(2)))
        return np.asarray(-np.log(sigma) - second / (2 * sigma**2) - alpha * first / sigma - norm)

    # Steps grow with the distance from zero, as the power law is the limit of large alpha.
    place = np.tile(np.linspace(start, np.arcsinh(1e4), 81), (len(logs), 1))
    for _ in range(4):
        values = at(np.sinh(place))
        k = np.argmax(values, axis=1)
        best, step = place[np.arange(len(logs)), k], place[:, 1] - place[:, 0]
        place = best[:, None] + step[:, None] * np.linspace(-1, 1, 21)
        place = np.maximum(place, start)
    plain = -1 - np.log(first[:, 0])
    return np.minimum(0.0, logs.shape[1] * (plain - at(np.sinh(best)[:, None])[:, 0]))
