"""Output channels y = g(z) + sqrt(noise) xi, posteriors of z, and output messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvable.errors import InvalidParameter

REACH = 7.0
"""Number of standard deviations at which Gaussian integrals end; the neglected mass is 3e-12."""


@dataclass(frozen=True)
class GaussianOutput:
    """A channel y = g(z) + sqrt(Delta) xi of p standard Gaussian directions."""

    function: Callable[
        [np.ndarray], np.ndarray
    ]  # link g, which maps arrays (..., p) to arrays (...) in float64
    noise: float  # noise variance Delta
    n_directions: int = 1
    breakpoints: tuple[float, ...] = ()  # positions of kinks and jumps of g

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(f"noise is {self.noise}; allowed: a variance of at least 0.")
        if self.n_directions not in (1, 2, 3):
            raise InvalidParameter(f"n_directions is {self.n_directions}; allowed: 1, 2 or 3.")

    def scalar(self, z: np.ndarray) -> np.ndarray:
        """Noiseless labels of one direction, with the shape of z."""
        return np.asarray(self.function(np.asarray(z, dtype=np.float64)[..., None]), dtype=float)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels of latent coordinates (n, p)."""
        clean = np.asarray(self.function(z), dtype=np.float64)
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape)


class Posterior(NamedTuple):
    """Posterior of z: mean (n, p), covariance (n, p, p), log of the evidence (n,)."""

    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: np.ndarray


class Message(NamedTuple):
    """Output messages g (n, p), and their derivatives summed over samples (p, p)."""

    values: np.ndarray
    slope: np.ndarray


Messages = Callable[[np.ndarray, np.ndarray], Message]
"""Function from cavity means (n, p) and their covariance (p, p) to the messages of all samples."""
