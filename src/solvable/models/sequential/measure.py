"""Measure one replicate of sequential feature recovery: draw, fit, score."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np

from solvable.arrays import ArraySource, Source
from solvable.fitting.devices import on_device
from solvable.fitting.kernel_errors import kernel_errors
from solvable.fitting.random_features import random_feature_error
from solvable.frame.points import Metrics
from solvable.models.sequential.errors import fresh_rows
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor
from solvable.models.sequential.kernel_head import HEAD_ROWS, kernel_head
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.target import HierarchicalTarget, draw_samples, make_target
from solvable.operators import MomentOperator
from solvable.spectra.lanczos import lanczos_quadrature

MOST_DENSE = 2_000
"""Largest number D of features for which the operator is formed, which takes seconds and 32 MB."""

KERNEL_TEST_ROWS = 5_000
"""Largest number of test rows for kernels; few suffice, as errors differ little between rows."""


class _Learner(LayerwiseSpectralRegressor):
    """Learner that keeps its moment operator, so that its matrix is formed once for all uses."""

    operator_: MomentOperator

    def _seen(self, operator: MomentOperator) -> None:
        if operator.shape[0] <= MOST_DENSE:
            operator.dense = cache(operator.dense)  # type: ignore[method-assign]
        self.operator_ = operator


def draw_target(parameters: SequentialParameters, rng: np.random.Generator) -> HierarchicalTarget:
    """Target of one replicate, drawn from the stream before anything else."""
    return make_target(parameters, int(rng.integers(2**31)))


def teacher(parameters: SequentialParameters, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights and directions of the target that :func:`measure` draws from the same stream."""
    target = draw_target(parameters, rng)
    return {"weights": target.weights, "directions": target.directions}


def measure(parameters: SequentialParameters, rng: np.random.Generator) -> Metrics:
    """Measured metrics of one replicate: overlaps, errors and, on request, spectrum and kernels."""
    target = draw_target(parameters, rng)
    fresh = fresh_rows(parameters.samples)
    X, y = draw_samples(target, parameters.samples + fresh, rng)
    X_test, y_test = target.sample(parameters.test_samples, rng, dtype=np.float32)
    learner = _fit(parameters, X, y, fresh, int(rng.integers(2**31)))
    predicted = learner.predict(X_test)
    if parameters.second_layer == "kernel-ridge":
        X_head, y_head = target.sample(HEAD_ROWS, rng, dtype=np.float32)
        predicted = kernel_head(learner.transform(X_head), y_head, learner.transform(X_test))
    error = np.mean((predicted - y_test) ** 2) / y_test.var()
    return {
        **score_directions(target, learner),
        "normalised_mse": float(error),
        "label_variance": float(y_test.var()),
        **_spectrum(parameters, target, learner, rng),
        **_kernels(parameters, X, y, (X_test[:KERNEL_TEST_ROWS], y_test[:KERNEL_TEST_ROWS])),
    }


def _fit(
    parameters: SequentialParameters, X: Any, y: np.ndarray, fresh: int, seed: int
) -> _Learner:
    # A readout is not needed if the index already has the units of the label, that is, for least squares
    # and for labels without a map.
    fitted = _fitted_layer(parameters) == "least-squares" or parameters.label_map == "identity"
    in_units = parameters.readout == "identity" and fitted
    learner = _Learner(
        degree=parameters.degree if parameters.inputs == "hermite" else 1,
        n_directions=parameters.feature_count,
        label_map=parameters.label_map,
        correction=parameters.correction,
        second_layer=_fitted_layer(parameters),
        readout="none" if in_units else "spline",
        held_back=fresh,
        shuffle=False,
        selection="modulus" if parameters.selection == "modulus" else "forced",
        solver="power-iteration" if parameters.solver == "power-iteration" else "auto",
        random_state=seed,
    )
    learner.fit(on_device(X), y)
    return learner


def _fitted_layer(
    parameters: SequentialParameters,
) -> Literal["least-squares", "in-sample", "shrinkage"]:
    """Second layer of the learner; a kernel head replaces its output by its own."""
    layer = parameters.second_layer
    return "least-squares" if layer == "kernel-ridge" else layer


def score_directions(target: HierarchicalTarget, learner: LayerwiseSpectralRegressor) -> Metrics:
    """Overlaps between learned and true directions, and the eigenvalue matched to each feature."""
    from scipy.optimize import linear_sum_assignment

    truth = target.directions / np.linalg.norm(target.directions, axis=0)
    squared = (truth.T @ learner.directions_) ** 2
    feature, vector = linear_sum_assignment(squared, maximize=True)
    order = np.full(target.features, -1)
    order[feature] = vector
    eigenvalues = [float(learner.eigenvalues_[k]) if k >= 0 else None for k in order]
    # Of each matched eigenvector, the part outside the span of the features and the part along others
    span = np.linalg.qr(target.directions)[0]
    outside = 1 - np.sum((span.T @ learner.directions_) ** 2, axis=0)
    mixing = [
        float((squared[i, after] + squared[i + 1, before]) / 2) if min(before, after) >= 0 else None
        for i, (before, after) in enumerate(pairwise(order))
    ]
    lower, upper = learner.bulk_edges_
    values = learner.eigenvalues_
    return {
        "squared_overlap": squared.sum(axis=1).tolist(),
        "mean_squared_overlap": float(squared.sum() / target.features),
        "eigenvalues": eigenvalues,
        "detection_edges": [float(lower), float(upper)],
        "detected_features": float(np.sum((values > upper) | (values < lower))),
        "neighbour_mixing": mixing,
        "loss_outside_span": [float(outside[k]) if k >= 0 else None for k in order],
        "loss_inside_span": [
            float(1 - outside[k] - squared[i, k]) if k >= 0 else None for i, k in enumerate(order)
        ],
    }


def _spectrum(
    parameters: SequentialParameters,
    target: HierarchicalTarget,
    learner: _Learner,
    rng: np.random.Generator,
) -> Metrics:
    """Eigenvalues of the moment operator, and bulk edges with the true directions projected out."""
    if parameters.samples > parameters.spectrum_samples:
        return {"spectrum": None, "bulk_edges": None}
    operator, learned = learner.operator_, learner.eigenvalues_
    features = np.linalg.qr(target.directions)[0]
    if target.n_features_total > MOST_DENSE:
        # At D = 9,870 two starts estimate the cumulative distribution within 0.005, and 40 steps find a
        # square-root edge within (pi / 40)² / 2 = 0.3 % of the half-width.
        starts = rng.standard_normal((target.n_features_total, 2))
        quadrature = lanczos_quadrature(operator.matmat, starts, steps=40, outside=features)
        free = target.n_features_total - target.features
        bulk = quadrature.quantiles((np.arange(free) + 0.5) / free)
        edges = quadrature.nodes.min(), quadrature.nodes.max()
        spectrum = np.sort(np.concatenate([bulk, learned]))
    else:
        matrix = operator.dense()
        images = matrix @ features
        # The bulk is the spectrum of (1 - A A^T) C (1 - A A^T), which projects out the true directions A.
        rest = matrix - images @ features.T - features @ images.T
        rest += features @ (features.T @ images) @ features.T
        bulk = np.linalg.eigvalsh(rest)
        edges = bulk[0], bulk[-1]
        spectrum = np.linalg.eigvalsh(matrix)
    return {"spectrum": spectrum.tolist(), "bulk_edges": [float(edge) for edge in edges]}


def _head(X: Any, rows: int) -> Source:
    """First rows of the samples, as a view of an array or as a shorter regenerated source."""
    if isinstance(X, np.ndarray):
        return ArraySource(X[:rows])
    return cast("Source", replace(X, n_samples=rows))


def _kernels(
    parameters: SequentialParameters, X: Any, y: np.ndarray, test: tuple[np.ndarray, np.ndarray]
) -> Metrics:
    """Errors of polynomial and RBF kernel ridge regression on the rows of the spectral step."""
    rows = parameters.samples

    def train() -> np.ndarray:
        return np.asarray(next(block for _, block in _head(X, rows).chunks(rows)))

    errors = kernel_errors(
        train, y[:rows], test, degree=2 * parameters.degree, largest=parameters.kernel_samples
    )
    features = None
    if rows <= parameters.kernel_samples:
        features = random_feature_error(train(), y[:rows], test, degree=2 * parameters.degree)
    return cast("Metrics", {**errors, "random_features_normalised_mse": features})
