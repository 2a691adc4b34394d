r"""Likelihood of a predicted error, and the distribution of confidence that it gives.

Percentiles of bootstrap predictions under-cover where an offset may be zero: the draws stay on the
side of the offset that the fit happened to find. The profile of the likelihood sees both sides, and
the bootstrap says how its deviance is distributed.
"""

from __future__ import annotations

import numpy as np

from solvable.forecast.bootstrap import Fitted
from solvable.forecast.fitting import projected

DEVIANCE_KEPT = 16.0
"""Deviance up to which curves take part in a profile: four standard deviations."""

LEAST_CALIBRATION = 0.8
"""Least factor of the spread that the bootstrap may ask for: a few hundred draws are not exact."""

CALIBRATED_AT = 0.9
"""Level at which the bootstrap deviance is compared with a chi-square of one degree of freedom."""

CHI_SQUARE_90 = 2.7055
"""Its quantile at that level."""

VALUES = 160
"""Errors at which a profile is computed."""


def profile_deviance(
    shapes: np.ndarray,
    target: np.ndarray,
    data: np.ndarray,
    white: np.ndarray,
    values: np.ndarray,
) -> np.ndarray:
    r"""Least misfit of the curves that pass through a given error at a target size.

    With :math:`A=(f-e_\infty)/g_*` only the offset is left, in which the misfit is quadratic; it is
    minimised over :math:`0\le e_\infty\le f` exactly.

    Parameters
    ----------
    shapes : ndarray of shape (g, k)
        At the measured sizes.
    target : ndarray of shape (g,)
        :math:`g_*` at the target size, above 0.
    data : ndarray of shape (b, k)
        Mean errors.
    white : ndarray of shape (k, k)
        From :func:`~solvable.forecast.fitting.whitener`.
    values : ndarray of shape (v,)
        Errors f at the target size.

    Returns
    -------
    ndarray of shape (b, v)
        Weighted sums of squares. O(b g v).
    """
    ones, columns, y = white.sum(axis=1), shapes @ white.T, data @ white.T
    a, b, c = ones @ ones, columns @ ones, np.sum(columns**2, axis=1)
    d, e, yy = (y @ ones)[:, None], y @ columns.T, np.sum(y**2, axis=1)[:, None]
    # A shape that has died out at the target leaves the offset alone there.
    inverse = 1 / np.maximum(target, 1e-9)
    square = np.maximum(a - 2 * b * inverse + c * inverse**2, 1e-300)
    found = np.empty((data.shape[0], values.size))
    for place, value in enumerate(values):
        top = value * inverse
        cross = d - e * inverse - top * (b - c * inverse)
        whole = yy - 2 * top * e + top**2 * c
        offset = np.clip(cross / square, 0.0, value)
        found[:, place] = np.min(whole + offset * (offset * square - 2 * cross), axis=1)
    return found


def deviance_scale(fitted: Fitted, size: float) -> float:
    """Factor by which deviances of simulated curves exceed those of a chi-square, as a spread.

    Parameters
    ----------
    fitted : Fitted
        With its simulated data.
    size : float
        Sample size that is predicted.

    Returns
    -------
    float
        At least ``LEAST_CALIBRATION``.
    """
    at = np.array([size])
    target = fitted.grid.family.shapes(fitted.grid.parameters, at)[:, 0]
    constrained = profile_deviance(
        fitted.grid.shapes, target, fitted.simulated, fitted.white, fitted.curve(at)
    )[:, 0]
    deviance = np.maximum(constrained - fitted.draws.misfit, 0.0)
    ratio = float(np.quantile(deviance, CALIBRATED_AT)) / CHI_SQUARE_90
    return max(LEAST_CALIBRATION, ratio**0.5)


class Profile:
    """Signed root deviance of the error at one size, between values that are far in the tails.

    Parameters
    ----------
    fitted : Fitted
        A family fitted to a curve.
    means : ndarray of shape (k,)
        The curve.
    size : float
        Sample size that is predicted.
    """

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
        low = max(float(np.min(through - reach)), 1e-3 * self.best, 1e-12)
        high = max(float(np.max(through + reach)), 1.01 * low)
        self.values = np.geomspace(low, high, VALUES)
        deviance = profile_deviance(shapes, target, means[None], white, self.values)[0] - least
        self.roots = np.sign(self.values - self.best) * np.sqrt(np.maximum(deviance, 0.0))

    def confidence_below(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Confidence that the error is below each value, shape (v,), increasing.

        Parameters
        ----------
        values : ndarray of shape (v,)
            Errors in increasing order.
        scale : float
            Spread of the signed roots.

        Returns
        -------
        ndarray of shape (v,)
            Between 0 and 1.
        """
        from scipy.special import ndtr

        far = DEVIANCE_KEPT**0.5
        roots = np.interp(np.log(values), np.log(self.values), self.roots, left=-far, right=far)
        return np.asarray(np.maximum.accumulate(ndtr(roots / scale)))


def _spread(shapes: np.ndarray, target: np.ndarray, white: np.ndarray) -> np.ndarray:
    """Standard deviation of the error at the target for each shape, offset and amplitude free."""
    ones, columns = white.sum(axis=1), shapes @ white.T
    a, b, c = ones @ ones, columns @ ones, np.sum(columns**2, axis=1)
    determinant = np.maximum(a * c - b**2, 1e-9 * a * c)
    return np.sqrt(np.maximum(c - 2 * b * target + a * target**2, 0.0) / determinant)
