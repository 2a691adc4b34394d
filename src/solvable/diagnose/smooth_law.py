"""Smooth densities of positive values without edges, with a power-law or a faster decay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gap


@dataclass(frozen=True)
class SmoothLaw:
    """Density f_t of t = log y, with u = a (t - log m)   (spectra 11)."""

    power_tail: bool  # f_t = a e^(pu) / (B(p, q) (1 + e^u)^(p+q)); else a e^(ku - e^u) / Gamma(k)
    scale: float  # scale m
    sharpness: float  # shape a; without a power-law tail a -> 0 is the log-normal
    body: float  # shape p or k
    tail: float  # shape q, with tail y^(-1-aq); infinite for the second density (limit)
    log_likelihood: float  # log-likelihood of the fitted values, with densities per unit of y
    # True if a = p = 1 were fixed: y = s - m with s from a power law above m, the result of a soft
    # threshold on a power law.
    shifted: bool = False

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters."""
        return 3 + self.power_tail - 2 * self.shifted

    def density(self, y: np.ndarray) -> np.ndarray:
        """Density at y > 0."""
        t = np.log(y)
        theta = np.log([self.scale, self.sharpness, self.body, *([self.tail] * self.power_tail)])
        value, _ = _terms(theta, t, self.power_tail)
        return np.asarray(np.exp(value - t))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Distribution function at y."""
        from scipy.special import betainc, betaln, expit, gammainc, gammaln

        u = self.sharpness * (np.log(y) - np.log(self.scale))
        if self.power_tail:
            whole = betainc(self.body, self.tail, expit(u))
            norm = np.log(self.body) + betaln(self.body, self.tail)
        else:
            whole, norm = gammainc(self.body, np.exp(np.minimum(u, 200.0))), gammaln(self.body + 1)
        # The argument can underflow (for large a with small p); its leading term does not.
        return np.where(u < -30, np.exp(np.minimum(self.body * u - norm, 0.0)), whole)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent values."""
        u = _log_gamma(self.body, n, rng)
        if self.power_tail:
            u = u - _log_gamma(self.tail, n, rng)
        # A density over hundreds of decades gives values outside the range of floating point.
        drawn = self.scale * np.exp(np.minimum(u / self.sharpness, 700.0))
        return np.clip(drawn, np.finfo(float).tiny, np.finfo(float).max)

    def p_value(self, values: np.ndarray, *, draws: int = 39, seed: int = 0) -> float:
        """Goodness of fit by parametric bootstrap of the Kolmogorov-Smirnov distance."""
        # Replicates are independent: values that repel pass too often, never too rarely.
        rng = np.random.default_rng(seed)
        seen = _distance(self, np.sort(values))
        count = 0
        for _ in range(draws):
            again = np.sort(self.draw(values.size, rng))
            # The search starts at the true parameters: a missed maximum would make a true law look bad.
            count += _distance(_search(again, self.power_tail, self.shifted, self), again) >= seen
        return (1 + count) / (1 + draws)


def fit_smooth(values: np.ndarray, *, power_tail: bool, shifted: bool = False) -> SmoothLaw:
    """Fit a family by maximum likelihood, with quasi-Newton steps and exact derivatives."""
    # Generalised beta distribution (McDonald, Econometrica 52 (1984) 647)   (spectra 11). If
    # ``shifted``, a = p = 1 are fixed; this needs a power-law tail.
    y = np.asarray(values, dtype=float)
    if y.size < 5 or not np.isfinite(y).all() or y.min() <= 0 or y.min() == y.max():
        raise InvalidData(
            f"{y.size} values from {y.min(initial=np.inf):.6g} to {y.max(initial=-np.inf):.6g}; "
            "allowed: at least 5 positive finite ones, not all equal."
        )
    return _search(y, power_tail, shifted, None)


def _search(y: np.ndarray, power_tail: bool, shifted: bool, near: SmoothLaw | None) -> SmoothLaw:
    from scipy.optimize import minimize

    t = np.log(y)
    middle, spread = float(np.median(t)), float(t.std())

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _terms(theta, (t - middle) / spread, power_tail)
        return -float(value.mean()), -gradient / t.size

    # bound of the shape parameters' logarithms: the families' limits are reached up to a nat
    bound = (-8.0, 8.0)
    # starts in logarithms scaled to unit spread; the last start is near the log-normal
    starts = [[0.0, 0.5, 0.0], [0.0, 1.5, -1.0], [-46.0, -2.3, 4.6]]
    if power_tail:
        starts = [[0.0, 0.5, 0.0, 0.0], [0.0, 1.5, -1.0, 1.0], [0.0, -1.6, 3.9, 3.9]]
    if near is not None:
        shapes = [near.body, *([near.tail] * power_tail)]
        logs = [np.log(near.sharpness * spread), *np.log(shapes)]
        starts = [[(np.log(near.scale) - middle) / spread, *logs]]
    bounds = [(-1e3, 1e3)] + [bound] * (2 + power_tail)
    if shifted:
        fixed = [float(np.log(spread)), 0.0]
        bounds[1:3] = [(value, value) for value in fixed]
        starts = [[start[0], *fixed, *start[3:]] for start in starts]

    def climb(start: Sequence[float], steps: int) -> Any:
        options = {"maxiter": steps}
        return minimize(
            loss, np.array(start), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )

    # After a few steps from every start, only the best start continues.
    fits = [climb(start, 25) for start in starts]
    best = climb(min(fits, key=lambda fit: float(fit.fun)).x, 300)
    theta = best.x
    total = -float(best.fun) * t.size - t.size * np.log(spread) - float(t.sum())
    return SmoothLaw(
        power_tail,
        float(np.exp(np.clip(middle + spread * theta[0], -700.0, 700.0))),
        float(np.exp(theta[1]) / spread),
        float(np.exp(theta[2])),
        float(np.exp(theta[3])) if power_tail else float("inf"),
        total,
        shifted,
    )


def _terms(theta: np.ndarray, t: np.ndarray, power_tail: bool) -> tuple[np.ndarray, np.ndarray]:
    """Log-density of each t, and the gradient of the summed log-densities in the log-parameters."""
    # The first parameter is log m itself.
    from scipy.special import betaln, digamma, expit, gammaln

    place, a, p = theta[0], np.exp(theta[1]), np.exp(theta[2])
    u = a * (t - place)
    n = t.size
    if power_tail:
        q = np.exp(theta[3])
        soft = np.logaddexp(0.0, u)
        value = np.log(a) + p * u - (p + q) * soft - betaln(p, q)
        slope = p - (p + q) * expit(u)
        both = digamma(p + q)
        last = [
            p * (float((u - soft).sum()) - n * (digamma(p) - both)),
            q * (-float(soft.sum()) - n * (digamma(q) - both)),
        ]
    else:
        # Far outside the bounds of the search the density is zero in double precision.
        grown = np.exp(np.minimum(u, 200.0))
        value = np.log(a) + p * u - grown - gammaln(p)
        slope = p - grown
        last = [p * (float(u.sum()) - n * digamma(p))]
    gradient = np.array([-a * float(slope.sum()), n + float((slope * u).sum()), *last])
    return value, gradient


def _log_gamma(shape: float, n: int, rng: np.random.Generator) -> np.ndarray:
    # A gamma variable of small shape underflows; its logarithm does not.
    lift = np.log(rng.standard_gamma(shape + 1, n))
    return np.asarray(lift - rng.standard_exponential(n) / shape)


def _distance(law: SmoothLaw, ordered: np.ndarray) -> float:
    return largest_gap(law.cdf(ordered))
