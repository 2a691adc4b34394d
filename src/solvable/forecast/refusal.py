"""Curves that must not be extrapolated, and why."""

from __future__ import annotations

import numpy as np

from solvable.forecast.curve import LearningCurve
from solvable.forecast.noise import ReplicateNoise

LEAST_SIZES = 4
"""Distinct sample sizes below which three parameters cannot be fitted and checked."""

SIGNIFICANT = 2.0
"""Standard errors by which the error must have fallen."""

RISEN = 3.0
"""Standard errors above an earlier mean from which the curve counts as rising again."""

GUESSED_NOISE = 0.03
"""Relative noise that single errors are credited with."""


def refusal_of(curve: LearningCurve, noise: ReplicateNoise) -> str | None:
    """Say why a curve must not be extrapolated.

    Parameters
    ----------
    curve : LearningCurve
        Measured.
    noise : ReplicateNoise
        Of its means.

    Returns
    -------
    str or None
        A sentence, or None if nothing speaks against it.
    """
    sizes, means = curve.sizes, curve.means
    if sizes.size < LEAST_SIZES:
        return (
            f"Extrapolation is refused: {sizes.size} distinct sample "
            f"size{'s' if sizes.size > 1 else ''}; allowed: at least {LEAST_SIZES}, because offset, "
            "amplitude and exponent take three. Measure at more sizes."
        )
    if not means.any():
        return "Extrapolation is refused: every error is zero, there is nothing left to fall."
    covariance = noise.covariance
    if not noise.known:
        covariance = np.diag((GUESSED_NOISE * means) ** 2)
    spread = np.sqrt(
        np.maximum(np.diag(covariance)[:-1] + covariance[-1, -1] - 2 * covariance[-1, :-1], 1e-300)
    )
    change = (means[-1] - means[:-1]) / spread
    highest, lowest = int(np.argmin(change)), int(np.argmax(change))
    if change[lowest] > RISEN:
        return (
            f"Extrapolation is refused: the error rises, from {means[lowest]:.4g} at "
            f"n = {sizes[lowest]:g} to {means[-1]:.4g} at n = {sizes[-1]:g} "
            f"({change[lowest]:.1f} standard errors); both models only fall. Look for a learner that "
            "is not regularised, or measure beyond the rise."
        )
    if change[highest] > -SIGNIFICANT:
        return (
            f"Extrapolation is refused: the error at n = {sizes[-1]:g} ({means[-1]:.4g}) is not "
            f"below the others by {SIGNIFICANT:g} standard errors, so no fall has been measured. "
            "Measure at larger sizes or with more replicates."
        )
    return None
