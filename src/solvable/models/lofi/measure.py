"""One replicate of a filter on Gaussian inputs: draw data, apply the filter, measure overlaps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.lofi.lift import activation_energies
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.target import draw_target, label_law, label_weights
from solvable.networks.blocks import Block, network_blocks
from solvable.networks.lofi import NeuralLoFiClassifier
from solvable.operators import HermiteFeatures, MomentOperator, leading_eigenpairs
from solvable.operators.activations import dual_kernel
from solvable.operators.kernel_factor import factorise_kernel

METRICS = (
    "eigenvalue", "bulk_edge", "opposite_edge", "squared_overlap", "subspace_overlap",
    "upper_subspace_overlap", "best_squared_overlap", "best_rank", "deflated_squared_overlap",
    "deflated_rank", "error", "kernel_error", "deep_kernel_error", "null_eigenvalue",
    "first_moment_overlap",
)  # fmt: skip
"""Names of a replicate's metrics; a metric is None if the target does not define it."""


SHUFFLES = 4
"""Number of label permutations over which each replicate averages the null eigenvalue."""


class _Sample(NamedTuple):
    """Target and samples of one replicate, and the random generator for later draws."""

    target: Any
    X: np.ndarray
    y: np.ndarray
    rng: np.random.Generator


def measure(parameters: NeuralLoFiParameters, rng: np.random.Generator) -> Metrics:
    """Draw one replicate and return its metrics."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng)
    empty: Metrics = dict.fromkeys(METRICS)
    if np.all(y == y[0]):
        # A very small sample may contain only one class, which gives no information on directions.
        return empty
    part = {"subspace": _subspace, "hidden": _hidden, "single-index": _single}[parameters.target]
    if parameters.lift != "none":
        part = _lifted
    return empty | part(parameters, _Sample(target, X, y, rng))


def _upper_end(parameters: NeuralLoFiParameters) -> bool:
    """Return True if the direction of a single-index target is at the upper end of the spectrum."""
    return bool(label_law(parameters).strengths[0] >= 0)


def _single(parameters: NeuralLoFiParameters, sample: _Sample) -> Metrics:
    """Leading eigenpair at the end of the spectrum with the direction, and both edges of the bulk."""
    target, X, y, rng = sample
    T = label_weights(y, parameters.label_map)
    # The operator is (1/n) sum T (x x^T - I); adding the mean of T gives (1/n) sum T x x^T (lofi 1).
    operator = MomentOperator(X, T, HermiteFeatures(1, X.shape[1]))
    pairs = leading_eigenpairs(operator, 2, 2, rng=rng, route="dense")
    values = pairs.values + T.mean()
    first, second, other = (0, 1, 3) if _upper_end(parameters) else (3, 2, 0)
    overlap = float((target.direction @ pairs.vectors[:, first]) ** 2)
    return {
        "eigenvalue": float(values[first]),
        "bulk_edge": float(values[second]),
        "opposite_edge": float(values[other]),
        "squared_overlap": [overlap],
        "subspace_overlap": overlap,
    }


def _lifted(parameters: NeuralLoFiParameters, sample: _Sample) -> Metrics:
    """Metrics of a filter after an infinitely wide lift: eigenvalues times n, and overlaps."""
    target, X, y, rng = sample
    from scipy.linalg import eigh

    sign = 1.0 if _upper_end(parameters) else -1.0
    T = sign * label_weights(y, parameters.label_map)
    inner = X @ X.T / np.mean(np.sum(X**2, axis=1))
    power = np.diag(inner).copy()
    factor = factorise_kernel(dual_kernel(parameters.lift, inner, power, power))
    # The activation's constant gives the largest eigenvalue, which carries no signal of an even label.
    published = parameters.features == "as-published"
    skipped = int(published and activation_energies(parameters.lift)[0] > 1e-9)
    R = factor.rows if published else factor.rows - factor.rows.mean(axis=0)
    deflated = parameters.features == "deflated"
    rows = _without_first_moment(R, T) if deflated else R
    matrix = rows.T @ (T[:, None] * rows)
    size = len(matrix)
    values, B = eigh(matrix, subset_by_index=(size - 2 - skipped, size - 1))
    linear = X[factor.landmarks].T @ factor.dual(B[:, 1])
    overlap = float((target.direction @ linear) ** 2 / (linear @ linear))
    # The linear part of sum_mu T_mu k(x_mu, x) is x . sum_mu T_mu x_mu, up to a factor (lofi 17).
    first = X.T @ (T - (0.0 if published else T.mean()))
    nulls = []
    for _ in range(SHUFFLES):
        shuffled = rng.permutation(T)
        nulls.append(
            _largest_modulus(_without_first_moment(R, shuffled) if deflated else R, shuffled)
        )
    return {
        "eigenvalue": float(sign * values[1]),
        "bulk_edge": float(sign * values[0]),
        "squared_overlap": [overlap],
        "subspace_overlap": overlap,
        "null_eigenvalue": float(np.mean(nulls)),
        "first_moment_overlap": float((target.direction @ first) ** 2 / (first @ first)),
    }


def _without_first_moment(R: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Project the first moment (1/n) sum T z out of the features."""
    first = R.T @ T
    return np.asarray(R - np.outer(R @ first, first) / (first @ first))


def _largest_modulus(R: np.ndarray, T: np.ndarray) -> float:
    """Largest modulus of an eigenvalue of sum_mu T_mu z_mu z_mu^T."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    size = R.shape[1]
    operator = LinearOperator(
        (size, size), matvec=lambda v: R.T @ (T * (R @ v.ravel())), dtype=float
    )
    values = eigsh(operator, 1, which="LM", v0=np.ones(size), tol=1e-4, return_eigenvectors=False)
    return float(np.abs(values[0]))


def _hidden(parameters: NeuralLoFiParameters, sample: _Sample) -> Metrics:
    """Overlaps of the second moment's best eigenvector, with and without the strong directions."""
    target, X, y, _ = sample
    T = label_weights(y, parameters.label_map)
    _, strong = np.linalg.eigh(X.T @ X)
    rest = strong[:, : X.shape[1] - parameters.nuisance]
    raw, deflated = _best(X, T, target.direction), _best(X @ rest, T, rest.T @ target.direction)
    return {
        "best_squared_overlap": raw[0],
        "best_rank": raw[1],
        "deflated_squared_overlap": deflated[0],
        "deflated_rank": deflated[1],
    }


def _best(X: np.ndarray, T: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """Largest squared overlap of any eigenvector, and number of eigenvalues with larger modulus."""
    values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / len(X))
    # With fewer samples than inputs, leave out the arbitrary eigenvectors of the eigenvalue 0.
    kernel = np.abs(values) <= 1e-9 * np.abs(values).max()
    squared = np.where(kernel, 0.0, (direction @ vectors) ** 2)
    best = int(np.argmax(squared))
    return float(squared[best]), float(np.sum(np.abs(values) > abs(values[best])))


def _subspace(parameters: NeuralLoFiParameters, sample: _Sample) -> Metrics:
    """Overlaps with the true subspace, and test errors of filtered and unfiltered networks."""
    target, X, y, rng = sample
    k = target.directions.shape[1]
    operator = MomentOperator(X, y, HermiteFeatures(1, X.shape[1]))
    pairs = leading_eigenpairs(operator, k, k, rng=rng, route="dense")
    # Rank eigenvalues by modulus, because both signs contain signal (lofi 1).
    kept = np.argsort(-np.abs(pairs.values + y.mean()))[:k]
    squared = np.sum((target.directions.T @ pairs.vectors[:, kept]) ** 2, axis=1)
    upper = np.sum((target.directions.T @ pairs.vectors[:, :k]) ** 2, axis=1)
    return {
        "squared_overlap": squared.tolist(),
        "subspace_overlap": float(squared.mean()),
        "upper_subspace_overlap": float(upper.mean()),
        **_errors(parameters, sample),
    }


def _errors(parameters: NeuralLoFiParameters, sample: _Sample) -> Metrics:
    """Test errors of NNGP networks, and of a network with one filter and one infinitely wide layer."""
    target, X, y, rng = sample
    X_test, y_test = target.sample(parameters.test_samples, rng)
    if parameters.samples > parameters.kernel_samples:
        return {}
    networks = {
        "error": [Block(reduce=target.directions.shape[1], width=math.inf)],
        "kernel_error": network_blocks(1),
        "deep_kernel_error": network_blocks(3),
    }
    errors: Metrics = {}
    for name, blocks in networks.items():
        model = NeuralLoFiClassifier(blocks, scaling="none", random_state=0).fit(X, y)
        errors[name] = float(np.mean(model.predict(X_test) != y_test))
    return errors
