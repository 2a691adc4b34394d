"""The quadratic network's convex problem: minimisers with their proof, by FISTA or by the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.models.quadratic.sensing import Sensing


@dataclass(frozen=True)
class QuadraticSolution:
    """Minimiser S = B B^T of the convex problem, with the proof that it is one."""

    factor: np.ndarray
    """B, shape (d, k): orthogonal columns, strongest first."""
    residual: np.ndarray
    """r = y - A(S), shape (n,)."""
    dual: np.ndarray
    """H = 2 A*(r) / (d lambda), shape (d, d)."""
    kkt_residual: float
    iterations: int
    converged: bool
    solver: str

    @property
    def matrix(self) -> np.ndarray:
        """The minimiser itself, of shape (d, d)."""
        return np.asarray(self.factor @ self.factor.T)


def objective(
    sensing: Sensing, factor: np.ndarray, labels: np.ndarray, regularisation: float
) -> float:
    """Value of the convex problem."""
    # Phi(S) = |y - A(S)|^2 / d^2 + lambda Tr S / d: 2505.17958, with the d that the talk's slide drops.
    d = sensing.dimension
    residual = labels - sensing.forward(factor)
    return float(residual @ residual / d**2 + regularisation * np.sum(factor**2) / d)


def kkt_residual(factor: np.ndarray, dual: np.ndarray) -> float:
    """Distance from optimality: the larger of dual infeasibility and relative duality gap."""
    # max{(lambda_max(H) - 1)_+, |<H, S> - Tr S| / Tr S}, 0 exactly at the minimiser (derived)
    infeasible = max(float(np.linalg.eigvalsh(dual)[-1]) - 1, 0.0)
    trace = float(np.sum(factor**2))
    if trace == 0:
        return infeasible
    return max(infeasible, abs(float(np.sum(factor * (dual @ factor))) / trace - 1))


def certified(
    sensing: Sensing,
    labels: np.ndarray,
    regularisation: float,
    factor: np.ndarray,
    iterations: int,
    tolerance: float,
    solver: str,
) -> QuadraticSolution:
    """Solution with residual, dual and optimality recomputed from the factor alone."""
    residual = labels - sensing.forward(factor)
    dual = 2 / (sensing.dimension * regularisation) * sensing.adjoint(residual)
    error = kkt_residual(factor, dual)
    return QuadraticSolution(factor, residual, dual, error, iterations, error <= tolerance, solver)


def positive_part(matrix: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Factor of (M - b I)_+, strongest column first, and the eigenvalues of M, descending."""
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int(np.count_nonzero(values > threshold))
    return vectors[:, :kept] * np.sqrt(values[:kept] - threshold), values


def lipschitz_constant(sensing: Sensing, iterations: int = 40) -> float:
    """Upper estimate of the curvature 2 |A* A| / d^2, by power iterations."""
    d = sensing.dimension
    start = random_stream(0, "lipschitz").standard_normal((d, d))
    matrix = start + start.T
    norm = 1.0
    for _ in range(iterations):
        matrix /= max(float(np.linalg.norm(matrix)), np.finfo(float).tiny)
        values, vectors = np.linalg.eigh(matrix)
        up = vectors[:, values > 0] * np.sqrt(values[values > 0])
        down = vectors[:, values < 0] * np.sqrt(-values[values < 0])
        matrix = sensing.adjoint(sensing.forward(up) - sensing.forward(down))
        norm = float(np.linalg.norm(matrix))
    # Two per cent for what the iterations leave.
    return 1.02 * 2 / d**2 * max(norm, np.finfo(float).tiny)


def solve_fista(
    sensing: Sensing,
    labels: np.ndarray,
    regularisation: float,
    *,
    start: np.ndarray | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 10_000,
) -> QuadraticSolution:
    """Minimise by accelerated proximal gradient with adaptive restart: slow, but sure."""
    # S <- (Y + 2 A*(y - A(Y)) / (d^2 L) - lambda I / (d L))_+. One iteration takes 2 n d (d + k) flops
    # and an eigendecomposition: measurements of the extrapolated matrix are those of two of rank k.
    d = sensing.dimension
    lipschitz = lipschitz_constant(sensing)
    factor = np.zeros((d, 0)) if start is None else start
    current, measured = factor @ factor.T, sensing.forward(factor)
    point, predicted, momentum = current, measured, 1.0
    iteration = 0
    for iteration in range(1, max_iterations + 1):
        step = 2 / (d**2 * lipschitz) * sensing.adjoint(labels - predicted)
        factor, _ = positive_part(point + step, regularisation / (d * lipschitz))
        new, new_measured = factor @ factor.T, sensing.forward(factor)
        if np.sum((point - new) * (new - current)) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / following
        point = new + push * (new - current)
        predicted = new_measured + push * (new_measured - measured)
        current, measured, momentum = new, new_measured, following
        if iteration % 10 == 0:
            dual = 2 / (d * regularisation) * sensing.adjoint(labels - measured)
            if kkt_residual(factor, dual) <= tolerance:
                break
    return certified(sensing, labels, regularisation, factor, iteration, tolerance, "fista")


def solve_factorised(
    sensing: Sensing,
    labels: np.ndarray,
    regularisation: float,
    *,
    width: int | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 5_000,
    seed: int = 0,
) -> QuadraticSolution:
    """Minimise over the weights by L-BFGS, as a network of this width is trained."""
    from scipy.optimize import minimize

    # min over B of shape (d, p) of |y - A(B B^T)|^2 / d^2 + lambda |B|_F^2 / d, as 2606.28242 trains.
    # From the rank of the minimiser on, the minima are those of the convex problem; below, `converged`
    # is False. The start is random: B = 0 is a saddle.
    d = sensing.dimension
    columns = d if width is None else min(width, d)
    scale = np.sqrt(max(float(np.std(labels)), 1e-12) / columns)
    start = scale * random_stream(seed, "factor").standard_normal((d, columns)) / np.sqrt(d)

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        factor = flat.reshape(d, columns)
        residual = labels - sensing.forward(factor)
        slope = regularisation * factor / d - 2 / d**2 * sensing.adjoint(residual) @ factor
        value = residual @ residual / d**2 + regularisation * np.sum(factor**2) / d
        return float(value), 2 * slope.ravel()

    options = {
        "maxiter": max_iterations,
        "maxfun": 2 * max_iterations,
        "maxcor": 20,
        "ftol": 0.0,
        "gtol": 1e-2 * tolerance * regularisation / d,
    }
    flat, iterations = start.ravel(), 0
    # Rounding may stop the line search before the tolerance: it starts anew.
    for _ in range(4):
        ended = minimize(value_and_gradient, flat, jac=True, method="L-BFGS-B", options=options)
        flat, iterations = ended.x, iterations + int(ended.nit)
        factor = _orthogonal_factor(flat.reshape(d, columns), float(np.std(labels)))
        solution = certified(
            sensing, labels, regularisation, factor, iterations, tolerance, "factorised"
        )
        if solution.converged or iterations >= max_iterations:
            break
    return solution


def _orthogonal_factor(weights: np.ndarray, scale: float) -> np.ndarray:
    left, strengths, _ = np.linalg.svd(weights, full_matrices=False)
    # Columns that the penalty drives to zero only shrink geometrically.
    size = max(float(strengths[0]) ** 2, scale, np.finfo(float).tiny)
    kept = strengths**2 > 1e-9 * size
    return np.asarray(left[:, kept] * strengths[kept])
