"""Gradient descent on a two-layer network, on compositional targets whose first features are linear."""

from __future__ import annotations

import numpy as np

from solvable.fitting.gradient_descent import descend, full_batch
from solvable.frame.points import Metrics
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import (
    SharedUpperLayers,
    rotated_basis,
    rotated_directions,
)
from solvable.networks.two_layer import TwoLayerNetwork
from solvable.operators import standardise

WIDTH = 400
"""Number of ReLU neurons."""

STEPS = 100
"""Steps of gradient descent; twenty steps find most of the features."""

LEARNING_RATE = 0.5
"""Learning rate, in units of the width. At 1 some runs diverge."""


def gradient_descent(
    parameters: CompositionalParameters,
    target: SharedUpperLayers,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
) -> Metrics:
    """Overlaps of the leading directions of the first layer with the features, and the test error."""
    X, (labels, mean, scale) = train[0], standardise(train[1])
    network = TwoLayerNetwork("relu", 1 / WIDTH, train_outputs=True)
    initial = rng.standard_normal((X.shape[1], WIDTH)) / np.sqrt(X.shape[1])
    start = initial.astype(X.dtype), rng.choice(np.array([-1, 1], dtype=X.dtype), WIDTH)
    batches = full_batch(X, labels.astype(X.dtype))
    (last,) = descend(network.gradient, start, batches, learning_rate=LEARNING_RATE, at=[STEPS])
    W, a = last.weights
    # Each neuron's change counts with its output weight.
    learned = np.linalg.svd((W - start[0]) * a, full_matrices=False)[0][:, : target.widths[0]]
    truth = rotated_directions(target, rotated_basis(parameters))
    overlap = np.sum((learned.T @ truth) ** 2, axis=0)
    predicted = mean + scale * network.outputs(last.weights, test[0])
    return {
        "squared_overlap": overlap.tolist(),
        "subspace_overlap": float(overlap.mean()),
        "normalised_mse": float(np.mean((predicted - test[1]) ** 2) / test[1].var()),
    }
