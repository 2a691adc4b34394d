"""Channels of matrix sensing: labels given indices, and messages given labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from solvable.errors import InvalidParameter
from solvable.message_passing.outputs import Message, Messages


class Informative(Protocol):
    """Interface of a channel with an information."""

    def information(self, error: np.ndarray) -> np.ndarray:
        """Information I(E), the sum over indices of v_k E[g_k²], at cavity variances v_k E."""


class MatrixChannel(Informative, Protocol):
    """Interface of a channel whose labels depend on K indices."""

    @property
    def variances(self) -> np.ndarray:
        """Variance factors v (K,): index k of a signal of second moment Q has variance v_k Q."""

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels of indices (n, K)."""

    def messages(self, labels: np.ndarray) -> Messages:
        """Return the function from cavity means and variances to the messages of the samples."""


def bayes_message(values: np.ndarray) -> Message:
    """Messages from posterior means; the messages' second moments serve as slopes."""
    # For posterior means, -E[dg/domega] = E[g²]. With the slopes dg/domega instead, the iteration
    # diverges on finite samples, by factors above 10^18   (sensing 6).
    return Message(values, -values.T @ values)


def unbiased_message(values: np.ndarray, slopes: np.ndarray, variances: np.ndarray) -> Message:
    """Scale messages so that, for any V, b / A is the signal plus noise with variance 1 / A."""
    # b / A = S + c (S* - S) + noise with c = a / A and a = -sum v dg/domega. Only A = a is unbiased; the
    # noise then has variance sum v g² / a². Multiplying messages by a / sum v g² makes it 1 / A
    # (sensing 7). The factor is 1 if V is the true error; on finite samples it makes the loop converge.
    a, power = -float(variances @ slopes), float(variances @ np.sum(values**2, axis=0))
    scale = a / max(power, 1e-300)
    return Message(scale * values, np.diag(scale * slopes))


@dataclass(frozen=True)
class GaussianIndices:
    """Gaussian noise on every index: y_k = h_k + sqrt(Delta_k) xi_k."""

    variances: np.ndarray  # variance factors v of the indices, shape (K,)
    noises: np.ndarray  # noise variances Delta_k, shape (K,)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noises).all() and (self.noises >= 0).all()):
            raise InvalidParameter(f"noise is {self.noises}; allowed: variances of at least 0.")

    def information(self, error: np.ndarray) -> np.ndarray:
        """Sum of v / (Delta + v E), from g = (y - omega) / (Delta + v E) (sensing 4)."""
        spread = self.noises + np.multiply.outer(np.asarray(error, dtype=float), self.variances)
        with np.errstate(divide="ignore"):
            return np.asarray((self.variances / spread).sum(axis=-1))

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw labels (n, K)."""
        return indices + np.sqrt(self.noises) * rng.standard_normal(indices.shape)

    def messages(self, labels: np.ndarray) -> Messages:
        """Messages (y - omega) / (Delta + V) (sensing 4)."""

        def given(omega: np.ndarray, V: np.ndarray) -> Message:
            spread = self.noises + np.diag(V)
            slopes = -len(labels) / spread
            return unbiased_message((labels - omega) / spread, slopes, self.variances)

        return given
