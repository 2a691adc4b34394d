"""Predictions from images without labels: Gram matrices at finite width, residual dimensions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Metrics
from solvable.models.lofi.width import gram_deviation
from solvable.models.lofi_images.emerging import forecast_emerged
from solvable.models.lofi_images.images import (
    GRAM_SAMPLES,
    images,
    lifted_kernel,
    residual_dimensions,
)
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters
from solvable.spectra.sample_lattice import lattice_sizes


def predict(parameters: NeuralLoFiImagesParameters) -> Metrics:
    """Predict the Gram matrix's deviation and the residual dimensions from a fixed draw of images."""
    X, _ = images(parameters.data)
    if parameters.patch:
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
        return {
            "permuted_ratio": 1.0,
            "residual_dimensions": dimensions.tolist(),
            "emerged": forecast_emerged(data, parameters.task, lift, parameters.samples),
        }
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
    }  # fmt: skip
