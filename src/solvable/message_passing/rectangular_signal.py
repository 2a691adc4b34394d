"""Rectangular signals that are products of two Gaussian matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.spectra.rectangular import (
    RectangularLaw,
    check_shape,
    rectangular_mmse,
    shrink,
)


@dataclass(frozen=True)
class RectangularSignal:
    r"""Rectangular matrices :math:`S=AB/(\sqrt r(dL)^{1/4})` with Gaussian factors of r columns and rows.

    The error of an estimate is :math:`|\hat S-S|^2/\sqrt{dL}`.

    Parameters
    ----------
    aspect : float
        Aspect ratio L / d, at least 1.
    rank_ratio : float
        Rank ratio r / d, above 0.

    Raises
    ------
    InvalidParameter
        If a ratio is out of range.

    Notes
    -----
    Denoiser of (sensing 13). Backed by ``tests/inference/test_matrices.py``.

    Examples
    --------
    >>> from solvable.inference import Output, state_evolution
    >>> law = state_evolution(RectangularSignal(2.0, 0.3), Output("z", noise=0.1), [0.2, 0.6])
    >>> bool(law.error[0] > law.error[1])
    True
    """

    aspect: float
    rank_ratio: float

    multiplicity = 1
    variance = 1.0
    second_moment = 1.0

    def __post_init__(self) -> None:
        check_shape(self.aspect, self.rank_ratio)

    def mmse(self, noise: np.ndarray) -> np.ndarray:
        """Error of the posterior mean at noise variances t (sensing 14)."""
        return rectangular_mmse(noise, aspect=self.aspect, rank_ratio=self.rank_ratio)

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Posterior mean of S from S + sqrt(t) Z; only the singular values change (sensing 13)."""
        if noise > 1e9:
            return np.zeros_like(observed)
        law = RectangularLaw(aspect=self.aspect, rank_ratio=self.rank_ratio, noise=noise)
        # Singular values beyond the edge of the limiting density are noise of finite samples, which the
        # denoiser would keep and message passing would amplify. They are moved to the edge. A drawn
        # signal's largest singular value exceeds the limit by a factor 1 + m (Tracy-Widom, 2.5 standard
        # deviations), so the edge used is the edge of (1 + m) S + sqrt(t) Z.
        d = observed.shape[0]
        factors = min(max(1.0, self.rank_ratio * d), d)
        larger = 1 + 2.5 * d**-0.5 * factors ** (-1 / 6)
        least = max(noise / larger**2, 1e-11)
        edge = (
            larger
            * RectangularLaw(aspect=self.aspect, rank_ratio=self.rank_ratio, noise=least).edges[
                -1, 1
            ]
        )
        return shrink(observed, lambda s: law.denoised(np.minimum(s, edge)))

    def prior_mean(self, dimension: int) -> np.ndarray:
        """Prior mean of the signal, which is 0."""
        return np.zeros((dimension, round(self.aspect * dimension)))
