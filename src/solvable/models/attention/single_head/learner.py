"""Train an attention head: minimise its loss over the weights, or over the matrix S."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.models.attention.single_head.outputs import SoftmaxOutput, forces, losses, turn_of
from solvable.operators.sensors import TokenSensors


@dataclass(frozen=True)
class HeadSolution:
    """Trained attention head, the minimiser S of the loss."""

    matrix: np.ndarray
    """Learned matrix S (d, d): B B^T with the weights B = W / (p d)^(1/4), if the weights are trained."""
    train_error: float
    objective: float
    """Loss at the minimum, over d²."""
    gradient: float
    """Largest entry of the gradient with respect to B or S, relative to regularisation / d."""
    iterations: int


def contrasts_of(output: SoftmaxOutput, sensors: TokenSensors, matrix: np.ndarray) -> np.ndarray:
    """Contrasts (n, k) of a matrix on the samples."""
    return np.asarray(sensors.forward(matrix) @ turn_of(output))


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
    """Minimise the loss over the weights by L-BFGS from small random weights (attention 8)."""
    d = sensors.size
    # d columns of B suffice at any width
    shape = (d, min(width, d))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        B = flat.reshape(shape)
        value, pull = _misfit(sensors, labels, output, B @ B.T)
        # loss d^-2 (sum |y - sigma|² + lambda d Tr S), derivative d^-2 (lambda d - sum g Phi)
        # (attention 8)
        value += regularisation * d * (flat @ flat)
        return value / d**2, ((2 * regularisation * d * B - d * (pull @ B)) / d**2).ravel()

    start = random_stream(seed, "head").standard_normal(shape) / (2 * np.sqrt(shape[1]))
    found = _minimised(loss, start, regularisation / d, max_iterations)
    B = found.x.reshape(shape)
    return _solution(found, B @ B.T, sensors, labels, output, regularisation)


def train_matrix(
    sensors: TokenSensors,
    labels: np.ndarray,
    output: SoftmaxOutput,
    *,
    regularisation: float,
    max_iterations: int = 3_000,
) -> HeadSolution:
    """Minimise the loss over a symmetric matrix S by L-BFGS from S = 0 (attention 23)."""
    d = sensors.size

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        # gradients of a symmetric matrix are symmetric, so L-BFGS keeps the symmetry
        S = flat.reshape(d, d)
        value, pull = _misfit(sensors, labels, output, S)
        value += regularisation * d * (flat @ flat)
        return value / d**2, ((2 * regularisation * d * S - d / 2 * pull) / d**2).ravel()

    found = _minimised(loss, np.zeros((d, d)), regularisation / d, max_iterations)
    S = found.x.reshape(d, d)
    return _solution(found, (S + S.T) / 2, sensors, labels, output, regularisation)


def _misfit(
    sensors: TokenSensors, labels: np.ndarray, output: SoftmaxOutput, matrix: np.ndarray
) -> tuple[float, np.ndarray]:
    """Sum of squared errors, and the sum of forces times sensors, 2/d sum g Phi."""
    s = contrasts_of(output, sensors, matrix)
    pull = sensors.adjoint(forces(output, s, labels) @ turn_of(output).T)
    return float(losses(output, s, labels).sum()), pull


def _minimised(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    gradient: float,
    max_iterations: int,
) -> Any:
    """Minimum of the loss, with a largest gradient of 1e-5 times `gradient`."""
    from scipy.optimize import minimize

    # this ftol stops the search when a step lowers the objective by no more than rounding errors
    options = {
        "maxiter": max_iterations, "maxfun": 2 * max_iterations, "maxcor": 20, "ftol": 1e-12,
        "gtol": 1e-5 * gradient,
    }  # fmt: skip
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.nit >= max_iterations:
        raise NotConverged(
            f"training of the head did not converge in {max_iterations} iterations. Raise "
            "regularisation or max_iterations.",
            {"gradient": float(np.abs(found.jac).max()), "objective": float(found.fun)},
        )
    return found


def _solution(
    found: Any,
    matrix: np.ndarray,
    sensors: TokenSensors,
    labels: np.ndarray,
    output: SoftmaxOutput,
    regularisation: float,
) -> HeadSolution:
    errors = losses(output, contrasts_of(output, sensors, matrix), labels)
    return HeadSolution(
        matrix=matrix,
        train_error=float(errors.mean()),
        objective=float(found.fun),
        gradient=float(np.abs(found.jac).max()) * len(matrix) / regularisation,
        iterations=int(found.nit),
    )
