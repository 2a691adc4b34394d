"""The quadratic network's convex problem: minimisers with their proof, and FISTA, the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.models.quadratic.sensing import Sensing


@dataclass(frozen=True)
class QuadraticSolution:
    r"""Minimiser of the convex problem, with the proof that it is one.

    Parameters
    ----------
    factor : ndarray of shape (d, k)
        B of the minimiser :math:`\hat S = BB^\top`; orthogonal columns, strongest first.
    residual : ndarray of shape (n,)
        :math:`y - \mathcal A(\hat S)`.
    dual : ndarray of shape (d, d)
        :math:`H = \frac{2}{d\tilde\lambda}\mathcal A^*(r)`.
    kkt_residual : float
        :func:`kkt_residual` of the three.
    iterations : int
        Of the solver.
    converged : bool
        Whether the tolerance was reached.
    solver : str
        Which one.

    Examples
    --------
    >>> QuadraticSolution(np.ones((2, 1)), np.zeros(3), np.eye(2), 0.0, 5, True, "amp").matrix
    array([[1., 1.],
           [1., 1.]])
    """

    factor: np.ndarray
    residual: np.ndarray
    dual: np.ndarray
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
    r"""Value of the convex problem.

    .. math:: \Phi_d(S) = \frac1{d^2}\|y - \mathcal A(S)\|^2 + \frac{\tilde\lambda}{d}\mathrm{Tr}\,S

    Parameters
    ----------
    sensing : Sensing
        :math:`\mathcal A`.
    factor : ndarray of shape (d, k)
        B of :math:`S = BB^\top`.
    labels : ndarray of shape (n,)
        y.
    regularisation : float
        :math:`\tilde\lambda`.

    Returns
    -------
    float
        At least 0.

    Notes
    -----
    arXiv:2505.17958, with the factor d that the talk's slide drops;
    ``tests/models/quadratic/test_solvers.py``.
    """
    d = sensing.dimension
    residual = labels - sensing.forward(factor)
    return float(residual @ residual / d**2 + regularisation * np.sum(factor**2) / d)


def kkt_residual(factor: np.ndarray, dual: np.ndarray) -> float:
    r"""Distance from optimality: the larger of dual infeasibility and relative duality gap.

    .. math:: \max\Big\{(\lambda_{\max}(H) - 1)_+,\
        \frac{|\langle H, \hat S\rangle - \mathrm{Tr}\hat S|}{\mathrm{Tr}\hat S}\Big\}

    Parameters
    ----------
    factor : ndarray of shape (d, k)
        B of :math:`\hat S = BB^\top`.
    dual : ndarray of shape (d, d)
        H.

    Returns
    -------
    float
        0 exactly at the minimiser.

    Notes
    -----
    arXiv:2505.17958 (derived); ``tests/models/quadratic/test_solvers.py``.

    Examples
    --------
    >>> kkt_residual(np.eye(2), np.eye(2))
    0.0
    """
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
    """Solution with residual, dual and optimality recomputed from the factor alone.

    Parameters
    ----------
    sensing : Sensing
        The measurements.
    labels : ndarray of shape (n,)
        What was measured.
    regularisation : float
        Positive.
    factor : ndarray of shape (d, k)
        Where the solver stopped.
    iterations : int
        Of the solver.
    tolerance : float
        Largest optimality residual that counts as converged.
    solver : str
        Which one.

    Returns
    -------
    QuadraticSolution
        Independent of what the solver believed.
    """
    residual = labels - sensing.forward(factor)
    dual = 2 / (sensing.dimension * regularisation) * sensing.adjoint(residual)
    error = kkt_residual(factor, dual)
    return QuadraticSolution(factor, residual, dual, error, iterations, error <= tolerance, solver)


def positive_part(matrix: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Factor of :math:`(M - bI)_+` and the eigenvalues of M.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        M, symmetric.
    threshold : float
        b.

    Returns
    -------
    factor : ndarray of shape (d, k)
        Strongest column first.
    eigenvalues : ndarray of shape (d,)
        Of M, descending.

    Examples
    --------
    >>> positive_part(np.diag([5.0, 0.0]), 1.0)[1]
    array([5., 0.])
    """
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int(np.count_nonzero(values > threshold))
    return vectors[:, :kept] * np.sqrt(values[:kept] - threshold), values


def lipschitz_constant(sensing: Sensing, iterations: int = 40) -> float:
    r"""Upper estimate of :math:`\frac{2}{d^2}\|\mathcal A^*\mathcal A\|` by power iterations.

    Parameters
    ----------
    sensing : Sensing
        :math:`\mathcal A`.
    iterations : int
        Each is one product with each of the two maps.

    Returns
    -------
    float
        With a safety factor of 1.02.
    """
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
    r"""Minimise by accelerated proximal gradient with adaptive restart.

    .. math:: S_{k+1} = \Big(Y_k + \frac{2}{d^2L}\mathcal A^*(y - \mathcal A(Y_k))
        - \frac{\tilde\lambda}{dL} I\Big)_+

    Parameters
    ----------
    sensing : Sensing
        :math:`\mathcal A`.
    labels : ndarray of shape (n,)
        y.
    regularisation : float
        :math:`\tilde\lambda > 0`.
    start : ndarray of shape (d, k), optional
        Factor to start from; 0 by default.
    tolerance : float
        Largest optimality residual, checked every ten iterations.
    max_iterations : int
        Where to stop without.

    Returns
    -------
    QuadraticSolution
        ``converged`` says whether the tolerance was reached.

    Notes
    -----
    Always converges. One iteration takes :math:`2nd(d + k)` flops and an eigendecomposition: the
    measurements of the extrapolated matrix are those of two matrices of rank k. Derived;
    ``tests/models/quadratic/test_solvers.py``.
    """
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
