"""One replicate of a quadratic network: draw, minimise, compare."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.arrays import ArraySource
from solvable.errors import NotConverged
from solvable.frame.points import Metrics
from solvable.models.quadratic.network.amp import solve_amp
from solvable.models.quadratic.network.factorised import solve_factorised
from solvable.models.quadratic.network.feature_groups import feature_groups, group_means
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.sensing import GaussianSensing, SampleSensing, Sensing
from solvable.models.quadratic.network.solvers import QuadraticSolution, objective, solve_fista
from solvable.models.quadratic.network.spectral_phase import outlier_edge
from solvable.models.quadratic.network.spectrum import spectral_estimate
from solvable.models.quadratic.network.target import QuadraticTarget

TOLERANCE = 1e-6
"""Largest optimality residual of a minimiser."""

MAX_ITERATIONS = 40_000
"""Iterations of the solver that always converges."""

SINGLE_PRECISION = 2e7
"""Numbers of a data set from which it is stored in single precision."""


def draw_target(parameters: QuadraticParameters, rng: np.random.Generator) -> QuadraticTarget:
    """Target of one replicate, the first thing that is drawn."""
    return QuadraticTarget(
        dimension=parameters.dimension,
        spectrum=parameters.target,
        width_ratio=parameters.width_ratio,
        exponent=parameters.exponent,
        noise=parameters.noise,
        seed=int(rng.integers(2**31)),
    )


def teacher(parameters: QuadraticParameters, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Factor of the target's matrix that :func:`measure` draws first."""
    return {"factor": draw_target(parameters, rng).factor}


def measure(parameters: QuadraticParameters, rng: np.random.Generator) -> Metrics:
    """Metrics of one replicate."""
    target = draw_target(parameters, rng)
    sensing, labels = draw_measurements(parameters, target, rng)
    solution = minimise(sensing, labels, parameters.regularisation)
    scores = score(parameters, target, sensing, labels, solution)
    network: Metrics = {"network_objective": None, "network_matrix_error": None}
    if parameters.n_samples <= parameters.network_samples:
        network = _network(parameters, target, sensing, labels, int(rng.integers(2**31)))
    return {**scores, **network}


def draw_measurements(
    parameters: QuadraticParameters, target: QuadraticTarget, rng: np.random.Generator
) -> tuple[Sensing, np.ndarray]:
    """Measurements of the target, by samples or by Gaussian matrices, and noisy labels."""
    n, d = parameters.n_samples, parameters.dimension
    if parameters.sensing == "network":
        kind = np.float32 if n * d > SINGLE_PRECISION else np.float64
        X, y = target.sample(n, rng, dtype=kind)
        return SampleSensing(ArraySource(X)), y
    control = GaussianSensing(n, d, int(rng.integers(2**31)))
    noise = np.sqrt(target.noise) * rng.standard_normal(n)
    return control, control.forward(target.factor) + noise


def minimise(sensing: Sensing, labels: np.ndarray, regularisation: float) -> QuadraticSolution:
    """The minimiser, by message passing, or by proximal gradient where that does not contract."""
    first = solve_amp(sensing, labels, regularisation, tolerance=TOLERANCE)
    if first.converged:
        return first
    # Far from contracting, message passing ends no nearer to the minimiser than nothing.
    start = first.factor if first.kkt_residual < 0.1 else None
    solution = solve_fista(
        sensing,
        labels,
        regularisation,
        start=start,
        tolerance=TOLERANCE,
        max_iterations=MAX_ITERATIONS,
    )
    if not solution.converged:
        raise NotConverged(
            f"the minimiser was not reached in {solution.iterations} iterations: optimality "
            f"residual {solution.kkt_residual:.2g}; allowed: {TOLERANCE:g}. Raise regularisation.",
            {"kkt_residual": solution.kkt_residual, "iterations": solution.iterations},
        )
    return solution


def score(
    parameters: QuadraticParameters,
    target: QuadraticTarget,
    sensing: Sensing,
    labels: np.ndarray,
    solution: QuadraticSolution,
) -> Metrics:
    """Errors of a minimiser, and its own estimates of them."""
    d, penalty = parameters.dimension, parameters.regularisation
    matrix, strengths = solution.matrix, np.sum(solution.factor**2, axis=0)
    error = target.matrix_error(matrix)
    estimate = spectral_estimate(solution, penalty)
    known = bool(np.isfinite(estimate.noise))
    # Directions stand out of the noise that is estimated from the fit.
    edge = outlier_edge(estimate.noise, estimate.shrinkage, d)
    return {
        "matrix_error": error,
        "test_error": 2 * error + target.noise,  # mean of (y - f)² on fresh noisy labels
        "train_error": float(np.mean(solution.residual**2)),
        "trace": float(strengths.sum() / d),
        "rank_fraction": strengths.size / d,
        "objective": objective(sensing, solution.factor, labels, penalty),
        "gcv_test_error": estimate.gcv_score if known else None,
        "effective_noise": estimate.noise if known else None,
        "threshold": estimate.shrinkage if known else None,
        "outliers": float(np.sum(strengths > edge)) if known else None,
        "eigenvalues": [*strengths.tolist(), *[0.0] * (d - strengths.size)],
        "feature_errors": group_means(target.feature_errors(matrix), feature_groups(parameters)),
        "pruned_error": target.matrix_error(estimate.pruned()) if known else None,
        "denoised_error": target.matrix_error(estimate.denoised()) if known else None,
        "kkt_residual": solution.kkt_residual,
        "iterations": float(solution.iterations),
    }


def _network(
    parameters: QuadraticParameters,
    target: QuadraticTarget,
    sensing: Sensing,
    labels: np.ndarray,
    seed: int,
) -> Metrics:
    """The network itself, its weights trained from random ones."""
    width = max(1, round(parameters.network_ratio * parameters.dimension))
    trained = solve_factorised(
        sensing, labels, parameters.regularisation, width=width, tolerance=TOLERANCE, seed=seed
    )
    return {
        "network_objective": objective(sensing, trained.factor, labels, parameters.regularisation),
        "network_matrix_error": target.matrix_error(trained.matrix),
    }
