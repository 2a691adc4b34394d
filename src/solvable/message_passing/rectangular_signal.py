"""A rectangular product of Gaussian matrices, as state evolution and the loop see it."""

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
    """The signal S = A B / sqrt(r) / (d L)^(1/4) of Gaussian factors, d x r and r x L."""

    aspect: float  # beta = L / d, at least 1
    rank_ratio: float  # rho = r / d, above 0; it may exceed 1

    multiplicity = 1
    variance = 1.0
    second_moment = 1.0

    def __post_init__(self) -> None:
        check_shape(self.aspect, self.rank_ratio)

    def mmse(self, noise: np.ndarray) -> np.ndarray:
        """Error of the posterior mean at noise variances."""
        return rectangular_mmse(noise, aspect=self.aspect, rank_ratio=self.rank_ratio)

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Posterior mean of the signal from its sum with noise of a variance."""
        if noise > 1e9:
            return np.zeros_like(observed)
        law = RectangularLaw(aspect=self.aspect, rank_ratio=self.rank_ratio, noise=noise)
        # Beyond the edge no signal is: the law would all but keep noise that few samples, or a noise a
        # few per cent off, put there, and message passing follow it. A signal of few rows or factors is
        # larger by chance (Tracy-Widom, 2.5 deviations): (1 + m) S + sqrt(t) Z has an edge that grows
        # with it only where it is not noise's.
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
        """The matrix that is 0."""
        return np.zeros((dimension, round(self.aspect * dimension)))
