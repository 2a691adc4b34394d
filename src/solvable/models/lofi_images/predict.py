"""Predictions from images without labels: Gram matrices at finite width, residual dimensions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Metrics
from solvable.models.lofi.lift import gram_deviation
from solvable.models.lofi_images.emerging import forecast_emerged
from solvable.models.lofi_images.images import (
    GRAM_SAMPLES,
    images,
    lifted_kernel,
    residual_dimensions,
)
from solvable.models.lofi_images.parameters import (
    ALIGNED_DIRECTIONS,
    LAYER_STEPS,
    TRAINED_STEPS,
    NeuralLoFiImagesParameters,
)
from solvable.networks.early_gradient import limit_of_first_step
from solvable.networks.early_layers import limit_of_first_layers
from solvable.spectra.sample_lattice import lattice_sizes

DRAWS = {("digits", 1): 16, ("digits", 2): 8, ("mnist-5k", 1): 4, ("mnist-5k", 2): 2}
"""Draws of images, by data and layers; a draw takes longer with two, whose kernels are matrices of all
images."""


def predict(parameters: NeuralLoFiImagesParameters) -> Metrics:
    """Predict the Gram matrix's deviation and the residual dimensions from a fixed draw of images."""
    X, _ = images(parameters.data)
    if parameters.patch or parameters.coupling != "none":
        return {}
    if not parameters.width:
        # Dimensions of draws at fixed numbers of images are interpolated, so that lines are smooth.
        data, lift, kept = parameters.data, parameters.activation, tuple(parameters.kept)
        sizes = lattice_sizes(parameters.samples, fewest=2 * max(kept))
        dimensions = np.sum(
            [
                size.weight * _dimensions(data, lift, kept, size.index, size.samples)
                for size in sizes
            ],
            axis=0,
        )
        found: Metrics = {
            "permuted_ratio": 1.0,
            "residual_dimensions": dimensions.tolist(),
            "emerged": forecast_emerged(data, parameters.task, lift, parameters.samples),
        }
        if parameters.task == "even-odd" and lift == "relu":
            sizes = lattice_sizes(parameters.samples, fewest=50)
            names = {"first_step_alignment": 1}
            if parameters.trains_two_layers:
                names["layers_first_step"] = 2
            for name, layers in names.items():
                found[name] = np.sum(
                    [
                        size.weight * _alignment(data, layers, size.index, size.samples)
                        for size in sizes
                    ],
                    axis=0,
                ).tolist()
        return found
    stream = random_stream(0, "images for predictions")
    chosen = X[stream.permutation(len(X))[: min(parameters.samples, GRAM_SAMPLES)]]
    kernel, _ = lifted_kernel(chosen, parameters.activation)
    # |G_P - G|_F / |G|_F falls as P^(-1/2)   (lofi 28)
    rate = gram_deviation(chosen, parameters.activation) / float(np.linalg.norm(kernel))
    return {"gram_deviation": rate / math.sqrt(parameters.width)}


@lru_cache(maxsize=256)
def _dimensions(
    data: str, activation: str, kept: tuple[int, ...], stream: int, samples: int
) -> np.ndarray:
    """Residual dimensions of one draw of images."""
    X, _ = images(data)
    order = random_stream(0, "images for predictions", stream).permutation(len(X))
    return np.array(residual_dimensions(X[order[:samples]], activation, kept))


@lru_cache(maxsize=256)
def _alignment(data: str, layers: int, stream: int, samples: int) -> np.ndarray:
    """Overlaps of the first step of infinitely wide ReLU networks, averaged over draws of images."""
    limit = limit_of_first_step if layers == 1 else limit_of_first_layers
    X, digits = images(data)
    y = np.where(digits % 2 == 1, 1.0, -1.0)
    overlaps = []
    for draw in range(DRAWS[data, layers]):
        rows = random_stream(0, "images for alignment", stream, draw).permutation(len(X))[:samples]
        overlaps.append(np.ravel(limit(X[rows], y[rows], n_directions=ALIGNED_DIRECTIONS)))
    return np.mean(overlaps, axis=0)


def chance(parameters: NeuralLoFiImagesParameters, prediction: Metrics) -> Metrics:
    """Metrics of random filters, whose null ratio is 1, and of readouts that always give 0."""
    guess = 0.9 if parameters.task == "ten-class" else 0.5
    metrics: Metrics = {
        "error": [guess] * len(parameters.kept),
        "squared_error": [1.0] * len(parameters.kept),
        "gram_deviation": 1.0,
    }
    if parameters.width:
        return metrics
    counts = [float(count) for count in range(2)]
    return metrics | {
        "emerged": 0.5, "auto_error": guess, "auto_squared_error": 1.0, "null_counts": list(counts),
        "null_ratios": [1.0] * len(counts),
    } | ({} if parameters.task == "ten-class" else _chance_alignment(parameters))  # fmt: skip


def _chance_alignment(parameters: NeuralLoFiImagesParameters) -> Metrics:
    """Overlaps of a change of the weights in random directions."""
    share = ALIGNED_DIRECTIONS / images(parameters.data)[0].shape[1]
    second = ALIGNED_DIRECTIONS / 1_000  # the second layer has 1,000 inputs
    both = [share] * len(LAYER_STEPS) + [second] * len(LAYER_STEPS)
    layers: Metrics = {
        "layers_first_step": [share, share, second, second],
        "layers_alignment": list(both),
        "layers_principal_alignment": list(both),
    }
    return (layers if parameters.trains_two_layers else {}) | {
        "first_step_alignment": [share, share],
        "gradient_alignment": [share] * len(TRAINED_STEPS),
        "principal_alignment": [share] * len(TRAINED_STEPS),
    }
