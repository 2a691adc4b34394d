"""A family fitted to a curve, with curves drawn by the parametric bootstrap around the fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.forecast.families import Family
from solvable.forecast.fitting import Fits, Grid, adapted_grid, fit, whitener
from solvable.forecast.noise import ReplicateNoise

LEAST_FREEDOM = 2.0
"""Degrees of freedom that the scale of the misfit is credited with at least."""

CHANCE = 1.0
"""Standard deviations of the sum of squares beyond its degrees of freedom that count as chance."""

GUESSED_MISFIT = 0.03
"""Relative misfit that weights start from if no size has two replicates."""


@dataclass(frozen=True, eq=False)
class Fitted:
    r"""A family fitted to the means of a curve.

    Attributes
    ----------
    grid : Grid
        Parameters that were tried.
    best : Fits
        Maximum likelihood, of shape (1,).
    white : ndarray of shape (k, k)
        Weights of the fit.
    simulated : ndarray of shape (b, k)
        Bootstrap data.
    draws : Fits
        Refitted bootstrap data, of shape (b,).
    misfit : float
        :math:`\tau`: relative deviation of the means from the family beyond their noise.
    freedom : float
        Degrees of freedom left by the fit.
    chi_square : float
        Weighted sum of squares with the noise between replicates alone; NaN if that is not known.
    """

    grid: Grid
    best: Fits
    white: np.ndarray
    simulated: np.ndarray
    draws: Fits
    misfit: float
    freedom: float
    chi_square: float

    def curve(self, sizes: np.ndarray) -> np.ndarray:
        """Fitted errors at the sizes, shape (k,)."""
        return self.best.predict(self.grid, sizes)[0]

    def drawn_curves(self, sizes: np.ndarray) -> np.ndarray:
        """Errors of the bootstrap curves at the sizes, shape (b, k)."""
        return self.draws.predict(self.grid, sizes)


def fit_family(
    family: Family,
    *,
    sizes: np.ndarray,
    means: np.ndarray,
    noise: ReplicateNoise,
    resamples: int,
    rng: np.random.Generator,
) -> Fitted:
    r"""Fit by maximum likelihood, and refit to data simulated from the fit.

    Means are Gaussian around the curve, with the covariance of their replicates and a relative
    misfit :math:`\tau` on top, which is raised until the weighted sum of squares is no larger than
    chance allows. The bootstrap draws both variances from what is known of them, so that few
    replicates give wider intervals.

    Parameters
    ----------
    family : Family
        What to fit.
    sizes, means : ndarray of shape (k,)
        Data.
    noise : ReplicateNoise
        Of the means.
    resamples : int
        Bootstrap curves.
    rng : Generator
        Source of the draws.

    Returns
    -------
    Fitted
        See there.
    """
    freedom = max(sizes.size - 2 - len(family.parameters), 0)
    start = 0.0 if noise.known else GUESSED_MISFIT
    white = whitener(noise.covariance + np.diag((start * _scale(means)) ** 2))
    grid, best = adapted_grid(family, sizes, means, white)
    chi_square = float(best.misfit[0]) if noise.known else float("nan")
    fitted = best.predict(grid, sizes)[0]
    misfit = relative_misfit(
        means - fitted, _scale(fitted), noise.covariance, _allowed(freedom, noise.known)
    )
    if misfit > 0:
        white = whitener(noise.covariance + np.diag((misfit * _scale(fitted)) ** 2))
        grid, best = adapted_grid(family, sizes, means, white)
        fitted = best.predict(grid, sizes)[0]
    simulated = fitted + _simulated_noise(
        noise, misfit * _scale(fitted), max(freedom, LEAST_FREEDOM), resamples, rng
    )
    draws = fit(grid, simulated, white)
    return Fitted(grid, best, white, simulated, draws, misfit, float(freedom), chi_square)


def _allowed(freedom: int, noise_known: bool) -> float:
    """Sum of squares that needs no misfit to explain it."""
    least = max(freedom, 1)
    # Without replicates the misfit is the noise itself and must be unbiased.
    return least + (CHANCE * (2 * least) ** 0.5 if noise_known else 0.0)


def _scale(errors: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(errors), 1e-3 * max(float(np.max(np.abs(errors))), 1e-300))


def relative_misfit(
    residual: np.ndarray, scale: np.ndarray, covariance: np.ndarray, freedom: float
) -> float:
    r"""Solve :math:`r^\top(C+\tau^2\mathrm{diag}(e^2))^{-1}r=\mathrm{freedom}`; 0 if noise suffices.

    Parameters
    ----------
    residual, scale : ndarray of shape (k,)
        Deviations from the fit, and the fit.
    covariance : ndarray of shape (k, k)
        Of the means, by replicates.
    freedom : float
        Degrees of freedom.

    Returns
    -------
    float
        :math:`\tau`.

    Notes
    -----
    The estimator of Paule and Mandel for random effects, by bisection.
    """

    def excess(misfit: float) -> float:
        total = covariance + np.diag((misfit * scale) ** 2)
        return float(residual @ np.linalg.solve(total, residual)) - freedom

    low, high = 0.0, 10.0
    if excess(low) <= 0:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def _simulated_noise(
    noise: ReplicateNoise,
    misfit: np.ndarray,
    freedom: float,
    resamples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Noise of the means with variances drawn from what is known of them, shape (b, k)."""
    shape = (resamples, misfit.size)
    factor = np.linalg.cholesky(noise.covariance)
    own = rng.standard_normal(shape) @ factor.T
    own *= np.sqrt(noise.freedom / rng.chisquare(noise.freedom, size=shape))
    beyond = misfit * rng.standard_normal(shape)
    beyond *= np.sqrt(freedom / rng.chisquare(freedom, size=(resamples, 1)))
    return np.asarray(own + beyond)
