"""One replicate of a quadratic network: draw a problem, minimise, and compute the errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from solvable.arrays import ArraySource, to_numpy
from solvable.errors import NotConverged
from solvable.fitting.devices import on_device
from solvable.frame.points import Metrics
from solvable.message_passing.loop import Start, settle
from solvable.message_passing.matrix_channels import GaussianIndices
from solvable.message_passing.signal_laws import SymmetricSignal, signal_denoiser
from solvable.models.quadratic.network.amp import solve_amp
from solvable.models.quadratic.network.descent import solve_by_descent
from solvable.models.quadratic.network.factorised import solve_factorised
from solvable.models.quadratic.network.feature_groups import feature_groups, group_means
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.sensing import GaussianSensing, SampleSensing, Sensing
from solvable.models.quadratic.network.solutions import NOISELESS_PENALTY, measure_of, penalty_of
from solvable.models.quadratic.network.solvers import QuadraticSolution, objective, solve_fista
from solvable.models.quadratic.network.spectral_phase import outlier_edge
from solvable.models.quadratic.network.spectrum import spectral_estimate
from solvable.models.quadratic.network.target import QuadraticTarget
from solvable.operators.sensors import TokenSensors
from solvable.spectra.measures import Measure

TOLERANCE = 1e-6
"""Largest optimality residual of a minimiser."""

MAX_ITERATIONS = 40_000
"""Largest number of FISTA iterations."""

SINGLE_PRECISION = 2e7
"""Size n d from which the samples are stored in single precision."""


def draw_target(parameters: QuadraticParameters, rng: np.random.Generator) -> QuadraticTarget:
    """Draw the target of a replicate; `measure` and `teacher` draw the target first."""
    return QuadraticTarget(
        dimension=parameters.dimension,
        spectrum=parameters.target,
        width_ratio=parameters.width_ratio,
        exponent=parameters.exponent,
        noise=parameters.noise,
        seed=int(rng.integers(2**31)),
    )


def teacher(parameters: QuadraticParameters, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Factor of the target's matrix, from the same first draw as in :func:`measure`."""
    return {"factor": draw_target(parameters, rng).factor}


def measure(parameters: QuadraticParameters, rng: np.random.Generator) -> Metrics:
    """Draw and solve one problem, and return its metrics."""
    target = draw_target(parameters, rng)
    sensing, labels = draw_measurements(parameters, target, rng)
    solution = _on_host(minimise(sensing, labels, penalty_of(parameters)))
    scores = score(parameters, target, sensing, labels, solution)
    network: Metrics = {"network_objective": None, "network_matrix_error": None}
    if parameters.n_samples <= parameters.network_samples:
        network = _network(parameters, target, sensing, labels, int(rng.integers(2**31)))
    return {
        **scores,
        **network,
        "noiseless_matrix_error": _noiseless(parameters, target, sensing),
        "bayes_estimate_error": _bayes(parameters, target, sensing, labels),
    }


def _noiseless(
    parameters: QuadraticParameters, target: QuadraticTarget, sensing: Sensing
) -> float | None:
    """Error of the minimiser for labels without noise on the same samples; None if not computed."""
    smallest = parameters.noiseless_samples
    if not smallest or parameters.n_samples < smallest or not parameters.low_rank:
        return None
    labels = sensing.forward(sensing.asarray(target.factor))
    return target.matrix_error(to_numpy(minimise(sensing, labels, NOISELESS_PENALTY).matrix))


def _bayes(
    parameters: QuadraticParameters, target: QuadraticTarget, sensing: Sensing, labels: np.ndarray
) -> float | None:
    """Error of the Bayes-optimal estimate from the same samples; None if it was not computed."""
    if parameters.n_samples > parameters.bayes_samples or not isinstance(sensing, SampleSensing):
        return None
    X = to_numpy(sensing.samples.array).astype(np.float64)
    found = bayes_estimate(X, labels, measure_of(parameters), parameters.noise)
    return None if found is None else target.matrix_error(found)


def draw_measurements(
    parameters: QuadraticParameters, target: QuadraticTarget, rng: np.random.Generator
) -> tuple[Sensing, np.ndarray]:
    """Draw samples or Gaussian matrices, and noisy labels of the target."""
    n, d = parameters.n_samples, parameters.dimension
    if parameters.sensing == "network":
        kind = np.float32 if n * d > SINGLE_PRECISION else np.float64
        X, y = target.sample(n, rng, dtype=kind)
        return SampleSensing(ArraySource(on_device(X))), y
    control = GaussianSensing(n, d, int(rng.integers(2**31)))
    noise = np.sqrt(target.noise) * rng.standard_normal(n)
    return control, control.forward(target.factor) + noise


def _on_host(solution: QuadraticSolution) -> QuadraticSolution:
    """Copy a solution on a device to NumPy arrays."""
    return replace(
        solution,
        factor=to_numpy(solution.factor),
        residual=to_numpy(solution.residual),
        dual=to_numpy(solution.dual),
    )


def minimise(sensing: Sensing, labels: np.ndarray, regularisation: float) -> QuadraticSolution:
    """Find the minimiser by message passing, or by proximal gradient if that does not contract."""
    first = solve_amp(sensing, labels, regularisation, tolerance=TOLERANCE)
    if first.converged:
        return first
    # A result of message passing far from optimality is a worse start than S = 0.
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
            f"the minimiser was not reached in {solution.iterations} iterations: the optimality residual "
            f"is {solution.kkt_residual:.2g}; allowed: {TOLERANCE:g}. Raise regularisation.",
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
    """True errors of a minimiser, and their estimates from the training data."""
    d, penalty = parameters.dimension, penalty_of(parameters)
    matrix, strengths = solution.matrix, np.sum(solution.factor**2, axis=0)
    error = target.matrix_error(matrix)
    estimate = spectral_estimate(solution, penalty)
    known = bool(np.isfinite(estimate.noise))
    # The edge of the noise uses the noise that is estimated from the fit.
    edge = outlier_edge(estimate.noise, estimate.shrinkage, d)
    return {
        "matrix_error": error,
        "test_error": 2 * error + target.noise,  # mean of (y - f)² on fresh noisy labels
        "train_error": float(np.mean(solution.residual**2)),
        "trace": float(strengths.sum() / d),
        "rank_fraction": strengths.size / d,
        "objective": objective(sensing, sensing.asarray(solution.factor), labels, penalty),
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
    """Train the weights of a network from a random start."""
    width = max(1, round(parameters.network_ratio * parameters.dimension))
    # L-BFGS then reaches the objective to about 1e-10, a hundred thousandth of the claim's tolerance.
    solve, tolerance = (
        (solve_factorised, 100 * TOLERANCE)
        if parameters.network_solver == "l-bfgs"
        else (solve_by_descent, TOLERANCE)
    )
    trained = solve(
        sensing, labels, penalty_of(parameters), width=width, tolerance=tolerance, seed=seed
    )
    return {
        "network_objective": objective(sensing, trained.factor, labels, penalty_of(parameters)),
        "network_matrix_error": target.matrix_error(to_numpy(trained.matrix)),
    }


def bayes_estimate(
    X: np.ndarray, labels: np.ndarray, target: Measure, label_noise: float
) -> np.ndarray | None:
    """Posterior mean of a matrix of known spectrum; None if message passing does not converge."""
    # GAMP-RIE of arXiv:2408.03733: the denoiser acts on the eigenvalues, as the eigenvectors are uniform.
    law = SymmetricSignal(target)
    channel = GaussianIndices(np.array([2.0]), np.array([label_noise]))
    n, d = X.shape
    start = Start(law.prior_mean(d), np.array([[law.variance]]), np.zeros((n, 1)))
    try:
        found = settle(
            TokenSensors(X), channel.messages(labels[:, None]), start, denoiser=signal_denoiser(law),
            tolerance=2e-3, least_variance=1e-7,
        )  # fmt: skip
    except NotConverged:
        return None
    return np.asarray(found.estimate)
