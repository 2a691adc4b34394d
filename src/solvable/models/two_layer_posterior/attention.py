"""Posterior of one block of softmax attention.

The block has H heads and reads L tokens x_1, ..., x_L of d inputs each. Its output is
f(X) = L^(-1/2) sum_h sum_ab softmax_b(x_a^T A_h x_b) (w_h.x_b)   (two-layer-posterior 25). The code
stores rescaled weights, which are standard normal under the prior: B_h = d A_h and b_h = sqrt(H d) w_h.
A state has shape (networks, H, d² + d): the d² entries of B_h, then the d entries of b_h. The Langevin
sampler of two-layer networks accepts such an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.two_layer_posterior.observer import AlignmentObserver
from solvable.models.two_layer_posterior.parameters import CurseParameters


@dataclass(frozen=True)
class AttentionTarget:
    """Target y = (1/L) sum_ab x_a1 x_b2 x_b3 of L Gaussian tokens, of unit variance."""

    dimension: int
    context: int

    @property
    def direction(self) -> np.ndarray:
        """Unit vector along the first input, shape (d,)."""
        return np.eye(self.dimension)[0]

    def label(self, X: np.ndarray) -> np.ndarray:
        """Compute the labels of inputs (n, L, d)."""
        first, pairs = X[:, :, 0].sum(axis=1), (X[:, :, 1] * X[:, :, 2]).sum(axis=1)
        return np.asarray(first * pairs / self.context)

    def sample(
        self, n: int, rng: np.random.Generator, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, L, d) and of a given dtype, and labels y of shape (n,)."""
        X = rng.standard_normal((n, self.context, self.dimension), dtype=dtype)
        return X, self.label(X)

    def mirrored(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n inputs with all signs of the first three coordinates: 8 n inputs, and labels."""
        # Functions of another parity in these coordinates, such as linear ones, then average to 0.
        X = self.sample(n, rng, np.float32)[0]
        signs = np.ones((8, 1, 1, self.dimension), np.float32)
        signs[:, 0, 0, :3] = list(product((1, -1), repeat=3))
        rows = (signs * X).reshape(-1, self.context, self.dimension)
        return rows, self.label(rows)


@dataclass(frozen=True)
class AttentionPosterior:
    """Posterior of blocks of attention given one data set of NumPy arrays."""

    X: np.ndarray  # inputs, shape (P, L, d)
    y: np.ndarray  # labels, shape (P,)
    kappa: float

    def chances(self, theta: np.ndarray) -> np.ndarray:
        """Compute the softmax of each token a over tokens b, shape (P, b, a, networks H)."""
        return self._forward(theta, self.X)[0]

    def outputs(self, theta: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Compute the output of each network at each sample, shape (samples, networks)."""
        return self._forward(theta, self.X if X is None else X)[2]

    def gradient(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the gradient of minus the log posterior, and the mean squared training error."""
        X = self.X
        (P, L, d), (networks, heads, _) = X.shape, theta.shape
        chances, g, f = self._forward(theta, X)
        error = f - self.y[:, None]
        pulled = np.repeat(error / (self.kappa * sqrt(L)), heads, axis=1)  # (P, networks H)
        readout = np.einsum("pk,pkj->kj", pulled, g) / sqrt(heads * d)
        # df/ds_ab = p_ab (u_b - sum_c p_ac u_c) / sqrt(L), u_b = w.x_b
        u = (X @ self._readouts(theta).T) * pulled[:, None, :]
        rest = u[:, :, None, :] - np.sum(chances * u[:, :, None, :], axis=1, keepdims=True)
        rest *= chances
        right = rest.reshape(P, L, -1).transpose(0, 2, 1) @ X  # (P, L networks H, d)
        score = X.reshape(-1, d).T @ right.reshape(P * L, -1) / d
        score = score.reshape(d, -1, d).transpose(1, 0, 2)
        parts = [part.reshape(networks, heads, -1) for part in (score, readout)]
        return np.concatenate(parts, axis=2) + theta, np.mean(error**2, axis=0)

    def _readouts(self, theta: np.ndarray) -> np.ndarray:
        """Return the readouts w, shape (networks H, d)."""
        heads, size = theta.shape[1:]
        d = self.X.shape[2]
        return np.asarray(theta[:, :, size - d :].reshape(-1, d) / sqrt(heads * d))

    def _forward(self, theta: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Compute softmax (P, b, a, networks H), attended sums (P, networks H, d), f (P, networks)."""
        (P, L, d), (networks, heads, _) = X.shape, theta.shape
        B = theta[:, :, : d * d].reshape(-1, d, d) / d
        left = X.reshape(-1, d) @ B.transpose(1, 0, 2).reshape(d, -1)
        s = X @ left.reshape(P, -1, d).transpose(0, 2, 1)  # (P, b, (a, networks H))
        s -= s.max(axis=1, keepdims=True)
        np.exp(s, out=s)
        s /= s.sum(axis=1, keepdims=True)
        s = s.reshape(P, L, L, -1)
        g = s.sum(axis=2).transpose(0, 2, 1) @ X
        f = np.einsum("pkj,kj->pk", g, self._readouts(theta)) / sqrt(L)
        return s, g, f.reshape(P, networks, heads).sum(axis=2)


class AttentionObserver(AlignmentObserver):
    """Observer of the second half of a run: alignment, test error, and the scores of heads."""

    def __init__(
        self,
        parameters: CurseParameters,
        target: AttentionTarget,
        posterior: AttentionPosterior,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(parameters)
        self.posterior = posterior
        self.test, self.labels = target.mirrored(128, rng)
        self.strengths: list[float] = []

    def __call__(self, theta: np.ndarray) -> None:
        """Record the alignment, error and scores of every third state."""
        if len(self.strengths) % 3 == 0:
            f, y = self.posterior.outputs(theta, self.test), self.labels
            self.alignments.append((y @ f) / (y @ y))
            rest = f - self.alignments[-1] * y[:, None]
            # E (f - y)² = E (f - A y)² + (1 - A)²
            self.test_errors.append(
                float(np.mean(rest**2) + np.mean((1 - self.alignments[-1]) ** 2))
            )
        # scores x_a1 x_b2 and x_a1 x_b3, in standard deviations of the prior
        relevant = np.hypot(theta[:, :, 1], theta[:, :, 2])
        self.strengths.append(float(np.mean(relevant.max(axis=1))))

    def metrics(self) -> Metrics:
        """Return averages over the second half of the run."""
        found = super().metrics()
        del found["neuron_law"]  # heads are no neurons
        return found | {
            "outliers": None,
            "label_power": float(np.mean(self.posterior.y**2)),
            "head_strength": float(np.mean(self.strengths)),
        }


def plant_heads(parameters: CurseParameters, state: np.ndarray) -> np.ndarray:
    """Plant heads that attend to x_a1 x_b2 and read x_b3, in a network (H, d² + d) of the prior."""
    # Two heads of opposite signs share the target, so that their linear parts cancel. At least cost
    # d² A_12² = H d w_3², with A_12 w_3 = sqrt(L) for one head at large L.
    d, heads = parameters.dimension, parameters.heads
    signs = np.array([1, -1])[:heads]
    size = (heads * d**3 * parameters.context) ** 0.25 / sqrt(len(signs))
    planted = 0.5 * state
    planted[: len(signs), d * d :] = 0
    planted[: len(signs), 1] = size * signs
    planted[: len(signs), d * d + 2] = size * signs
    return planted
