"""Predictions averaged over models by their tails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvable.forecast.noise import ReplicateNoise
from solvable.forecast.profile import Profile

QUANTILES = 400
"""Equally likely errors to which the noise of a measurement is added."""


class ConfidenceMixture:
    r"""Confidence that the error at one size is below a value, averaged over models.

    .. math:: H(f)=\sum_Mw_M\,\Phi\big(r_M(f)/s_M\big)

    with the signed root deviance :math:`r_M` of each model and its scale :math:`s_M`: the tails are
    averaged, not the intervals.

    Parameters
    ----------
    profiles : sequence of Profile
        One per model.
    weights, scales : sequence of float
        Of the models; the weights sum to 1.

    Notes
    -----
    Model-averaged tail areas: D. Turek and D. Fletcher, Comput. Stat. Data Anal. 56 (2012). Backed by
    ``tests/forecast/test_profile.py`` and the coverage tests.
    """

    def __init__(
        self, profiles: Sequence[Profile], weights: Sequence[float], scales: Sequence[float]
    ) -> None:
        ends = np.array([one.values[[0, -1]] for one in profiles])
        self.values = np.geomspace(ends[:, 0].min(), ends[:, 1].max(), 400)
        self.confidence = np.zeros(self.values.size)
        for profile, weight, scale in zip(profiles, weights, scales, strict=True):
            self.confidence += weight * profile.confidence_below(self.values, scale)

    def quantiles(self, levels: Sequence[float] | np.ndarray) -> np.ndarray:
        """Errors below which the truth lies with each confidence.

        Parameters
        ----------
        levels : sequence of float
            Between 0 and 1.

        Returns
        -------
        ndarray
            Of the shape of ``levels``.
        """
        return np.exp(np.interp(levels, self.confidence, np.log(self.values)))

    def measurement_quantiles(
        self, levels: Sequence[float], noise: ReplicateNoise, misfit: float
    ) -> np.ndarray:
        """As :meth:`quantiles`, for one new measurement instead of the mean.

        Parameters
        ----------
        levels : sequence of float
            Between 0 and 1.
        noise : ReplicateNoise
            Of one error.
        misfit : float
            Relative scatter that takes the place of the noise where there are no replicates.

        Returns
        -------
        ndarray
            Of the shape of ``levels``, at least 0.
        """
        from scipy.special import ndtr

        centres = self.quantiles((np.arange(QUANTILES) + 0.5) / QUANTILES)
        variance = noise.variance_at(centres) if noise.known else (misfit * centres) ** 2
        spread = np.sqrt(np.maximum(variance, (1e-6 * centres) ** 2))
        low, high = np.min(centres - 5 * spread), np.max(centres + 5 * spread)
        values = np.linspace(low, high, 800)
        below = ndtr((values[:, None] - centres) / spread).mean(axis=1)
        return np.maximum(np.interp(levels, below, values), 0.0)
