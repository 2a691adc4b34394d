"""Observer of networks with two hidden layers, and their start with a planted second layer."""

from __future__ import annotations

from math import sqrt

import numpy as np

from solvable.frame.points import Metrics
from solvable.hermite import gaussian_quadrature
from solvable.models.two_layer_posterior.deep_langevin import DeepPosterior
from solvable.models.two_layer_posterior.observer import AlignmentObserver
from solvable.models.two_layer_posterior.overlap import neuron_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.models.two_layer_posterior.target import HermiteTarget

STRENGTH = 1.3
"""Slope of a planted unit of the second layer along the target's direction."""


class DeepObserver(AlignmentObserver):
    """Observer of the second half of a run: alignment, specialised units of both layers, errors."""

    def __init__(
        self,
        parameters: CurseParameters,
        target: HermiteTarget,
        posterior: DeepPosterior,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(parameters)
        self.target, self.posterior = target, posterior
        # Quadrature along the direction and draws across it: the mean over z = w*.x is exact.
        z, chance = gaussian_quadrature(16)
        across = rng.standard_normal((60, parameters.dimension))
        across -= np.outer(across @ target.direction, target.direction)
        rows = across[:, None, :] + z[:, None] * target.direction
        self.test = rows.reshape(-1, parameters.dimension).astype(np.float32)
        self.chance = np.tile(chance, 60) / 60
        self.labels = target.label(rows.reshape(-1, parameters.dimension))
        self.linear = neuron_overlap(parameters.activation, 1)
        self.second = np.zeros(2)  # outliers of the second layer, and the sum of their strengths

    def __call__(self, theta: np.ndarray) -> None:
        """Record the alignment, units and errors of a state."""
        u, r, slopes = self.slopes(theta)
        self.neurons.add(u, r)
        Z = self.posterior.weights(theta)[1]
        # Given the first layer, Z_i.c / |c| is a standard normal number under the prior.
        size = np.sqrt(np.sum(slopes**2, axis=1, keepdims=True))
        overlap = np.einsum("kij,kj->ki", Z, slopes)
        out = np.abs(overlap) > 3 * size
        self.second += out.sum(), np.abs(overlap[out]).sum()
        f = self.posterior.outputs(theta, self.test)
        self.alignments.append(self.chance @ (f * self.labels[:, None]))
        self.test_errors.append(float(np.mean(self.chance @ (f - self.labels[:, None]) ** 2)))

    def slopes(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return u and r of the first layer, and c_1(u, r) / sqrt(N1), each (networks, N1)."""
        V = self.posterior.weights(theta)[0].astype(np.float64)
        d = V.shape[2]
        u = V @ self.target.direction / sqrt(d)
        r = np.maximum(np.sum(V * V, axis=2) / d - u * u, 0.0)
        return u, r, self.linear.value(u, r) / sqrt(V.shape[1])

    def metrics(self) -> Metrics:
        """Return averages over the second half of the run."""
        count, strengths = self.second
        return super().metrics() | {
            "second_outliers": float(count / np.size(self.alignments)),
            "second_strength": float(strengths / count) if count else None,
        }


def plant_second_layer(seen: DeepObserver, state: np.ndarray) -> np.ndarray:
    """Plant units of the second layer that point along the target's direction (pattern GP-Sp(1))."""
    theta = state[None].copy()
    _, Z, b = seen.posterior.weights(theta)
    slopes = seen.slopes(theta)[2][0]
    width, d = seen.parameters.second_width, seen.parameters.dimension
    count = min(width, max(1, round(3 * sqrt(width / d))))
    # the least weights that give each planted unit its slope
    rows = 0.6 * Z[0, :count]
    Z[0, :count] = rows + np.outer((STRENGTH - rows @ slopes) / (slopes @ slopes), slopes)
    upper = seen.posterior.hidden(theta, seen.test)[0, :, :count].mean(axis=1)
    overlap = float(seen.chance @ (upper * seen.labels))
    b[0, :count] = 0.5 / (count * overlap * seen.posterior.scale)
    return np.asarray(theta[0])
