"""Label channels y = g(z) + sqrt(noise) xi as message passing sees them: posteriors of z."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvable.errors import InvalidParameter

REACH = 7.0
"""Standard deviations of Gaussians that are integrated over; beyond is 3e-12 of the mass."""


@dataclass(frozen=True)
class GaussianOutput:
    """A channel y = g(z) + sqrt(Delta) xi of p standard Gaussian directions."""

    function: Callable[[np.ndarray], np.ndarray]  # g, from (..., p) to (...), in float64
    noise: float  # variance Delta
    n_directions: int = 1
    breakpoints: tuple[float, ...] = ()  # places of kinks and jumps of g

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise) and self.noise >= 0):
            raise InvalidParameter(f"noise is {self.noise}; allowed: a variance of at least 0.")
        if self.n_directions not in (1, 2, 3):
            raise InvalidParameter(f"n_directions is {self.n_directions}; allowed: 1, 2 or 3.")

    def scalar(self, z: np.ndarray) -> np.ndarray:
        """Labels without noise of one direction, of the shape of z."""
        return np.asarray(self.function(np.asarray(z, dtype=np.float64)[..., None]), dtype=float)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels of directions (n, p)."""
        clean = np.asarray(self.function(z), dtype=np.float64)
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape)


class Posterior(NamedTuple):
    """Of z given a label and its cavity: mean (n, p), covariance (n, p, p), log of the evidence (n,)."""

    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: np.ndarray


class Message(NamedTuple):
    """Output messages g (n, p) and the sum of their derivatives (p, p)."""

    values: np.ndarray
    slope: np.ndarray


Messages = Callable[[np.ndarray, np.ndarray], Message]
"""Messages of all samples from cavity means (n, p) and their covariance (p, p)."""


def output_message(posterior: Posterior, omega: np.ndarray, variance: np.ndarray) -> Message:
    """Messages of a posterior."""
    inverse = np.linalg.inv(variance)
    # g = V^-1 (E[z | y] - omega),  dg/domega = V^-1 Cov[z | y] V^-1 - V^-1
    values = (posterior.mean - omega) @ inverse
    slope = inverse @ posterior.covariance.sum(axis=0) @ inverse - len(omega) * inverse
    return Message(values, (slope + slope.T) / 2)
