"""Choice between families by how they predict the largest sizes from the smaller ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from solvable.forecast.bootstrap import Fitted, fit_family
from solvable.forecast.curve import LearningCurve
from solvable.forecast.families import Family
from solvable.forecast.noise import replicate_noise

TAIL_FREEDOM = 5.0
"""Degrees of freedom of the predictive distribution: one wild point must not decide alone."""

PRIOR_ERRORS = 2.0
"""Held-out errors that the belief in the intervals is worth."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How a family, fitted to the smaller sizes, predicted the largest.

    Attributes
    ----------
    predicted, measured : ndarray of shape (h,)
        Errors at the largest sizes.
    spread : ndarray of shape (h,)
        Standard deviation of measured less predicted, relative.
    score : float
        Logarithm of the predictive density of the measured errors.
    distance : float
        Squared Mahalanobis distance; about h if the family and its intervals hold.
    """

    predicted: np.ndarray
    measured: np.ndarray
    spread: np.ndarray
    score: float
    distance: float


def held_out_sizes(n_sizes: int) -> int:
    """Number of sizes held out: the largest third, with at least three left to fit.

    Parameters
    ----------
    n_sizes : int
        Distinct sizes, at least 4.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> [held_out_sizes(k) for k in (4, 5, 6, 8, 12)]
    [1, 1, 2, 2, 3]
    """
    return min(max(n_sizes // 3, 1), 3)


def model_weights(held_out: Mapping[str, HeldOut]) -> dict[str, float]:
    """Shares of the models in a forecast: their predictive densities, as they are.

    Parameters
    ----------
    held_out : mapping of str to HeldOut
        By model.

    Returns
    -------
    dict of str to float
        Summing to 1.
    """
    scores = np.array([one.score for one in held_out.values()])
    relative = np.exp(scores - scores.max())
    return dict(zip(held_out, (relative / relative.sum()).tolist(), strict=True))


def spread_inflation(held_out: Mapping[str, HeldOut], weights: Mapping[str, float]) -> float:
    r"""Factor by which held-out errors widen the intervals of the forecast.

    .. math:: \sqrt{\max\Big(1,\frac{\nu_0+\sum_Mw_Mq_M}{\nu_0+h}\Big)}

    with the squared Mahalanobis distances :math:`q_M` of h held-out errors, which have mean h if the
    intervals of model M are right, and a prior worth :math:`\nu_0=2` errors that they are.

    Parameters
    ----------
    held_out : mapping of str to HeldOut
        By model.
    weights : mapping of str to float
        By model.

    Returns
    -------
    float
        At least 1.
    """
    distance = sum(weights[name] * one.distance for name, one in held_out.items())
    count = next(iter(held_out.values())).measured.size
    return float(max(1.0, (PRIOR_ERRORS + distance) / (PRIOR_ERRORS + count)) ** 0.5)


def score_families(
    families: tuple[Family, ...],
    curve: LearningCurve,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Mapping[str, HeldOut]:
    """Fit each family to the smaller sizes and score its prediction of the largest.

    Parameters
    ----------
    families : tuple of Family
        What to compare.
    curve : LearningCurve
        At least 4 sizes.
    resamples : int
        Bootstrap curves of each fit.
    rng : Generator
        Source of the draws.

    Returns
    -------
    mapping of str to HeldOut
        By the name of the family.
    """
    count = held_out_sizes(curve.sizes.size)
    first = curve.sizes.size - count
    known = curve.up_to(first)
    noise = replicate_noise(known)
    # The noise of what is held out may be known to the judge, though not to the fit.
    judged = replicate_noise(curve).covariance[first:, first:]
    found = {}
    for family in families:
        fitted = fit_family(
            family, sizes=known.sizes, means=known.means, noise=noise, resamples=resamples, rng=rng
        )
        found[family.name] = _scored(fitted, curve.sizes[first:], curve.means[first:], judged)
    return found


def _scored(
    fitted: Fitted, sizes: np.ndarray, measured: np.ndarray, covariance: np.ndarray
) -> HeldOut:
    """Student's t around the drawn curves, in the logarithm of the error."""
    floor = 1e-3 * max(float(measured.max()), 1e-300)
    draws = np.log(np.maximum(fitted.drawn_curves(sizes), floor))
    centre = np.median(draws, axis=0)
    scale = np.exp(centre)
    spread = np.atleast_2d(np.cov(draws, rowvar=False))
    spread = spread + covariance / np.outer(scale, scale) + fitted.misfit**2 * np.eye(sizes.size)
    residual = np.log(np.maximum(measured, floor)) - centre
    distance = float(residual @ np.linalg.solve(spread, residual))
    _, log_determinant = np.linalg.slogdet(spread)
    h = sizes.size
    score = -0.5 * log_determinant - (TAIL_FREEDOM + h) / 2 * np.log1p(distance / TAIL_FREEDOM)
    return HeldOut(scale, measured, np.sqrt(np.diag(spread)), float(score), distance)
