"""One replicate of a Boltzmann machine on spiked data: draw data, fit, measure overlaps."""

from __future__ import annotations

import numpy as np

from solvable.frame.points import Metrics, listed
from solvable.models.boltzmann.dynamics import Moments, start_moments
from solvable.models.boltzmann.maximum import Maximum, ascend, message_passing, principal_directions
from solvable.models.boltzmann.parameters import ASCENT_RATE, BoltzmannParameters
from solvable.models.boltzmann.partition import partition_gap


def draw_directions(parameters: BoltzmannParameters, rng: np.random.Generator) -> np.ndarray:
    """Draw sign directions w* (d, r), exactly orthogonal if 2^r divides d."""
    d, r = parameters.dimension, len(parameters.strengths)
    # every pattern of relative signs is equally frequent
    patterns = (np.arange(d)[:, None] >> np.arange(r)) & 1
    signs = 1.0 - 2.0 * rng.permutation(patterns)
    return np.asarray(signs * rng.choice([-1.0, 1.0], (d, 1)))


def draw_teacher(
    parameters: BoltzmannParameters, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the spike directions of one replicate."""
    return {"directions": draw_directions(parameters, rng)}


def draw_samples(
    parameters: BoltzmannParameters, directions: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw samples (n, d), divided by the standard deviation of the noise."""
    n, (d, r) = parameters.samples, directions.shape
    # x = W* Lambda^(1/2) u / sqrt(d) + z
    X = rng.standard_normal((n, d))
    signs = rng.choice([-1.0, 1.0], (n, r))
    X += (signs * np.sqrt(parameters.strengths)) @ (directions.T / np.sqrt(d))
    return X


def measure(parameters: BoltzmannParameters, rng: np.random.Generator) -> Metrics:
    """Draw and fit one replicate and return its metrics; without a stable maximum some are None."""
    directions = draw_directions(parameters, rng)
    X = draw_samples(parameters, directions, rng)
    components = principal_directions(X, parameters.hidden_units, rng)
    metrics: Metrics = dict.fromkeys(("overlap_matrix", "partition_gap", "replicon", "converged"))
    metrics["pca_overlap"] = listed(span_overlap(components, directions))
    if parameters.steps:
        W = _some_steps(parameters, X, directions, rng)
        sizes = np.linalg.norm(W, axis=0)[:, None] * np.sqrt(len(W))
        return metrics | {
            "overlap": listed(span_overlap(W, directions)),
            "overlap_matrix": listed((W.T @ directions / sizes).ravel()),
            "norm": float(np.sum(W**2) / len(W)),
        }
    machine = fit(parameters, X, components, rng)
    overlap, stable = span_overlap(machine.weights, directions), machine.stable
    return metrics | {
        "overlap": listed(overlap * (1.0 if stable else np.nan)),
        "norm": machine.norm if stable else None,
        "partition_gap": partition_gap(machine.weights) if stable and machine.norm else None,
        "replicon": machine.replicon if np.isfinite(machine.replicon) else None,
        "converged": float(stable),
    }


def fit(
    parameters: BoltzmannParameters, X: np.ndarray, components: np.ndarray, rng: np.random.Generator
) -> Maximum:
    """Fit the machine with the chosen algorithm."""
    d, decay = X.shape[1], parameters.weight_decay
    if parameters.algorithm == "gradient":
        start = 0.1 * rng.standard_normal((d, parameters.hidden_units))
        return ascend(X, start, decay, max_steps=1_000)
    machine = message_passing(X, components * np.sqrt(d), decay)
    if not machine.settled and np.isfinite(machine.replicon):
        machine = message_passing(X, components * np.sqrt(d), decay, damping=0.5)
    return machine


def _some_steps(
    parameters: BoltzmannParameters, X: np.ndarray, directions: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Weights after a given number of steps from a start with prescribed moments."""
    decay = parameters.weight_decay
    start = start_weights(
        start_moments(parameters.strengths, parameters.hidden_units), directions, rng
    )
    steps = parameters.steps
    if parameters.algorithm == "amp":
        return message_passing(X, start, decay, max_steps=steps, tolerance=0.0).weights
    return ascend(X, start, decay, rate=ASCENT_RATE, max_steps=steps, tolerance=0.0).weights


def start_weights(start: Moments, directions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw weights whose overlaps with the directions and whose products are exactly the given ones."""
    (d, r), k = directions.shape, len(start.M)
    basis = np.linalg.qr(np.column_stack([directions, rng.standard_normal((d, k))]))[0] * np.sqrt(d)
    seen = np.linalg.solve(directions.T @ directions / d, start.M.T)
    rest = start.Q - start.M @ seen
    return np.asarray(directions @ seen + basis[:, r:] @ np.linalg.cholesky(rest).T)


def span_overlap(W: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Cosine of each direction with the span of the weights; NaN if the weights are 0."""
    left, sizes, _ = np.linalg.svd(W, full_matrices=False)
    # drop singular values below 1/30 of the largest: they are differences of units that share a direction
    kept = left[:, sizes > sizes[0] / 30] if sizes[0] > 0 else left[:, :0]
    if not kept.size:
        return np.full(directions.shape[1], np.nan)
    return np.asarray(np.linalg.norm(kept.T @ directions, axis=0) / np.sqrt(len(W)))
