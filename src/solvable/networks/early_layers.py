"""Compare the first gradient steps of both hidden layers of a network with the filter of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_integer, check_positive, is_integer, random_stream
from solvable.errors import InvalidParameter
from solvable.fitting.gradient_descent import Weights, checked_steps, descend, full_batch
from solvable.networks.early_gradient import (
    checked_samples,
    filter_span,
    leading_vectors,
    limit_of_first_step,
    mean_overlap,
)
from solvable.operators.activations import derivative, dual_kernel, evaluate, kernel_diagonal
from solvable.operators.kernel_factor import factorise_kernel


@dataclass(frozen=True)
class LayerAlignment:
    """Overlaps of the changes of both hidden layers with filters; arrays of shape (2, steps)."""

    steps: np.ndarray  # shape (steps,)
    filter_overlap: np.ndarray  # with the filter of the representation below the layer
    principal_overlap: np.ndarray  # with principal components of this representation
    relative_change: np.ndarray  # |W(t) - W(0)| / |W(0)|


@dataclass(frozen=True)
class _TwoHiddenLayers:
    """Network eps sum_j a_j sigma(w2_j . z), z = scale sigma(W1^T x), in the limit of small eps."""

    activation: str
    signs: np.ndarray  # output weights a_j = +-1, shape (p,)
    scale: float  # makes the mean squared norm of z equal to 1

    def representation(self, W: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the outputs z of the first hidden layer, shape (n, p)."""
        return np.asarray(evaluate(self.activation, X @ W) * X.dtype.type(self.scale))

    def gradient(self, weights: Weights, X: np.ndarray, y: np.ndarray) -> Weights:
        """Gradients of both layers; learning rates absorb constant factors."""
        W1, W2 = weights
        z = self.representation(W1, X)
        # with a small output the residual is y:
        # dL/dw2_j = -a_j (1/n) sum y sigma'(h2_j) z
        gate = derivative(self.activation, z @ W2) * (y[:, None] / len(y)) * self.signs
        # dL/dw1_i = -(1/n) sum y b_i sigma'(h1_i) x, b_i = (1/sqrt(p)) sum_j a_j w2_ij sigma'(h2_j)
        back = gate @ W2.T / X.dtype.type(np.sqrt(W2.shape[1]))
        return -X.T @ (back * derivative(self.activation, X @ W1)), -z.T @ gate


def layer_alignment(
    X: np.ndarray,
    y: np.ndarray,
    *,
    width: int = 1_000,
    activation: str = "relu",
    steps: int | Sequence[int] = 1,
    step_size: float = 1.0,
    n_directions: int = 11,
    seed: int = 0,
) -> LayerAlignment:
    """Train both hidden layers together, and compare their changes with the filter of each layer.

    The filter of a layer acts on the representation below it, at the weights before the last step: the
    inputs for the first layer, and the outputs of the first layer for the second (lofi 38).
    """
    inputs, labels = checked_samples(X, y)
    wanted = checked_steps(steps)
    check_positive(step_size=step_size)
    check_integer("width", width, 1)
    most = min(inputs.shape[1], width)
    if not is_integer(n_directions, 1, most):
        raise InvalidParameter(
            f"n_directions is {n_directions!r}; allowed: an integer from 1 to {most}, the smaller of "
            "the input dimension and the width."
        )
    rng, kind = random_stream(seed, "early layers"), inputs.dtype
    initial = tuple(
        rng.standard_normal((fan_in, width)).astype(kind) for fan_in in (inputs.shape[1], width)
    )
    signs = rng.choice(np.array([-1, 1], dtype=kind), width)
    power = float(kernel_diagonal(activation, np.ones(1))[0])  # E sigma(xi)²
    network = _TwoHiddenLayers(activation, signs, 1 / np.sqrt(width * power))
    states = descend(
        network.gradient,
        initial,
        full_batch(inputs, labels),
        learning_rate=step_size,
        at=sorted({*wanted, *(step - 1 for step in wanted)}),
    )
    rows, before = [], initial
    for state in states:
        if state.step in wanted:
            below = inputs, network.representation(before[0], inputs)
            rows.append(
                [
                    (
                        *_overlaps(after - start, part, labels, n_directions),
                        float(np.linalg.norm(after - start) / np.linalg.norm(start)),
                    )
                    for after, start, part in zip(state.weights, initial, below, strict=True)
                ]
            )
        before = state.weights
    table = np.array(rows).transpose(2, 1, 0)  # (quantity, layer, step)
    return LayerAlignment(np.array(wanted), *table)


def _overlaps(
    change: np.ndarray, below: np.ndarray, labels: np.ndarray, count: int
) -> tuple[float, float]:
    """Overlaps of the leading directions of a change with the filter and with principal components."""
    change, below = change.astype(np.float64), below.astype(np.float64)
    below = below / np.sqrt(np.mean(np.sum(below**2, axis=1)))
    leading = leading_vectors(change @ change.T, count)
    span = filter_span(below, labels, count)[0]
    return mean_overlap(span, leading), mean_overlap(
        leading_vectors(below.T @ below, count), leading
    )


def limit_of_first_layers(X: np.ndarray, y: np.ndarray, *, n_directions: int = 11) -> np.ndarray:
    """First step of infinitely wide ReLU layers: rows are layers; overlaps with filter and components."""
    inputs, labels = checked_samples(X, y)
    inner = inputs @ inputs.T
    norms = np.diag(inner)
    kernel = 2 * dual_kernel("relu", inner, norms, norms)  # z . z' for a mean squared norm of 1
    gates = [dual_kernel("step", gram, np.diag(gram), np.diag(gram)) for gram in (inner, kernel)]
    # dW1 dW1^T / p -> (1/n²) sum y_m y_n kappa'(x_m, x_n) kappa'(z_m, z_n) x_m x_n^T   (lofi 38)
    weighted = inputs * labels[:, None]
    leading = leading_vectors(weighted.T @ (gates[0] * gates[1]) @ weighted, n_directions)
    first = [
        mean_overlap(filter_span(inputs, labels, n_directions)[0], leading),
        mean_overlap(leading_vectors(inputs.T @ inputs, n_directions), leading),
    ]
    # The second layer is a two-layer network of the inputs z (lofi 35). Overlaps depend on z through its
    # Gram matrix alone, which the rows of its Cholesky factor share.
    z = factorise_kernel(kernel).rows
    return np.array([first, limit_of_first_step(z, labels, n_directions=n_directions)])
