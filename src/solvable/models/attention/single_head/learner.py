"""Minimisers of the loss of an attention head: over its weights, and by message passing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.message_passing.loop import Denoiser, Start, message_passing
from solvable.message_passing.outputs import Message, Messages
from solvable.models.attention.single_head.outputs import (
    SoftmaxOutput,
    forces,
    inverses,
    losses,
    proximal,
)
from solvable.operators.sensors import TokenSensors
from solvable.spectra.functionals import degrees_of_freedom


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
    """What the head sees of a matrix on each sample, of shape (n, k)."""
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
        # d^-2 (sum |y - sigma|^2 + lambda d Tr S); its derivative in S is d^-2 (lambda d - sum g Phi)
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


def pass_messages(
    sensors: TokenSensors,
    labels: np.ndarray,
    output: SoftmaxOutput,
    *,
    regularisation: float,
    damping: float = 0.3,
    tolerance: float = 1e-6,
    max_steps: int = 500,
) -> np.ndarray:
    """The minimiser's matrix by message passing with proximal steps and spectral soft thresholds."""
    d = sensors.size
    result = message_passing(
        sensors,
        head_messages(output, labels),
        Start(np.zeros((d, d)), np.ones((1, 1)), np.zeros((len(labels), output.variances.size))),
        denoiser=soft_thresholder(regularisation),
        damping=damping,
        tolerance=tolerance,
        max_steps=max_steps,
        least_variance=0.0,
    )
    return result.estimate


def head_messages(output: SoftmaxOutput, labels: np.ndarray) -> Messages:
    """Messages of the least loss, with their true slopes."""

    def given(omega: np.ndarray, cavity: np.ndarray) -> Message:
        variance = float(cavity[0, 0] / output.variances[0])
        root = np.sqrt(output.variances)
        centre = omega / root @ output.contrasts
        s = proximal(output, labels, centre, variance)
        curvature = output.hessian(s, labels, convex=False)
        step = inverses(np.eye(output.size) + variance * curvature)
        turn = output.contrasts / root[:, None]
        # dg / domega = -H (1 + Sigma H)^-1
        slope = -turn @ (curvature @ step).sum(axis=0) @ turn.T
        return Message(to_indices(output, forces(output, s, labels)), slope)

    return given


def soft_thresholder(regularisation: float) -> Denoiser:
    """Denoiser S = (b - 2 lambda)_+ / A of the loop, with its divergence."""

    def denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        precision = max(float(A[0, 0]), 1e-300)
        values, vectors = np.linalg.eigh((b + b.T) / 2)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = int(np.count_nonzero(values > 2 * regularisation))
        shrunk, part = values[:kept] - 2 * regularisation, vectors[:, :kept]
        # Sigma = 2 A / Sigma^, A the degrees of freedom over d^2
        response = 2 * degrees_of_freedom(values, shrunk) / len(b) ** 2 / precision
        return (part * (shrunk / precision)) @ part.T, np.array([[response]])

    return denoiser
