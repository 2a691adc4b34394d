"""Factorised solver of the quadratic network: the weights themselves, no eigendecomposition."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.quadratic.sensing import Sensing
from solvable.models.quadratic.solvers import QuadraticSolution, certified

RESTARTS = 4
"""Times L-BFGS starts anew where rounding stops its line search before the tolerance."""


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
    r"""Minimise over the weights by L-BFGS, as a network of this width is trained.

    .. math:: \min_{B\in\mathbb R^{d\times p}} \frac1{d^2}\|y-\mathcal A(BB^\top)\|^2
        + \frac{\tilde\lambda}d\|B\|_F^2

    Parameters
    ----------
    sensing : Sensing
        :math:`\mathcal A`.
    labels : ndarray of shape (n,)
        y.
    regularisation : float
        :math:`\tilde\lambda > 0`.
    width : int, optional
        p; d by default. From the rank of the minimiser on, the minima are those of the convex
        problem; below, ``converged`` is False.
    tolerance : float
        Largest optimality residual of the convex problem.
    max_iterations : int
        Where to stop without.
    seed : int
        Of the random start: B = 0 is a saddle.

    Returns
    -------
    QuadraticSolution
        ``converged`` says whether the tolerance was reached.

    Notes
    -----
    Line search after More and Thuente (strong Wolfe), of SciPy. arXiv:2606.28242 trains this way;
    ``tests/models/quadratic/test_solvers.py``.
    """
    from scipy.optimize import minimize

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
    for _ in range(RESTARTS):
        found = minimize(value_and_gradient, flat, jac=True, method="L-BFGS-B", options=options)
        flat, iterations = found.x, iterations + int(found.nit)
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
