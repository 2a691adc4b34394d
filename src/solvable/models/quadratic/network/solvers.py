"""Convex problem of quadratic networks: objective, optimality conditions and FISTA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import Array, namespace, random_stream
from solvable.models.quadratic.network.sensing import Sensing


@dataclass(frozen=True)
class QuadraticSolution:
    """Minimiser S = B B^T of the convex problem, with its dual and optimality residual."""

    factor: Array
    """B, shape (d, k): orthogonal columns, strongest first."""
    residual: Array
    """r = y - A(S), shape (n,)."""
    dual: Array
    """H = 2 A*(r) / (d lambda), shape (d, d)."""
    kkt_residual: float
    iterations: int
    converged: bool
    solver: str

    @property
    def matrix(self) -> Array:
        """Minimiser S, shape (d, d)."""
        return self.factor @ self.factor.T


def objective(sensing: Sensing, factor: Array, labels: Array, regularisation: float) -> float:
    """Value of the convex objective (quadratic 1)."""
    # Phi(S) = |y - A(S)|² / d² + lambda Tr S / d  (quadratic 1)
    d, xp = sensing.dimension, namespace(factor)
    residual = sensing.asarray(labels) - sensing.forward(factor)
    return float(residual @ residual) / d**2 + regularisation * float(xp.sum(factor**2)) / d


def kkt_residual(factor: Array, dual: Array) -> float:
    """Distance from optimality: the larger of dual infeasibility and relative duality gap."""
    # max{(lambda_max(H) - 1)_+, |<H, S> - Tr S| / Tr S}, which is 0 only at the minimiser
    xp = namespace(factor)
    infeasible = max(float(xp.linalg.eigvalsh(dual)[-1]) - 1, 0.0)
    trace = float(xp.sum(factor**2))
    if trace == 0:
        return infeasible
    return max(infeasible, abs(float(xp.sum(factor * (dual @ factor))) / trace - 1))


def reachable(sensing: Sensing, residual: Array, regularisation: float, tolerance: float) -> float:
    """Smallest optimality residual to demand: the larger of tolerance and rounding error."""
    # H is a sum of 2 |r_mu| x x^T / (d^1.5 lambda). In single precision the optimality residual was 1
    # to 5 times the rounding of this sum, while the minimiser was accurate to 1e-7.
    size = float(namespace(residual).sum(abs(residual)))
    left = 8 * sensing.rounding * size / (sensing.dimension**1.5 * regularisation)
    return max(tolerance, left)


def certified(
    sensing: Sensing,
    labels: Array,
    regularisation: float,
    factor: Array,
    iterations: int,
    tolerance: float,
    solver: str,
) -> QuadraticSolution:
    """Compute residual, dual and optimality of a factor."""
    residual = labels - sensing.forward(factor)
    dual = 2 / (sensing.dimension * regularisation) * sensing.adjoint(residual)
    error = kkt_residual(factor, dual)
    converged = error <= reachable(sensing, residual, regularisation, tolerance)
    return QuadraticSolution(factor, residual, dual, error, iterations, converged, solver)


def positive_part(matrix: Array, threshold: float) -> tuple[Array, Array]:
    """Factor of (M - b I)_+ with the strongest column first, and the descending eigenvalues of M."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    values, vectors = xp.flip(values), xp.flip(vectors, axis=1)
    kept = int(xp.count_nonzero(values > threshold))
    return vectors[:, :kept] * xp.sqrt(values[:kept] - threshold), values


def lipschitz_constant(sensing: Sensing) -> float:
    """Upper estimate of the curvature 2 |A* A| / d², by power iterations."""
    d = sensing.dimension
    start = random_stream(0, "lipschitz").standard_normal((d, d))
    matrix = sensing.asarray(start + start.T)
    xp, norm = namespace(matrix), 1.0
    for _ in range(40):
        matrix = matrix / max(float(xp.linalg.matrix_norm(matrix)), np.finfo(float).tiny)
        values, vectors = xp.linalg.eigh(matrix)
        # `forward` takes positive matrices: the positive and the negative part separately.
        scaled, low = vectors * xp.sqrt(xp.abs(values)), int(xp.count_nonzero(values < 0))
        matrix = sensing.adjoint(
            sensing.forward(scaled[:, low:]) - sensing.forward(scaled[:, :low])
        )
        norm = float(xp.linalg.matrix_norm(matrix))
    # A margin of 2 % covers the error of the power iterations.
    return 1.02 * 2 / d**2 * max(norm, np.finfo(float).tiny)


def solve_fista(
    sensing: Sensing,
    labels: Array,
    regularisation: float,
    *,
    start: Array | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 10_000,
) -> QuadraticSolution:
    """Minimise by accelerated proximal gradient with adaptive restart; slow, but always converges."""
    # S <- (Y + 2 A*(y - A(Y)) / (d² L) - lambda I / (d L))_+. One iteration takes 2 n d (d + k) flops
    # and an eigendecomposition, as A(Y) is a combination of the last two A(S).
    d = sensing.dimension
    lipschitz = lipschitz_constant(sensing)
    labels = sensing.asarray(labels)
    xp = namespace(labels)
    factor = sensing.asarray(np.zeros((d, 0)) if start is None else start)
    current, measured = factor @ factor.T, sensing.forward(factor)
    point, predicted, momentum = current, measured, 1.0
    iteration = 0
    for iteration in range(1, max_iterations + 1):
        step = 2 / (d**2 * lipschitz) * sensing.adjoint(labels - predicted)
        factor, _ = positive_part(point + step, regularisation / (d * lipschitz))
        new, new_measured = factor @ factor.T, sensing.forward(factor)
        if float(xp.sum((point - new) * (new - current))) > 0:
            momentum = 1.0
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        push = (momentum - 1) / following
        point = new + push * (new - current)
        predicted = new_measured + push * (new_measured - measured)
        current, measured, momentum = new, new_measured, following
        if iteration % 10 == 0:
            residual = labels - measured
            dual = 2 / (d * regularisation) * sensing.adjoint(residual)
            enough = reachable(sensing, residual, regularisation, tolerance)
            if kkt_residual(factor, dual) <= enough:
                break
    return certified(sensing, labels, regularisation, factor, iteration, tolerance, "fista")
