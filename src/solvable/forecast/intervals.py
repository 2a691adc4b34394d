"""Intervals of a predicted error: profile likelihoods, with tails averaged over models.

Percentiles of bootstrap predictions cover too rarely if the offset may be zero, because all draws have
an offset close to the fitted offset. The profile likelihood includes all offsets, and the bootstrap gives
the distribution of the deviance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.forecast.fitting import Fitted, projected
from solvable.forecast.noise import ReplicateNoise

DEVIANCE_KEPT = 16.0  # largest deviance of a curve in a profile, which is four standard deviations

CHI_SQUARE_90 = 2.7055  # 90 % quantile of chi-square with one degree of freedom


def profile_deviance(
    shapes: np.ndarray,
    target: np.ndarray,
    data: np.ndarray,
    white: np.ndarray,
    values: np.ndarray,
) -> np.ndarray:
    """Compute the smallest misfit of curves with each of the v errors at a target size, shape (b, v)."""
    # shapes: (g, k) at the measured sizes; target: (g,) at the target size; data: (b, k).
    ones, columns, y = white.sum(axis=1), shapes @ white.T, data @ white.T
    a, b, c = ones @ ones, columns @ ones, np.sum(columns**2, axis=1)
    d, e, yy = (y @ ones)[:, None], y @ columns.T, np.sum(y**2, axis=1)[:, None]
    # If a shape vanishes at the target size, the error at this size is the offset.
    inverse = 1 / np.maximum(target, 1e-9)
    # With A = (f - e_inf) / g_* the misfit is quadratic in the offset; its minimum over
    # 0 <= e_inf <= f is exact.
    square = np.maximum(a - 2 * b * inverse + c * inverse**2, 1e-300)
    at_zero, slope = d - e * inverse, inverse * (b - c * inverse)
    linear, curvature = 2 * inverse * e, inverse**2 * c
    least = np.empty((data.shape[0], values.size))
    for place, value in enumerate(values):
        cross = at_zero - value * slope
        offset = np.minimum(np.maximum(cross / square, 0.0), value)
        whole = value * (value * curvature - linear) + offset * (offset * square - 2 * cross)
        least[:, place] = yy[:, 0] + np.min(whole, axis=1)
    return least


def deviance_scale(fitted: Fitted, size: float) -> float:
    """Return the square root of the ratio between simulated deviances and chi-square."""
    at = np.array([size])
    target = fitted.grid.family.shapes(fitted.grid.parameters, at)[:, 0]
    constrained = profile_deviance(
        fitted.grid.shapes, target, fitted.simulated, fitted.white, fitted.curve(at)
    )[:, 0]
    deviance = np.maximum(constrained - fitted.draws.misfit, 0.0)
    ratio = float(np.quantile(deviance, 0.9)) / CHI_SQUARE_90
    # The quantile of a few hundred draws is noisy, so it narrows an interval by at most a fifth.
    return max(0.8, ratio**0.5)


class Profile:
    """Signed root deviance as a function of the error at one size, on a grid far into the tails."""

    def __init__(self, fitted: Fitted, means: np.ndarray, size: float) -> None:
        at = np.array([size])
        grid, white = fitted.grid, fitted.white
        offset, amplitude, misfit = projected(grid.shapes, means[None], white)
        least = float(misfit.min())
        kept = misfit[0] <= least + DEVIANCE_KEPT
        shapes = grid.shapes[kept]
        target = grid.family.shapes(grid.parameters[kept], at)[:, 0]
        through = offset[0, kept] + amplitude[0, kept] * target
        reach = DEVIANCE_KEPT**0.5 * _spread(shapes, target, white)
        self.best = float(fitted.curve(at)[0])
        low = max(float(np.min(through - reach)), 1e-3 * self.best, 1e-12 * float(means.max()))
        high = max(float(np.max(through + reach)), 1.01 * low)
        self.values = np.geomspace(low, high, 160)
        deviance = profile_deviance(shapes, target, means[None], white, self.values)[0] - least
        self.roots = np.sign(self.values - self.best) * np.sqrt(np.maximum(deviance, 0.0))

    def confidence_below(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Return the confidence that the error is below each of the increasing values, shape (v,)."""
        from scipy.special import ndtr

        far = DEVIANCE_KEPT**0.5
        roots = np.interp(np.log(values), np.log(self.values), self.roots, left=-far, right=far)
        return np.asarray(np.maximum.accumulate(ndtr(roots / scale)))


def _spread(shapes: np.ndarray, target: np.ndarray, white: np.ndarray) -> np.ndarray:
    """Compute the standard deviation of each shape's error at the target size."""
    ones, columns = white.sum(axis=1), shapes @ white.T
    a, b, c = ones @ ones, columns @ ones, np.sum(columns**2, axis=1)
    determinant = np.maximum(a * c - b**2, 1e-9 * a * c)
    return np.sqrt(np.maximum(c - 2 * b * target + a * target**2, 0.0) / determinant)


class ConfidenceMixture:
    """Confidence that the error at one size is below a value, averaged over models."""

    def __init__(
        self, profiles: Sequence[Profile], weights: Sequence[float], scales: Sequence[float]
    ) -> None:
        ends = np.array([profile.values[[0, -1]] for profile in profiles])
        self.values = np.geomspace(ends[:, 0].min(), ends[:, 1].max(), 400)
        self.confidence = np.zeros(self.values.size)
        # H(f) = sum_M w_M Phi(r_M(f) / s_M) with the signed root deviance r_M: an average of tails, not
        # of intervals (D. Turek and D. Fletcher, Comput. Stat. Data Anal. 56 (2012)).
        for profile, weight, scale in zip(profiles, weights, scales, strict=True):
            self.confidence += weight * profile.confidence_below(self.values, scale)

    def quantiles(self, levels: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return, for each confidence level, the error below which the true error lies."""
        return np.exp(np.interp(levels, self.confidence, np.log(self.values)))

    def below(self, value: float) -> float:
        """Return the confidence that the error is below a value."""
        return float(np.interp(np.log(value), np.log(self.values), self.confidence))

    def measurement_quantiles(
        self, levels: Sequence[float], noise: ReplicateNoise, misfit: float
    ) -> np.ndarray:
        """Compute :meth:`quantiles`, cut at 0, for one new measurement instead of the mean error."""
        from scipy.special import ndtr

        # A measurement's noise is added to 400 equally probable mean errors.
        centres = self.quantiles((np.arange(400) + 0.5) / 400)
        # Without replicates, the misfit serves as the noise.
        variance = noise.variance_at(centres) if noise.known else (misfit * centres) ** 2
        spread = np.sqrt(np.maximum(variance, (1e-6 * centres) ** 2))
        low, high = np.min(centres - 5 * spread), np.max(centres + 5 * spread)
        values = np.linspace(low, high, 800)
        below = ndtr((values[:, None] - centres) / spread).mean(axis=1)
        return np.maximum(np.interp(levels, below, values), 0.0)
