"""Measure one replicate of the hierarchical model: draw data, find directions, fit, score the fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from solvable.arrays import Array, as_on, as_source, to_numpy
from solvable.fitting.devices import on_device
from solvable.frame.points import Metrics
from solvable.models.multi_index.hierarchical.learner import first_layer_directions
from solvable.models.multi_index.hierarchical.parameters import NEURONS, HierarchicalParameters
from solvable.models.multi_index.informed import informed_overlaps
from solvable.models.multi_index.learner import MultiIndexRegressor
from solvable.models.multi_index.overlaps import mapped_labels
from solvable.models.multi_index.readout import fit_readout
from solvable.models.multi_index.spectral import MARGIN, InputMoment, spectral_directions
from solvable.models.multi_index.target import draw_target
from solvable.operators.labels import apply_label_map


@dataclass(frozen=True)
class _Found:
    """Directions that one fit finds, and the predicted labels of fresh samples."""

    directions: np.ndarray  # orthonormal directions, (d, p)
    eigenvalues: np.ndarray  # leading eigenvalues, farthest from the bulk first, (p,)
    edges: tuple[float, float]
    predictions: np.ndarray | None


def measure(parameters: HierarchicalParameters, rng: np.random.Generator) -> Metrics:
    """Return the metrics measured in one replicate."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng)
    fresh, _ = target.sample(parameters.test_samples, rng)
    seed = int(rng.integers(2**31))
    X = on_device(X)
    fit = _optimal if parameters.label_map == "optimal" else _learned
    found = fit(parameters, X, y, fresh, seed)
    # Single eigenvectors mix several features. The overlap is therefore the squared projection of w_k
    # on the span of the p leading eigenvectors (multi-index 24).
    squared = np.sum((found.directions.T @ target.directions) ** 2, axis=0)
    a = np.array(target.channel.amplitudes)
    at_upper = found.eigenvalues[0] > np.mean(found.edges)
    metrics = _trained(parameters, X, y, target.directions, found, seed)
    risk = None
    if found.predictions is not None:
        risk = float(np.mean((found.predictions - target.clean(fresh)) ** 2))
    informed = None
    if parameters.message_passing:
        best = informed_overlaps(target.channel, to_numpy(X), y, target.directions, rng)
        informed = None if best is None else float(a**2 @ (1 - best))
    return {
        "squared_overlap": squared.tolist(),
        # weighted subspace error sum_k a_k² (1 - rho_k²)   (multi-index 23)
        "subspace_error": float(a**2 @ (1 - squared)),
        "message_passing_error": informed,
        "risk": risk,
        "eigenvalues": found.eigenvalues.tolist(),
        "bulk_edge": float(found.edges[int(at_upper)]),
        **metrics,
    }


def _trained(
    parameters: HierarchicalParameters,
    X: Array,
    y: np.ndarray,
    directions: np.ndarray,
    found: _Found,
    seed: int,
) -> Metrics:
    """Overlaps of the first layer of a trained network with features and with found outliers."""
    metrics: Metrics = {"gradient_overlap": None, "estimator_overlap": None}
    if not parameters.trained:
        return metrics
    layer = first_layer_directions(
        X,
        _label_weights(parameters, y),
        parameters.features,
        learning_rate=parameters.learning_rate,
        seed=seed,
    )
    if layer is None:
        return metrics
    metrics["gradient_overlap"] = np.sum((layer.T @ directions) ** 2, axis=0).tolist()
    # Directions inside the bulk are nearly degenerate and therefore not compared.
    low, high = found.edges
    margin = MARGIN * (high - low) / 2
    outliers = np.maximum(found.eigenvalues - high, low - found.eigenvalues) > margin
    if outliers.any():
        overlaps = np.sum((layer.T @ found.directions[:, outliers]) ** 2, axis=0)
        metrics["estimator_overlap"] = float(overlaps.mean())
    return metrics


def _label_weights(parameters: HierarchicalParameters, y: np.ndarray) -> np.ndarray:
    """Labels T(y) that weight the second moment; the channel's best map is not centred."""
    if parameters.label_map != "optimal":
        return apply_label_map(y, parameters.label_map)
    moments = parameters.channel.moments
    return np.interp(y, moments.labels, mapped_labels(moments, "optimal"))


def _learned(
    parameters: HierarchicalParameters, X: Array, y: np.ndarray, fresh: np.ndarray, seed: int
) -> _Found:
    """Return directions and predictions of the learner, which does not know the channel."""
    learner = MultiIndexRegressor(
        parameters.features,
        label_map=parameters.label_map,  # type: ignore[arg-type]  # never "optimal" here
        linear=False,
        readout=parameters.readout,
        n_neurons=NEURONS,
        regularisation=parameters.regularisation,
        deflation=parameters.deflation,
        whiten="none",
        n_permutations=1,
        random_state=seed,
    ).fit(X, y)
    predictions = None if parameters.readout == "none" else learner.predict(fresh)
    return _Found(learner.components_.T, learner.eigenvalues_, learner.edges_[0], predictions)


def _optimal(
    parameters: HierarchicalParameters, X: Array, y: np.ndarray, fresh: np.ndarray, seed: int
) -> _Found:
    """Return directions and predictions for the channel's best label map, which is not centred."""
    found = spectral_directions(
        partial(InputMoment, as_source(X)),
        _label_weights(parameters, y),
        parameters.features,
        n_permutations=1,
        seed=seed,
    )
    predictions = None
    if parameters.readout != "none":
        readout = fit_readout(
            [(to_numpy(X @ as_on(found.directions, X)), y)],
            parameters.features,
            parameters.readout,
            n_neurons=NEURONS,
            regularisation=parameters.regularisation,
            rng=np.random.default_rng(seed),
        )
        predictions = readout(fresh @ found.directions)
    return _Found(found.directions, found.eigenvalues, found.edges, predictions)
