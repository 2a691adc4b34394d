"""Measure one replicate of a compositional target: draw, fit, score each layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.compositional.gradient_descent import gradient_descent
from solvable.models.compositional.latent_layers import (
    form_overlap,
    later_overlaps,
    transported,
)
from solvable.models.compositional.later_steps import fresh_rows
from solvable.models.compositional.neural_lofi import neural_lofi
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.target import CompositionalTarget
from solvable.models.compositional.two_layers import rivals
from solvable.models.compositional.upper_layers import (
    draw_target,
    rotated_basis,
    rotated_directions,
)
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor

MEMORY_BYTES = 1.5e9
"""Size in bytes above which the samples are not stored but regenerated from their seed in each pass."""


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
    X, y = _samples(target, rows, rng)
    X_test, y_test = target.sample(parameters.test_samples, rng, dtype=np.float32)
    if parameters.learner != "spectral":
        train, test = (X[: parameters.samples], y[: parameters.samples]), (X_test, y_test)
        if parameters.learner == "neural-lofi":
            found = neural_lofi(parameters, target, train, test)
        else:
            found = gradient_descent(parameters, target, train, test, rng)
        others = rivals(parameters, (X, y), test, int(rng.integers(2**31)))
        return {**dict.fromkeys(SPECTRAL), **found, **others}
    learner = _fit(parameters, X, y, fresh, int(rng.integers(2**31)))
    error = np.mean((learner.predict(X_test) - y_test) ** 2) / y_test.var()
    last = np.linalg.eigvalsh(learner.second_layer_.quadratic)[::-1]
    return {
        **_score_layers(parameters, target, learner),
        "last_layer_eigenvalues": last.tolist(),
        "normalised_mse": float(error),
        **rivals(parameters, (X, y), (X_test, y_test), int(rng.integers(2**31))),
    }


def _samples(
    target: CompositionalTarget, rows: int, rng: np.random.Generator
) -> tuple[Any, np.ndarray]:
    if rows * target.input_columns * 4 > MEMORY_BYTES:
        return target.source(rows, int(rng.integers(2**31)), dtype=np.float32)
    return target.sample(rows, rng, dtype=np.float32)


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
