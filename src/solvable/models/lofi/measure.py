"""One replicate of a filter on Gaussian inputs: draw, filter, score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.lofi.subspace_channel import SubspaceChannel
from solvable.models.lofi.target import GaussianChannel, label_weights
from solvable.operators import HermiteFeatures, MomentOperator, leading_eigenpairs

if TYPE_CHECKING:
    from solvable.models.lofi.system import NeuralLoFiParameters

METRICS = (
    "eigenvalue",
    "bulk_edge",
    "opposite_edge",
    "squared_overlap",
    "subspace_overlap",
    "upper_subspace_overlap",
    "best_squared_overlap",
    "best_rank",
    "deflated_squared_overlap",
    "deflated_rank",
    "error",
    "kernel_error",
    "deep_kernel_error",
)
"""Everything that a replicate may measure; None where a target has no such thing."""

KERNEL_DEPTHS = {"kernel_error": 1, "deep_kernel_error": 3}
"""Layers of the unfiltered infinitely wide networks."""


def make_target(parameters: NeuralLoFiParameters, seed: int) -> GaussianChannel | SubspaceChannel:
    """Target of a seed."""
    if parameters.target == "subspace":
        return SubspaceChannel(parameters.n_inputs, seed=seed)
    hidden = parameters.target == "hidden"
    return GaussianChannel(
        parameters.n_inputs,
        parameters.channel,
        parameters.noise,
        parameters.nuisance if hidden else 0,
        parameters.nuisance_variance if hidden else 1.0,
        seed,
    )


def draw_target(
    parameters: NeuralLoFiParameters, rng: np.random.Generator
) -> GaussianChannel | SubspaceChannel:
    """Target of one replicate, the first thing that is drawn."""
    return make_target(parameters, int(rng.integers(2**31)))


def measure(parameters: NeuralLoFiParameters, rng: np.random.Generator) -> Metrics:
    """Metrics of one replicate."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng)
    found: Metrics = dict.fromkeys(METRICS)
    if np.all(y == y[0]):
        # One class alone, as a very small sample may hold, says nothing about directions.
        return found
    if isinstance(target, SubspaceChannel):
        found.update(_subspace(parameters, target, X, y, rng))
    elif parameters.target == "hidden":
        found.update(_hidden(parameters, target, X, y))
    elif parameters.lift != "none":
        found.update(_lifted(parameters, target, X, y))
    else:
        found.update(_single(parameters, target, X, y, rng))
    return found


def upper_end(parameters: NeuralLoFiParameters) -> bool:
    """Whether the direction of a single-index target belongs to the upper end of the spectrum."""
    target = make_target(parameters, 0)
    assert isinstance(target, GaussianChannel)
    return bool(target.law(parameters.label_map).strengths[0] >= 0)


def _single(
    parameters: NeuralLoFiParameters,
    target: GaussianChannel,
    X: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
) -> Metrics:
    """Leading eigenpair at the end of the direction, and both edges of the bulk."""
    T = label_weights(y, parameters.label_map)
    operator = MomentOperator(X, T, HermiteFeatures(1, X.shape[1]))
    pairs = leading_eigenpairs(operator, 2, 2, rng=rng, route="dense")
    values = pairs.values + T.mean()
    first, second, other = (0, 1, 3) if upper_end(parameters) else (3, 2, 0)
    overlap = float((target.direction @ pairs.vectors[:, first]) ** 2)
    return {
        "eigenvalue": float(values[first]),
        "bulk_edge": float(values[second]),
        "opposite_edge": float(values[other]),
        "squared_overlap": [overlap],
        "subspace_overlap": overlap,
    }


def _lifted(
    parameters: NeuralLoFiParameters, target: GaussianChannel, X: np.ndarray, y: np.ndarray
) -> Metrics:
    """The same after an infinitely wide lift; eigenvalues times n, overlap of the linear part."""
    from scipy.linalg import eigh

    from solvable.models.lofi.lift import activation_energies
    from solvable.operators.activations import dual_kernel
    from solvable.operators.kernel_factor import factorise_kernel

    sign = 1.0 if upper_end(parameters) else -1.0
    T = sign * label_weights(y, parameters.label_map)
    inner = X @ X.T / np.mean(np.sum(X**2, axis=1))
    power = np.diag(inner).copy()
    factor = factorise_kernel(dual_kernel(parameters.lift, inner, power, power))
    # The constant of the activation makes the first eigenvalue, of no relevance to an even label.
    skipped = int(activation_energies(parameters.lift)[0] > 1e-9)
    matrix = factor.rows.T @ (T[:, None] * factor.rows)
    size = len(matrix)
    values, B = eigh(matrix, subset_by_index=(size - 2 - skipped, size - 1))
    linear = X[factor.landmarks].T @ factor.dual(B[:, 1])
    overlap = float((target.direction @ linear) ** 2 / (linear @ linear))
    return {
        "eigenvalue": float(sign * values[1]),
        "bulk_edge": float(sign * values[0]),
        "squared_overlap": [overlap],
        "subspace_overlap": overlap,
    }


def _hidden(
    parameters: NeuralLoFiParameters, target: GaussianChannel, X: np.ndarray, y: np.ndarray
) -> Metrics:
    """Best eigenvector of the raw moment, and of the moment without the strong directions."""
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
    """Largest squared overlap of an eigenvector, and how many have a larger modulus."""
    values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / len(X))
    squared = (direction @ vectors) ** 2
    best = int(np.argmax(squared))
    return float(squared[best]), float(np.sum(np.abs(values) > abs(values[best])))


def _subspace(
    parameters: NeuralLoFiParameters,
    target: SubspaceChannel,
    X: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
) -> Metrics:
    """Overlap with the true subspace, and errors of filtered and unfiltered networks."""
    k = target.directions.shape[1]
    operator = MomentOperator(X, y, HermiteFeatures(1, X.shape[1]))
    pairs = leading_eigenpairs(operator, k, k, rng=rng, route="dense")
    kept = np.argsort(-np.abs(pairs.values + y.mean()))[:k]
    squared = np.sum((target.directions.T @ pairs.vectors[:, kept]) ** 2, axis=1)
    upper = np.sum((target.directions.T @ pairs.vectors[:, :k]) ** 2, axis=1)
    return {
        "squared_overlap": squared.tolist(),
        "subspace_overlap": float(squared.mean()),
        "upper_subspace_overlap": float(upper.mean()),
        **_errors(parameters, target, X, y, rng),
    }


def _errors(
    parameters: NeuralLoFiParameters,
    target: SubspaceChannel,
    X: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
) -> Metrics:
    from solvable.networks.blocks import Block, network_blocks
    from solvable.networks.lofi import NeuralLoFiClassifier

    X_test, y_test = target.sample(parameters.test_samples, rng)
    if parameters.samples > parameters.kernel_samples:
        return {}
    filtered = Block(reduce=target.directions.shape[1], width=math.inf)
    networks = {"error": [filtered]}
    networks |= {name: network_blocks(depth) for name, depth in KERNEL_DEPTHS.items()}
    found: Metrics = {}
    for name, blocks in networks.items():
        model = NeuralLoFiClassifier(blocks, scaling="none", random_state=0).fit(X, y)
        found[name] = float(np.mean(model.predict(X_test) != y_test))
    return found
