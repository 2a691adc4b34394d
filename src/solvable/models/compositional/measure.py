"""Measure one replicate of a compositional target: draw, fit, score each layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.fitting.gradient_descent import descend, full_batch
from solvable.frame.points import Metrics
from solvable.models.compositional.latent_layers import form_overlap, later_overlaps, transported
from solvable.models.compositional.later_steps import fresh_rows
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.target import CompositionalTarget
from solvable.models.compositional.two_layers import rivals
from solvable.models.compositional.upper_layers import (
    SharedUpperLayers,
    draw_target,
    rotated_basis,
    rotated_directions,
)
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor
from solvable.models.sequential.target import draw_samples
from solvable.networks.blocks import Block
from solvable.networks.lofi import NeuralLoFiRegressor
from solvable.networks.two_layer import TwoLayerNetwork
from solvable.operators import standardise

SPECTRAL = (
    "inner_squared_overlap", "first_step_inner_overlap", "eigenvalues", "detected_features",
    "last_layer_eigenvalues",
)  # fmt: skip
"""Metrics of spectral steps, None for other learners."""


def measure(parameters: CompositionalParameters, rng: np.random.Generator) -> Metrics:
    """Measured metrics of one replicate: overlaps in each layer, last layer, and errors."""
    target = draw_target(parameters, rng)
    parameters = parameters.equivalent
    fresh = fresh_rows(parameters)
    rows = parameters.samples + fresh * len(parameters.widths)
    X, y = draw_samples(target, rows, rng)
    X_test, y_test = target.sample(parameters.test_samples, rng, dtype=np.float32)
    if parameters.learner != "spectral":
        train, test = (X[: parameters.samples], y[: parameters.samples]), (X_test, y_test)
        truth = rotated_directions(target, rotated_basis(parameters))
        if parameters.learner == "neural-lofi":
            overlap, predicted = neural_lofi(parameters, target, truth, train, X_test)
        else:
            overlap, predicted = gradient_descent(truth, train, X_test, rng)
        return {
            **dict.fromkeys(SPECTRAL),
            "squared_overlap": overlap.tolist(),
            "subspace_overlap": float(overlap.mean()),
            "normalised_mse": float(np.mean((predicted - y_test) ** 2) / y_test.var()),
            **rivals(parameters, (X, y), test, int(rng.integers(2**31))),
        }
    learner = _fit(parameters, X, y, fresh, int(rng.integers(2**31)))
    error = np.mean((learner.predict(X_test) - y_test) ** 2) / y_test.var()
    last = np.linalg.eigvalsh(learner.second_layer_.quadratic)[::-1]
    return {
        **_score_layers(parameters, target, learner),
        "last_layer_eigenvalues": last.tolist(),
        "normalised_mse": float(error),
        **rivals(parameters, (X, y), (X_test, y_test), int(rng.integers(2**31))),
    }


def _fit(
    parameters: CompositionalParameters, X: Any, y: np.ndarray, fresh: int, seed: int
) -> LayerwiseSpectralRegressor:
    learner = LayerwiseSpectralRegressor(
        degree=parameters.degree,
        n_directions=parameters.widths,
        label_map=parameters.label_map,
        correction=parameters.correction,
        readout="none" if parameters.readout == "identity" else "spline",
        held_back=fresh,
        shuffle=False,
        selection="forced",
        random_state=seed,
    )
    return learner.fit(X, y)


def _score_layers(
    parameters: CompositionalParameters,
    target: CompositionalTarget,
    learner: LayerwiseSpectralRegressor,
) -> Metrics:
    """Overlaps between learned and true features of each layer."""
    from scipy.optimize import linear_sum_assignment

    basis = rotated_basis(parameters)
    alignment = learner.directions_.T @ rotated_directions(target, basis)
    squared = (alignment**2).T
    feature, vector = linear_sum_assignment(squared, maximize=True)
    eigenvalues = np.empty(target.widths[0])
    eigenvalues[feature] = learner.eigenvalues_[vector]
    lower, upper = learner.bulk_edges_
    outside = (learner.eigenvalues_ > upper) | (learner.eigenvalues_ < lower)
    return {
        "squared_overlap": squared.sum(axis=1).tolist(),
        # subspace overlap q_h = |A^T hat A|_F² / p   (compositional 6; arXiv:2605.14567, Equation A.2)
        "subspace_overlap": float(squared.sum() / target.widths[0]),
        **_score_later_layers(target, learner, alignment @ basis.rotation.T),
        "eigenvalues": eigenvalues.tolist(),
        "detected_features": float(np.sum(outside)),
    }


def _score_later_layers(
    target: CompositionalTarget, learner: LayerwiseSpectralRegressor, alignment: np.ndarray
) -> Metrics:
    """Squared overlaps of later features with their own step, and of the second with the first step."""
    if not target.hidden_layers:
        return {"inner_squared_overlap": None, "first_step_inner_overlap": None}
    directions = [layer.directions for layer in learner.layers_[1:]]
    own = later_overlaps(target.hidden_layers, directions, alignment)
    truth = transported(target.hidden_layers[0], alignment)
    first = form_overlap(truth, np.diag(learner.eigenvalues_))
    return {"inner_squared_overlap": own.tolist(), "first_step_inner_overlap": first.tolist()}


WIDTH = 400
"""Number of ReLU neurons."""

STEPS = 100
"""Steps of gradient descent; twenty steps find most of the features."""

LEARNING_RATE = 0.5
"""Learning rate, in units of the width. At 1 some runs diverge."""


def gradient_descent(
    truth: np.ndarray,
    train: tuple[np.ndarray, np.ndarray],
    X_test: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Overlaps of the leading directions of the first layer with the features, and predictions."""
    X, (labels, mean, scale) = train[0], standardise(train[1])
    network = TwoLayerNetwork("relu", 1 / WIDTH, train_outputs=True)
    initial = rng.standard_normal((X.shape[1], WIDTH)) / np.sqrt(X.shape[1])
    start = initial.astype(X.dtype), rng.choice(np.array([-1, 1], dtype=X.dtype), WIDTH)
    batches = full_batch(X, labels.astype(X.dtype))
    (last,) = descend(network.gradient, start, batches, learning_rate=LEARNING_RATE, at=[STEPS])
    W, a = last.weights
    # Each neuron's change counts with its output weight.
    learned = np.linalg.svd((W - start[0]) * a, full_matrices=False)[0][:, : truth.shape[1]]
    overlap = np.sum((learned.T @ truth) ** 2, axis=0)
    return overlap, mean + scale * network.outputs(last.weights, X_test)


KEPT = 20
"""Smallest number of directions that a filter keeps. The strongest are noise along the norm of x."""


def neural_lofi(
    parameters: CompositionalParameters,
    target: SharedUpperLayers,
    truth: np.ndarray,
    train: tuple[np.ndarray, np.ndarray],
    X_test: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Overlaps of the kept coordinates with the first representation, and predictions."""
    kept = [max(KEPT, width) for width in parameters.widths]
    lifts = [Block(None, math.inf, "square")]
    filters = [Block(k, math.inf, "square", centre_features=True) for k in kept]
    model = NeuralLoFiRegressor(
        [*lifts, *filters], scaling="none", label_map="tanh", random_state=0
    ).fit(*train)
    features = target.feature_map.project(X_test, truth.astype(X_test.dtype))
    return explained(first_coordinates(model, X_test), features), model.predict(X_test)


def first_coordinates(model: NeuralLoFiRegressor, X: np.ndarray) -> np.ndarray:
    """Coordinates that the first filter keeps."""
    h: Any = X
    for layer in model.network_.layers:
        h = layer.apply(h)
        if "filter" in layer.kind:
            break
    return np.asarray(h)


def explained(coordinates: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Fraction of the variance of each feature that a linear function of the coordinates explains."""
    H = np.column_stack([np.ones(len(coordinates)), coordinates])
    residual = features - H @ np.linalg.lstsq(H, features, rcond=None)[0]
    # Features have covariance I, so that the fraction is |P A_i|² with P the projection on the kept span.
    # The last factor removes the fit's own gain, as in the adjusted coefficient of determination.
    lost = residual.var(axis=0) / features.var(axis=0) * len(H) / (len(H) - H.shape[1])
    return np.asarray(1 - lost)
