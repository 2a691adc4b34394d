"""Fit a family to a curve: offset and amplitude exactly, the other parameters on a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.forecast.families import Family
from solvable.forecast.noise import ReplicateNoise

BLOCK = 4_000_000  # largest number of misfit values in memory at once


@dataclass(frozen=True, eq=False)
class Grid:
    """Shapes of a family on a grid of its non-linear parameters."""

    family: Family
    parameters: np.ndarray  # non-linear parameters, shape (g, q)
    shapes: np.ndarray  # shapes at the measured sizes, (g, k)


@dataclass(frozen=True, eq=False)
class Fits:
    """Best-fitting curves of a family, one per row of data."""

    rows: np.ndarray  # row of the grid for each row of data, (b,)
    offset: np.ndarray  # offset, at least 0, as is the amplitude
    amplitude: np.ndarray
    misfit: np.ndarray  # weighted sum of squared residuals

    def predict(self, grid: Grid, sizes: np.ndarray) -> np.ndarray:
        """Return the errors of the fitted curves at the sizes, shape (b, k)."""
        used, place = np.unique(self.rows, return_inverse=True)
        shapes = grid.family.shapes(grid.parameters[used], sizes)
        return self.offset[:, None] + self.amplitude[:, None] * shapes[place]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fit of a family to the means of a curve, with curves drawn by the parametric bootstrap."""

    grid: Grid
    best: Fits  # maximum-likelihood curve, as one row
    white: np.ndarray  # weight matrix of the fit, (k, k)
    simulated: np.ndarray  # bootstrap data, (b, k)
    draws: Fits  # curves fitted to the bootstrap data
    misfit: float  # relative deviation tau of the means from the family, beyond noise
    freedom: float  # residual degrees of freedom of the fit
    chi_square: float  # sum of squares weighted by replicate noise only; NaN without replicates

    def curve(self, sizes: np.ndarray) -> np.ndarray:
        """Return fitted errors at the sizes, shape (k,)."""
        return self.best.predict(self.grid, sizes)[0]

    def drawn_curves(self, sizes: np.ndarray) -> np.ndarray:
        """Return errors of the bootstrap curves at the sizes, shape (b, k)."""
        return self.draws.predict(self.grid, sizes)


def whitener(covariance: np.ndarray) -> np.ndarray:
    """Return W with W C W^T = 1, the inverse of the covariance's Cholesky factor, shape (k, k)."""
    return np.linalg.inv(np.linalg.cholesky(covariance))


def projected(
    shapes: np.ndarray, data: np.ndarray, white: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute offset, amplitude and misfit for every row of data and every curve shape, each (b, g)."""
    # Variable projection: |W (e - e_inf - A g)|² is quadratic in e_inf and A; the coefficients are
    # products of W 1, W g and W e.
    ones = white.sum(axis=1)
    columns = shapes @ white.T
    y = data @ white.T
    a, b, c = ones @ ones, columns @ ones, np.sum(columns**2, axis=1)
    d, e = (y @ ones)[:, None], y @ columns.T
    yy = np.sum(y**2, axis=1)[:, None]
    # A shape that is constant over the sizes cannot be distinguished from the offset.
    determinant = a * c - b**2
    plain = determinant > 1e-12 * a * c
    safe = np.where(plain, determinant, 1.0)
    amplitude = np.where(plain, (a * e - b * d) / safe, 0.0)
    offset = np.where(plain, (c * d - b * e) / safe, d / a)
    # If the minimum has e_inf < 0 or A < 0, the better of the two edges e_inf = 0 and A = 0 is used.
    alone = np.maximum(e, 0.0) / np.where(c > 0, c, 1.0)
    constant = np.maximum(d, 0.0) / a
    outside = (offset < 0) | (amplitude < 0)
    shaped = np.maximum(e, 0.0) * alone >= np.maximum(d, 0.0) * constant
    amplitude = np.where(outside, np.where(shaped, alone, 0.0), amplitude)
    offset = np.where(outside, np.where(shaped, 0.0, constant), offset)
    misfit = (
        yy - 2 * (offset * d + amplitude * e)
        + offset**2 * a + 2 * offset * amplitude * b + amplitude**2 * c
    )  # fmt: skip
    return offset, amplitude, np.maximum(misfit, 0.0)


def fit(grid: Grid, data: np.ndarray, white: np.ndarray) -> Fits:
    """Fit every row of data, shape (b, k), with the best shape of the grid, in time O(b g k)."""
    block = max(BLOCK // max(grid.shapes.shape[0], 1), 1)
    parts = [
        _fit_block(grid, data[first : first + block], white)
        for first in range(0, data.shape[0], block)
    ]
    return Fits(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.offset for part in parts]),
        np.concatenate([part.amplitude for part in parts]),
        np.concatenate([part.misfit for part in parts]),
    )


def _fit_block(grid: Grid, data: np.ndarray, white: np.ndarray) -> Fits:
    offset, amplitude, misfit = projected(grid.shapes, data, white)
    rows = np.argmin(misfit, axis=1)
    each = np.arange(rows.size)
    return Fits(rows, offset[each, rows], amplitude[each, rows], misfit[each, rows])


def adapted_grid(
    family: Family, sizes: np.ndarray, means: np.ndarray, white: np.ndarray
) -> tuple[Grid, Fits]:
    """Refine the grid until it resolves the data's likelihood; return the grid and the best fit."""
    depth = 60.0  # parameters with a larger rise of the misfit have negligible likelihood
    resolved = 0.05  # refinement stops when the misfit falls by less
    parameters = family.coarse(sizes)
    grid = Grid(family, parameters, family.shapes(parameters, sizes))
    before = np.inf
    for _ in range(6):
        _, _, misfit = projected(grid.shapes, means[None], white)
        best = float(misfit.min())
        kept = misfit[0] <= best + depth
        finer = family.refined(grid.parameters[kept], grid.parameters)
        grid = Grid(family, finer, family.shapes(finer, sizes))
        if before - best < resolved:
            break
        before = best
    return grid, fit(grid, means[None], white)


def fit_family(
    family: Family,
    *,
    sizes: np.ndarray,
    means: np.ndarray,
    noise: ReplicateNoise,
    resamples: int,
    rng: np.random.Generator,
) -> Fitted:
    """Fit a family by maximum likelihood, and fit it again to data simulated from the first fit."""
    # The means are Gaussian around the curve, with the covariance from replicates plus a relative
    # misfit tau, which is raised until the weighted sum of squares is within chance.
    freedom = max(sizes.size - 2 - len(family.parameters), 0)
    # Without replicates, the first weights assume a misfit of 3 %.
    start = 0.0 if noise.known else 0.03
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
    # The scale of the misfit is given at least two degrees of freedom.
    simulated = fitted + _simulated_noise(
        noise, misfit * _scale(fitted), max(freedom, 2.0), resamples, rng
    )
    draws = fit(grid, simulated, white)
    return Fitted(grid, best, white, simulated, draws, misfit, float(freedom), chi_square)


def _allowed(freedom: int, noise_known: bool) -> float:
    """Return the largest sum of squares that noise explains without a misfit."""
    least = max(freedom, 1)
    # One standard deviation of chi² counts as chance. Without replicates the misfit estimates the
    # noise, and this estimate must be unbiased.
    return least + ((2 * least) ** 0.5 if noise_known else 0.0)


def _scale(errors: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(errors), 1e-3 * max(float(np.max(np.abs(errors))), 1e-300))


def relative_misfit(
    residual: np.ndarray, scale: np.ndarray, covariance: np.ndarray, freedom: float
) -> float:
    """Return the relative misfit at which the sum of squares equals `freedom`; 0 if noise is enough."""

    # Paule-Mandel estimate of random effects: r^T (C + tau² diag(e²))^-1 r = freedom, by bisection.
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
    """Draw noise for the means, shape (b, k); the noise variances are drawn too, within their errors."""
    # Drawing the variances makes intervals wider if there are few replicates.
    shape = (resamples, misfit.size)
    factor = np.linalg.cholesky(noise.covariance)
    scatter = rng.standard_normal(shape) @ factor.T
    scatter *= np.sqrt(noise.freedom / rng.chisquare(noise.freedom, size=shape))
    beyond = misfit * rng.standard_normal(shape)
    beyond *= np.sqrt(freedom / rng.chisquare(freedom, size=(resamples, 1)))
    return np.asarray(scatter + beyond)
