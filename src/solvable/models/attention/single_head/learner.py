"""Train an attention head: minimise its loss over the weights."""

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
    """Trained attention head, the minimiser S = B B^T of the loss."""

    factor: np.ndarray
    """Factor B (d, p): the weights W over (p d)^(1/4)."""
    train_error: float
    objective: float
    """Loss at the minimum, over d²."""
    gradient: float
    """Largest entry of the gradient with respect to B, relative to regularisation / d."""
    iterations: int

    @property
    def matrix(self) -> np.ndarray:
        """Learned matrix S (d, d)."""
        return np.asarray(self.factor @ self.factor.T)


def contrasts_of(output: SoftmaxOutput, sensors: TokenSensors, matrix: np.ndarray) -> np.ndarray:
    """Contrasts (n, k) of a matrix on the samples."""
    indices = sensors.forward(matrix) / np.sqrt(output.variances)
    return np.asarray(indices @ output.contrasts)


def to_indices(output: SoftmaxOutput, forces_on_contrasts: np.ndarray) -> np.ndarray:
    """Map forces on contrasts to messages (n, K) on indices."""
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
    """Minimise the loss by L-BFGS from small random weights (attention 8)."""
    from scipy.optimize import minimize

    d = sensors.size
    # d columns of B suffice at any width
    shape = (d, min(width, d))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        B = flat.reshape(shape)
        s = contrasts_of(output, sensors, B @ B.T)
        # loss d^-2 (sum |y - sigma|² + lambda d Tr S), derivative d^-2 (lambda d - sum g Phi)  (attention
        # 8)
        value = losses(output, s, labels).sum() + regularisation * d * (flat @ flat)
        pull = sensors.adjoint(
            to_indices(output, forces(output, s, labels))
        )  # sum of forces times sensors, 2/d sum g Phi
        return float(value) / d**2, ((2 * regularisation * d * B - d * (pull @ B)) / d**2).ravel()

    start = random_stream(seed, "head").standard_normal(shape) / (2 * np.sqrt(shape[1]))
    # this ftol stops the search when a step lowers the objective by no more than rounding errors
    options = {
        "maxiter": max_iterations, "maxfun": 2 * max_iterations, "maxcor": 20, "ftol": 1e-12,
        "gtol": 1e-5 * regularisation / d,
    }  # fmt: skip
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.nit >= max_iterations:
        raise NotConverged(
            f"training of the head did not converge in {max_iterations} iterations. Raise "
            "regularisation or max_iterations.",
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
