"""Channels of matrix sensing: from the indices of a sample to its label, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from solvable.errors import InvalidParameter
from solvable.message_passing.outputs import Message, Messages


class MatrixChannel(Protocol):
    """What state evolution and the loop ask of a channel of K indices."""

    @property
    def variances(self) -> np.ndarray:
        """V of the K indices: index k of a signal of second moment Q has variance v_k Q."""

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum over indices of v_k E[g_k²] at these errors E of the signal, cavity variance v_k E."""

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels of indices (n, K)."""

    def messages(self, labels: np.ndarray) -> Messages:
        """Messages of the loop, given labels."""


def bayes_message(values: np.ndarray) -> Message:
    """Messages of posterior means, with slopes from their own second moments."""
    # Of a Bayesian -E dg/domega = E g^2. The slope itself lets the loop diverge on finite samples,
    # by factors of 10^18 and more (note 05, trap 3).
    return Message(values, -values.T @ values)


def unbiased_message(values: np.ndarray, slopes: np.ndarray, variances: np.ndarray) -> Message:
    """Messages scaled so that b / A is the signal plus noise of variance 1 / A, whatever V was."""
    # b / A = S + c (S* - S) + noise with c = a / A, a = sum of -v dg/domega: only A = a is unbiased, and
    # its noise has the variance E[v g²] / a^2. Messages times a / E[v g²] make that 1 / A. Where V is
    # the true error all of this is 1; on finite samples it is what lets the loop settle.
    a, power = -float(variances @ slopes), float(variances @ np.sum(values**2, axis=0))
    scale = a / max(power, 1e-300)
    return Message(scale * values, np.diag(scale * slopes))


@dataclass(frozen=True)
class GaussianIndices:
    """Every index is seen with Gaussian noise, y_k = h_k + sqrt(Delta_k) xi_k."""

    variances: np.ndarray  # v of the indices, shape (K,)
    noises: np.ndarray  # variances Delta_k

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noises).all() and (self.noises >= 0).all()):
            raise InvalidParameter(f"noise is {self.noises}; allowed: variances of at least 0.")

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum of v E[g²], g = (y - omega) / (Delta + v E)."""
        spread = self.noises + np.multiply.outer(np.asarray(error, dtype=float), self.variances)
        with np.errstate(divide="ignore"):
            return np.asarray((self.variances / spread).sum(axis=-1))

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels (n, K)."""
        return indices + np.sqrt(self.noises) * rng.standard_normal(indices.shape)

    def messages(self, labels: np.ndarray) -> Messages:
        """G = (y - omega) / (Delta + V)."""

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            spread = self.noises + np.diag(V)
            slopes = -len(labels) / spread
            return unbiased_message((labels - omega) / spread, slopes, self.variances)

        return given
