"""Learners of two layers on compositional targets: a quadratic network, and random features."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from solvable.arrays import as_source
from solvable.fitting.kernel_errors import kernel_errors
from solvable.frame.points import Metrics
from solvable.models.compositional.later_steps import fresh_rows
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor
from solvable.networks.blocks import network_blocks
from solvable.networks.lofi import NeuralLoFiRegressor

RANDOM_FEATURES = 1_000
"""Width of the network of random features."""

KERNEL_TEST_ROWS = 5_000
"""Largest number of test samples for kernels, whose predictions are slow."""


def two_layers_fit(parameters: CompositionalParameters) -> bool:
    """Return True if there are enough rows for a quadratic form of all inputs, and few enough inputs."""
    forms = comb(parameters.dimension + 1, 2)
    return parameters.degree > 1 and 4 * forms <= fresh_rows(parameters) and forms <= 2_000


def rivals(
    parameters: CompositionalParameters,
    train: tuple[Any, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    seed: int,
) -> Metrics:
    """Errors of learners without an intermediate representation, on the learner's samples."""
    X, y = train
    rows = parameters.samples
    wanted = parameters.dimension >= parameters.kernel_dimension
    largest = parameters.kernel_samples if wanted else 0

    def first_rows() -> np.ndarray:
        return next(block for _, block in as_source(X).chunks(rows))

    some = test[0][:KERNEL_TEST_ROWS], test[1][:KERNEL_TEST_ROWS]
    kernels = kernel_errors(
        first_rows, y[:rows], some, degree=parameters.label_degree, largest=largest
    )
    error = None
    if rows <= largest:
        network = NeuralLoFiRegressor(
            network_blocks(1, width=RANDOM_FEATURES), scaling="none", random_state=seed
        )
        error = _error(network.fit(first_rows(), y[:rows]), test)
    return {
        **kernels,
        "random_features_normalised_mse": error,
        "two_layer_normalised_mse": _two_layer_error(parameters, train, test),
    }


def _two_layer_error(
    parameters: CompositionalParameters,
    train: tuple[Any, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
) -> float | None:
    """Error of the learner without its first representation: spectral directions of the inputs."""
    if not two_layers_fit(parameters):
        return None
    # All d directions are kept, so that the last layer is the best quadratic form of the inputs.
    learner = LayerwiseSpectralRegressor(
        degree=1,
        n_directions=parameters.dimension,
        label_map=parameters.label_map,
        correction="none",
        cross_terms=True,
        readout="none" if parameters.readout == "identity" else "spline",
        held_back=fresh_rows(parameters),
        shuffle=False,
        selection="forced",
        random_state=0,
    )
    return _error(learner.fit(*train), test)


def _error(model: Any, test: tuple[np.ndarray, np.ndarray]) -> float:
    return float(np.mean((model.predict(test[0]) - test[1]) ** 2) / test[1].var())


def predicted_two_layer_error(
    parameters: CompositionalParameters, *, share: float, noise_ratio: float
) -> float | None:
    """Predicted error of the best quadratic form of the inputs, fitted by least squares."""
    if not two_layers_fit(parameters) or parameters.readout != "identity":
        return None
    # error (1 - s_2) (1 + rho D_2 / (n - D_2))   (compositional 18)
    forms, rows = comb(parameters.dimension + 1, 2), fresh_rows(parameters)
    return float((1 - share) * (1 + noise_ratio * forms / (rows - forms)))
