"""Minimiser of the loss of an attention head over its weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.models.attention.single_head.outputs import (
    SoftmaxOutput,
    forces,
    losses,
)
from solvable.operators.sensors import TokenSensors


@dataclass(frozen=True)
class HeadSolution:
    """A minimiser S = B B^T of the loss of a head."""

    factor: np.ndarray
    """B, shape (d, p): the weights over the fourth root of p d."""
    train_error: float
    objective: float
    """Least value over d^2."""
    gradient: float
    """Largest entry of the gradient in B, over the penalty's own scale."""
    iterations: int

    @property
    def matrix(self) -> np.ndarray:
        """S, of shape (d, d)."""
        return np.asarray(self.factor @ self.factor.T)


def contrasts_of(output: SoftmaxOutput, sensors: TokenSensors, matrix: np.ndarray) -> np.ndarray:
    """Contrasts of a matrix on each sample, of shape (n, k)."""
    indices = sensors.forward(matrix) / np.sqrt(output.variances)
    return np.asarray(indices @ output.contrasts)


def to_indices(output: SoftmaxOutput, forces_on_contrasts: np.ndarray) -> np.ndarray:
    """Messages on indices, of shape (n, K)."""
    return np.asarray(forces_on_contrasts @ output.contrasts.T / np.sqrt(output.variances))


def train_head(
    sensors: TokenSensors,
    labels: np.ndarray,
    output: SoftmaxOutput,
    *,
    regularisation: float,
    width: int,
    seed: int,
    max_iterations: int = 3_000,
) -> HeadSolution:
    """Train the weights by L-BFGS from small random ones."""
    from scipy.optimize import minimize

    d = sensors.size
    # S = B B^T needs no more than d columns, whatever the width.
    shape = (d, min(width, d))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        B = flat.reshape(shape)
        s = contrasts_of(output, sensors, B @ B.T)
        # d^-2 (sum |y - sigma|² + lambda d Tr S); its derivative in S is d^-2 (lambda d - sum g Phi)
        value = losses(output, s, labels).sum() + regularisation * d * (flat @ flat)
        pull = sensors.adjoint(to_indices(output, forces(output, s, labels)))  # 2/d sum g Phi
        return float(value) / d**2, ((2 * regularisation * d * B - d * (pull @ B)) / d**2).ravel()

    start = random_stream(seed, "head").standard_normal(shape) / (2 * np.sqrt(shape[1]))
    # Where a step lowers the objective by rounding alone no further one is made.
    options = {
        "maxiter": max_iterations, "maxfun": 2 * max_iterations, "maxcor": 20, "ftol": 1e-12,
        "gtol": 1e-5 * regularisation / d,
    }  # fmt: skip
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.nit >= max_iterations:
        raise NotConverged(
            f"the weights of the head did not settle in {max_iterations} iterations. Raise "
            "regularisation.",
            {"gradient": float(np.abs(found.jac).max()), "objective": float(found.fun)},
        )
    B = found.x.reshape(shape)
    errors = losses(output, contrasts_of(output, sensors, B @ B.T), labels)
    return HeadSolution(
        factor=B,
        train_error=float(errors.mean()),
        objective=float(found.fun),
        gradient=float(np.abs(found.jac).max()) * d / regularisation,
        iterations=int(found.nit),
    )
