r"""Largest of L Gaussian numbers: moments, and the covariance of the maxima of correlated numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.polynomial.chebyshev import Chebyshev

from solvable.arrays import check_integer

LONGEST = 1024
"""Largest number of tokens of a document for which the quadratures are accurate."""


@dataclass(frozen=True)
class MaxMoments:
    """Moments of the largest and the second largest of L independent standard normal numbers."""

    mean: float
    variance: float
    """Mean and variance of the largest number."""
    second_mean: float
    """Mean of the second largest number."""
    information: float
    """Part of the variance of one of the L numbers that the largest number explains, times L."""


@lru_cache(maxsize=256)
def max_moments(tokens: int) -> MaxMoments:
    """Compute moments of the largest of L standard normal numbers, 2 <= L <= 1024, by quadrature."""
    # E max = int x L phi Phi^(L - 1) dx, and information = L E[T²] with
    # T(y) = E[h_j | max = y] = (y - (L - 1) phi(y) / Phi(y)) / L   (late-interaction 6).
    # The mean-pooled score explains the part 1 / (L Var max) of the variance of one query token's
    # score; the best function of the score and a single document token explains `information`.
    from scipy.special import log_ndtr, ndtr

    check_integer("tokens", tokens, 2, LONGEST)
    x = np.linspace(-12.0, 12.0, 4001)
    step = x[1] - x[0]
    log_normal = -(x**2) / 2 - np.log(2 * np.pi) / 2
    # densities of the largest and the second largest number   (late-interaction 6)
    largest = np.exp(np.log(tokens) + log_normal + (tokens - 1) * log_ndtr(x))
    second = 2 * comb(tokens, 2) * np.exp(log_normal + (tokens - 2) * log_ndtr(x)) * ndtr(-x)
    mean = float(x @ largest * step)
    # T(y) = (1/L) (y - (L - 1) phi(y) / Phi(y))   (late-interaction 6)
    conditional = (x - (tokens - 1) * np.exp(log_normal - log_ndtr(x))) / tokens
    return MaxMoments(
        mean=mean,
        variance=float((x - mean) ** 2 @ largest * step),
        second_mean=float(x @ second * step),
        information=float(tokens * (conditional**2 @ largest) * step),
    )


@dataclass(frozen=True)
class MaxCovariance:
    """Two rows of L standard normal numbers with correlation rho in each column."""

    tokens: int
    agreement: Chebyshev  # p(angle), chance that both rows have their maximum in the same column
    integral: Chebyshev  # integral of p(angle) sin(angle) over the angle

    def same_column(self, correlation: np.ndarray | float) -> np.ndarray:
        """Probability that both rows have their maximum in the same column."""
        angle = np.arccos(np.clip(correlation, -1, 1))
        return np.asarray(np.clip(self.agreement(angle), 0, 1))

    def covariance(self, correlation: np.ndarray | float) -> np.ndarray:
        """Covariance of the two maxima."""
        # c_L(rho) = int_0^rho p_L(t) dt   (late-interaction 7)
        angle = np.arccos(np.clip(correlation, -1, 1))
        return np.asarray(self.integral(np.pi / 2) - self.integral(angle))


@lru_cache(maxsize=64)
def max_covariance(tokens: int) -> MaxCovariance:
    """Compute the covariance of two maxima as a function of the correlation."""
    check_integer("tokens", tokens, 2, LONGEST)
    nodes = 40
    angles = (np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes) + 1) * np.pi / 2
    values = np.array([_same_column(tokens, float(np.cos(angle))) for angle in angles])
    fits = [
        Chebyshev.fit(angles, samples, nodes - 1, domain=[0, np.pi])
        for samples in (values, values * np.sin(angles))
    ]
    return MaxCovariance(tokens, fits[0], fits[1].integ())


def _same_column(tokens: int, correlation: float) -> float:
    """Probability p_L(rho) that both maxima are in the same column."""
    from scipy.special import ndtr, owens_t

    # p_L(rho) = L E[Phi_2(x, y; rho)^(L - 1)] over x and y with correlation rho   (late-interaction 7)
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    rest = np.sqrt(1 - correlation**2)
    x = points[:, None]
    y = correlation * x + rest * points
    with np.errstate(divide="ignore", invalid="ignore"):
        first, other = (y / x - correlation) / rest, (x / y - correlation) / rest
    # distribution function of two correlated normal numbers, by Owen's T function
    both = (ndtr(x) + ndtr(y)) / 2 - owens_t(x, first) - owens_t(y, other) - (x * y < 0) / 2
    return float(tokens * (weights @ np.clip(both, 0, 1) ** (tokens - 1) @ weights))
