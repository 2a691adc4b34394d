"""Power-law tail of a spectrum by maximum likelihood, with a goodness of fit and a rival."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gap

MINIMUM_TAIL = 50  # values beyond the threshold below which no exponent is given

# Ratio of the ends of a tail below which no exponent is given: a law seen over less than half a
# decade cannot be told from any other smooth decay.
MINIMUM_REACH = 3.0


@dataclass(frozen=True)
class TailFit:
    """Power law beyond a threshold."""

    exponent: float  # alpha of the density ~ lambda^(-alpha)
    interval: tuple[float, float]  # of the exponent, choice of the threshold included
    threshold: float  # value from which the law is fitted
    n_tail: int  # values beyond it
    reach: float  # largest value over the threshold
    distance: float  # largest difference of the distribution functions beyond the threshold
    p_value: float  # of such a distance if the tail is a power law; below 0.1 it is none
    # of so great a loss of log-likelihood to the best truncated log-normal, under the power law: below
    # 0.05 the power law is worse
    power_law_p_value: float

    @property
    def plausible(self) -> bool:
        """Whether the power law passes its test and loses to no log-normal."""
        return self.p_value >= 0.1 and self.power_law_p_value >= 0.05


@dataclass(frozen=True)
class _Scan:
    exponent: float
    start: int
    distance: float


def fit_tail(
    values: np.ndarray, *, confidence: float = 0.95, draws: int = 99, seed: int = 0
) -> TailFit:
    """Exponent of a power-law tail, and whether there is one: p-values by parametric bootstrap."""
    # Clauset, Shalizi and Newman, arXiv:0706.1062. Eigenvalues repel: a spectrum may pass too
    # easily, never too rarely, so a bulk must be tested beside it: the edge of noise passes as a
    # tail.
    from scipy.special import ndtri

    ordered = _checked(values)
    found = _scan(ordered)
    if found is None:
        raise InvalidData(
            f"no tail of at least {MINIMUM_TAIL} values has a ratio of at least {MINIMUM_REACH:g} "
            "between its ends; no exponent is fitted."
        )
    n_body, n = found.start, ordered.size
    tail = ordered[n_body:]
    rng = np.random.default_rng(seed)
    distances, exponents = [], []
    # Replicates draw the body from the data and the tail from the law, and choose their threshold
    # anew.
    for _ in range(draws):
        n_below = int(rng.binomial(n, n_body / n))
        body = rng.choice(ordered[:n_body], n_below) if n_below else np.zeros(0)
        law = tail[0] * rng.random(n - n_below) ** (-1 / (found.exponent - 1))
        again = _scan(np.sort(np.concatenate([body, law])))
        # A replicate without a tail of its own counts for the law: the test stays careful.
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


def _checked(values: np.ndarray) -> np.ndarray:
    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    if not np.isfinite(ordered).all() or (ordered < 0).any():
        raise InvalidData("a value is negative or not finite; allowed: numbers from 0 up.")
    ordered = ordered[ordered > 0]
    if ordered.size < MINIMUM_TAIL:
        raise InvalidData(
            f"{ordered.size} positive values; at least {MINIMUM_TAIL} are needed for a tail."
        )
    if ordered[0] == ordered[-1]:
        raise InvalidData(f"all {ordered.size} values are {ordered[0]:.6g}; a tail needs several.")
    return ordered


def _scan(ordered: np.ndarray) -> _Scan | None:
    """Threshold of smallest distance; None if no tail is long enough."""
    n = ordered.size
    # Logarithms are summed once and thresholds tried in geometric steps of the number beyond them:
    # the scan costs O(N log N) where every threshold would cost O(N²).
    logs = np.log(ordered)
    beyond = np.cumsum(logs[::-1])[::-1]
    counts = np.unique(np.geomspace(MINIMUM_TAIL, n, 60).astype(int))
    best: _Scan | None = None
    for count in counts:
        # Equal values belong to one tail; the first of them is its start.
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
    # Logarithms of a truncated log-normal have density ~ exp(-a t - b t² / 2), t > 0, b > 0: the
    # power law is its limit b = 0, so its gain is at most zero.
    gain = _gains(logs[None])[0]
    under_law = _gains(rng.exponential(1 / (exponent - 1), (draws, logs.size)))
    return float((1 + (under_law <= gain).sum()) / (1 + draws))


def _gains(logs: np.ndarray) -> np.ndarray:
    """Log-likelihood lost by no curvature, for each row of logarithms; at most zero."""
    # With alpha = a / sqrt(b) and sigma = b^(-1/2) the law is that of a Gaussian beyond alpha
    # standard deviations. At fixed alpha the best sigma is the root of sigma² - alpha m_1 sigma -
    # m_2, so that one number is searched, all rows at once.
    from scipy.special import erfcx

    # Standard deviations below the summit of a log-normal at which its tail may start, at most.
    start = np.arcsinh(-25.0)
    first, second = logs.mean(axis=1)[:, None], (logs**2).mean(axis=1)[:, None]

    def at(alpha: np.ndarray) -> np.ndarray:
        sigma = (alpha * first + np.sqrt((alpha * first) ** 2 + 4 * second)) / 2
        norm = np.log(np.sqrt(np.pi / 2) * erfcx(alpha / np.sqrt(2)))
        return np.asarray(-np.log(sigma) - second / (2 * sigma**2) - alpha * first / sigma - norm)

    # Steps grow with the distance from zero: the limit of the power law is far out.
    place = np.tile(np.linspace(start, np.arcsinh(1e4), 81), (len(logs), 1))
    for _ in range(4):
        values = at(np.sinh(place))
        k = np.argmax(values, axis=1)
        best, step = place[np.arange(len(logs)), k], place[:, 1] - place[:, 0]
        place = best[:, None] + step[:, None] * np.linspace(-1, 1, 21)
        place = np.maximum(place, start)
    plain = -1 - np.log(first[:, 0])
    return np.minimum(0.0, logs.shape[1] * (plain - at(np.sinh(best)[:, None])[:, 0]))
