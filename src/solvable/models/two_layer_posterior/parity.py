"""Parity of two bits as a target of two-layer ReLU networks, and the few strong neurons that carry it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.two_layer_posterior.langevin import Posterior
from solvable.models.two_layer_posterior.large_deviation import readout_scale
from solvable.models.two_layer_posterior.neuron_counts import outlier_edge
from solvable.models.two_layer_posterior.observer import TEST_SAMPLES, AlignmentObserver
from solvable.models.two_layer_posterior.overlap import neuron_overlap, parity_overlap
from solvable.models.two_layer_posterior.parameters import CurseParameters
from solvable.teachers.base import draw_normals

CARRIERS = 4
"""Neurons that carry the parity: one for each sign of x_1 + x_2 and of x_1 - x_2."""


@dataclass(frozen=True)
class ParityTarget:
    """Target y = x_1 x_2 of two bits among Gaussian inputs (arXiv:2512.04165, Appendix E.2)."""

    dimension: int

    @property
    def direction(self) -> np.ndarray:
        """Unit vector along the sum of the bits, shape (d,)."""
        direction = np.zeros(self.dimension)
        direction[:2] = 1 / sqrt(2)
        return direction

    def sample(
        self, n: int, rng: np.random.Generator, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw inputs X of shape (n, d) and of a given dtype, and labels y of shape (n,)."""
        X = draw_normals(dtype, self.dimension, n, rng)
        X[:, :2] = np.where(X[:, :2] > 0, 1, -1)
        return X, X[:, 0] * X[:, 1]


def quarter_root(setting: CurseParameters) -> float:
    """Fourth root of chi N / d."""
    chi = readout_scale(setting.readout, setting.width)
    return float((chi * setting.width / setting.dimension) ** 0.25)


@lru_cache(maxsize=256)
def carrier_strength(alignment: float, dimension: int, width: int, readout: str) -> float:
    """Predict the strength of each of four equal neurons that carry an alignment at the least cost."""
    # min over u, r of (d/2)(u² + r - 1 - ln r) + (chi N / 2) a², a c(u, r) = A / 4; at large u the
    # strength is u² = sqrt(8) (A / 4) sqrt(chi N / d)   (two-layer-posterior 24)
    from scipy.optimize import minimize

    overlap = neuron_overlap("relu", 2, "parity")
    price = readout_scale(readout, width) * width * (alignment / CARRIERS) ** 2

    def cost(logs: np.ndarray) -> float:
        u, r = np.exp(logs)
        return float(dimension * (u * u + r - logs[1]) + price / overlap.value(u, r) ** 2)

    start = np.array([np.log(8 * price / dimension) / 4, -1.0])
    best = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    return float(np.exp(best.x[0]))


def plant_carriers(
    parameters: CurseParameters, state: np.ndarray, alignment: float = 0.7
) -> np.ndarray:
    """Plant the four neurons that carry an alignment in a network of the prior."""
    d = parameters.dimension
    strength = carrier_strength(alignment, d, parameters.width, parameters.readout)
    planted = state.copy()
    signs = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])
    planted[:CARRIERS, :2] = strength * sqrt(d / 2) * signs
    planted[:CARRIERS, 2:d] *= 0.4
    # the readout costs as much as the first layer: chi N a² = d u²
    planted[:CARRIERS, d] = strength * sqrt(d) * signs.prod(axis=1)
    return planted


class ParityObserver(AlignmentObserver):
    """Observer of the second half of a run on a parity: alignment, strong neurons, and errors."""

    def __init__(
        self,
        parameters: CurseParameters,
        target: ParityTarget,
        posterior: Posterior,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(parameters)
        self.posterior = posterior
        self.test, self.labels = target.sample(TEST_SAMPLES, rng, np.float32)
        self.sums: list[list[float]] = []

    def __call__(self, theta: np.ndarray) -> None:
        """Record the alignment, neurons and errors of a state."""
        d = self.parameters.dimension
        w = theta[..., :d].astype(np.float64) / sqrt(d)
        square = w[..., 0] ** 2 + w[..., 1] ** 2
        rest = np.sum(w[..., 2:] ** 2, axis=2)
        parts = self.posterior.scale * theta[..., d].astype(np.float64)
        parts = parts * parity_overlap(w[..., 0], w[..., 1], rest)
        self.alignments.append(parts.sum(axis=1))
        self.neurons.add(np.sqrt(square), rest)
        out = np.sqrt(square) > outlier_edge(d)
        powers = [np.mean(np.sum(square**k * out, axis=1)) for k in (1, 2)]
        self.sums.append([float(np.mean(np.sum(parts * out, axis=1))), *map(float, powers)])
        if len(self.alignments) % 10 == 1:
            error = self.posterior.outputs(theta, self.test) - self.labels[:, None]
            self.test_errors.append(float(np.mean(error**2)))

    def metrics(self) -> Metrics:
        """Return averages over the second half of the run."""
        carried, second, fourth = np.mean(self.sums, axis=0)
        return super().metrics() | {
            "carried_alignment": float(carried),
            # strength and number of equal neurons with these sums of squares and of fourth powers
            "carrier_strength": sqrt(fourth / second) if second else None,
            "carriers": float(second**2 / fourth) if fourth else None,
        }
