"""Fits by variable projection: offset and amplitude solved exactly, the rest searched on a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.forecast.families import Family

DEPTH = 60.0
"""Rise of the misfit up to which parameters stay on the grid: nothing beyond has any likelihood."""

ZOOMS = 6
"""Refinements of the grid at most."""

RESOLVED = 0.05
"""Gain of the misfit below which a finer grid is of no use."""

BLOCK = 4_000_000
"""Entries of a table of misfits that are held at once."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Shapes of a family over the parameters that are worth trying.

    Attributes
    ----------
    family : Family
        What the shapes are of.
    parameters : ndarray of shape (g, q)
        Non-linear parameters.
    shapes : ndarray of shape (g, k)
        At the measured sizes.
    """

    family: Family
    parameters: np.ndarray
    shapes: np.ndarray


@dataclass(frozen=True, eq=False)
class Fits:
    """Best curves of a family, one per row of data.

    Attributes
    ----------
    rows : ndarray of shape (b,)
        Row of the grid.
    offset, amplitude, misfit : ndarray of shape (b,)
        Both at least 0, and the weighted sum of squares.
    """

    rows: np.ndarray
    offset: np.ndarray
    amplitude: np.ndarray
    misfit: np.ndarray

    def predict(self, grid: Grid, sizes: np.ndarray) -> np.ndarray:
        """Errors of the curves at the sizes, shape (b, k)."""
        used, place = np.unique(self.rows, return_inverse=True)
        shapes = grid.family.shapes(grid.parameters[used], sizes)
        return self.offset[:, None] + self.amplitude[:, None] * shapes[place]


def whitener(covariance: np.ndarray) -> np.ndarray:
    """Matrix W with W C W^T = 1, shape (k, k).

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
        Positive definite.

    Returns
    -------
    ndarray of shape (k, k)
        Inverse of the Cholesky factor.
    """
    return np.linalg.inv(np.linalg.cholesky(covariance))


def fit(grid: Grid, data: np.ndarray, white: np.ndarray) -> Fits:
    r"""Fit every row of data by generalised least squares with offset and amplitude at least 0.

    .. math:: \min_{e_\infty\ge0,\,A\ge0,\,\vartheta}\|W(e-e_\infty-A\,g_\vartheta)\|^2

    Parameters
    ----------
    grid : Grid
        Shapes to try.
    data : ndarray of shape (b, k)
        Mean errors.
    white : ndarray of shape (k, k)
        From :func:`whitener`.

    Returns
    -------
    Fits
        The best of the grid for each row. O(b g k).
    """
    block = max(BLOCK // max(grid.shapes.shape[0], 1), 1)
    parts = [
        _fit_block(grid, data[first : first + block], white)
        for first in range(0, data.shape[0], block)
    ]
    return Fits(
        np.concatenate([one.rows for one in parts]),
        np.concatenate([one.offset for one in parts]),
        np.concatenate([one.amplitude for one in parts]),
        np.concatenate([one.misfit for one in parts]),
    )


def _fit_block(grid: Grid, data: np.ndarray, white: np.ndarray) -> Fits:
    offset, amplitude, misfit = projected(grid.shapes, data, white)
    rows = np.argmin(misfit, axis=1)
    each = np.arange(rows.size)
    return Fits(rows, offset[each, rows], amplitude[each, rows], misfit[each, rows])


def projected(
    shapes: np.ndarray, data: np.ndarray, white: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offset, amplitude and misfit of every row of data with every shape, each of shape (b, g)."""
    ones = white.sum(axis=1)
    columns = shapes @ white.T
    y = data @ white.T
    a, b, c = ones @ ones, columns @ ones, np.sum(columns**2, axis=1)
    d, e = (y @ ones)[:, None], y @ columns.T
    yy = np.sum(y**2, axis=1)[:, None]
    # A shape that is constant over the sizes cannot be told from the offset.
    determinant = a * c - b**2
    plain = determinant > 1e-12 * a * c
    safe = np.where(plain, determinant, 1.0)
    amplitude = np.where(plain, (a * e - b * d) / safe, 0.0)
    offset = np.where(plain, (c * d - b * e) / safe, d / a)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(c > 0, np.maximum(e / np.where(c > 0, c, 1.0), 0.0), 0.0)
    below = offset < 0
    amplitude = np.where(below, alone, amplitude)
    offset = np.where(below, 0.0, offset)
    rising = amplitude < 0
    offset = np.where(rising, np.maximum(d / a, 0.0), offset)
    amplitude = np.where(rising, 0.0, amplitude)
    misfit = (
        yy - 2 * (offset * d + amplitude * e)
        + offset**2 * a + 2 * offset * amplitude * b + amplitude**2 * c
    )  # fmt: skip
    return offset, amplitude, np.maximum(misfit, 0.0)


def adapted_grid(
    family: Family, sizes: np.ndarray, means: np.ndarray, white: np.ndarray
) -> tuple[Grid, Fits]:
    """Grid that resolves the likelihood of the data, and the best fit on it.

    Parameters
    ----------
    family : Family
        What to fit.
    sizes, means : ndarray of shape (k,)
        Data.
    white : ndarray of shape (k, k)
        From :func:`whitener`.

    Returns
    -------
    Grid
        Every parameter whose misfit is within ``DEPTH`` of the least, to one step of the grid.
    Fits
        Of shape (1,).
    """
    parameters = family.coarse(sizes)
    grid = Grid(family, parameters, family.shapes(parameters, sizes))
    before = np.inf
    for _ in range(ZOOMS):
        _, _, misfit = projected(grid.shapes, means[None], white)
        best = float(misfit.min())
        kept = misfit[0] <= best + DEPTH
        finer = family.refined(grid.parameters[kept], grid.parameters)
        grid = Grid(family, finer, family.shapes(finer, sizes))
        if before - best < RESOLVED:
            break
        before = best
    return grid, fit(grid, means[None], white)
