"""Neural LoFi networks on compositional targets: lifts of squares, with a filter between two lifts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import (
    SharedUpperLayers,
    rotated_basis,
    rotated_directions,
)
from solvable.networks.blocks import Block
from solvable.networks.lofi import NeuralLoFiRegressor

KEPT = 20
"""Smallest number of directions that a filter keeps. The strongest are noise along the norm of x."""


def neural_lofi(
    parameters: CompositionalParameters,
    target: SharedUpperLayers,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
) -> Metrics:
    """Overlaps of the kept coordinates with the first representation, and the test error."""
    kept = [max(KEPT, width) for width in parameters.widths]
    lifts = [Block(None, math.inf, "square")]
    filters = [Block(k, math.inf, "square", centre_features=True) for k in kept]
    model = NeuralLoFiRegressor(
        [*lifts, *filters], scaling="none", label_map="tanh", random_state=0
    ).fit(*train)
    error = np.mean((model.predict(test[0]) - test[1]) ** 2) / test[1].var()
    overlap = explained(
        first_coordinates(model, test[0]),
        target.feature_map.project(
            test[0], rotated_directions(target, rotated_basis(parameters)).astype(test[0].dtype)
        ),
    )
    return {
        "squared_overlap": overlap.tolist(),
        "subspace_overlap": float(overlap.mean()),
        "normalised_mse": float(error),
    }


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
