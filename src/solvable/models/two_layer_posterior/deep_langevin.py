"""Langevin dynamics of networks with two hidden layers, in variables of unit prior variance.

With V = sqrt(d) W1, Z = sqrt(N1) W2 and b = sqrt(N2 chi) a / sigma_a, the output is
f = (sigma_a / sqrt(N2 chi)) sum_i b_i sigma(h_i), h_i = sum_j Z_ij sigma(V_j.x / sqrt(d)) / sqrt(N1).
A state is one array of shape (networks, 1, N1 d + N2 N1 + N2), so that the dynamics of
two-layer networks runs on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from solvable.models.two_layer_posterior.langevin import value_and_slope


@dataclass(frozen=True)
class DeepPosterior:
    """Posterior of networks with two hidden layers given one data set of NumPy arrays."""

    X: np.ndarray  # inputs, shape (P, d)
    y: np.ndarray  # labels, shape (P,)
    widths: tuple[int, int]  # N1, N2
    kappa: float
    scale: float  # sigma_a / sqrt(N2 chi)
    activation: str

    @property
    def size(self) -> int:
        """Number of weights of one network."""
        first, second = self.widths
        return first * self.X.shape[1] + second * first + second

    def weights(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return views of V (networks, N1, d), Z (networks, N2, N1) and b (networks, N2)."""
        first, second = self.widths
        d = self.X.shape[1]
        flat = theta[:, 0, :]
        ends = first * d, first * d + second * first
        return (
            flat[:, : ends[0]].reshape(-1, first, d),
            flat[:, ends[0] : ends[1]].reshape(-1, second, first),
            flat[:, ends[1] :],
        )

    def outputs(self, theta: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Compute the output of each network at each sample, shape (samples, networks)."""
        return self._forward(theta, self.X if X is None else X)[4].T

    def hidden(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Compute the activations of the second layer, shape (networks, samples, N2)."""
        return self._forward(theta, X)[2]

    def gradient(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the gradient of minus the log posterior, and the mean squared training error."""
        _, Z, b = self.weights(theta)
        first, d = self.widths[0], self.X.shape[1]
        value, slope, upper, upper_slope, f = self._forward(theta, self.X)
        error = f - self.y
        pulled = error * (self.scale / self.kappa)
        readout = (pulled[:, None, :] @ upper)[:, 0, :]
        # sum over samples of e b_i sigma'(h_i) sigma(h_j), and the same one layer down
        upper_slope *= pulled[:, :, None] * b[:, None, :]
        second = upper_slope.transpose(0, 2, 1) @ value / sqrt(first)
        slope *= upper_slope @ Z
        lowest = slope.transpose(0, 2, 1) @ self.X / sqrt(first * d)
        networks = len(theta)
        parts = [part.reshape(networks, 1, -1) for part in (lowest, second, readout)]
        return np.concatenate(parts, axis=2) + theta, np.mean(error**2, axis=1)

    def _forward(self, theta: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Compute values and slopes of both layers, (networks, P, N), and f, (networks, P)."""
        V, Z, b = self.weights(theta)
        h = X @ V.transpose(0, 2, 1)
        h *= 1 / sqrt(X.shape[1])
        value, slope = value_and_slope(self.activation, h)
        h = value @ Z.transpose(0, 2, 1)
        h *= 1 / sqrt(self.widths[0])
        upper, upper_slope = value_and_slope(self.activation, h)
        f = (upper @ b[:, :, None])[:, :, 0] * self.scale
        return value, slope, upper, upper_slope, f
