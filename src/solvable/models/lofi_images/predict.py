"""Predictions from images without labels: Gram matrices at finite width, residual dimensions."""

from __future__ import annotations

import math

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Metrics
from solvable.models.lofi.width import gram_deviation
from solvable.models.lofi_images.images import (
    GRAM_SAMPLES,
    images,
    lifted_kernel,
    residual_dimensions,
)
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters


def predict(parameters: NeuralLoFiImagesParameters) -> Metrics:
    """Predict the Gram matrix's deviation and the residual dimensions from a fixed draw of images."""
    X, _ = images(parameters.data)
    # The same order of images for every number of samples makes prediction lines smooth.
    stream = random_stream(0, "images for predictions")
    chosen = X[stream.permutation(len(X))[: parameters.samples]]
    if not parameters.width:
        return {
            "permuted_ratio": 1.0,
            "residual_dimensions": residual_dimensions(chosen, parameters),
        }
    chosen = chosen[:GRAM_SAMPLES]
    kernel, _ = lifted_kernel(chosen, parameters.activation)
    # |G_P - G|_F / |G|_F falls as P^(-1/2)   (lofi 28)
    rate = gram_deviation(chosen, parameters.activation) / float(np.linalg.norm(kernel))
    return {"gram_deviation": rate / math.sqrt(parameters.width)}


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
        "auto_error": guess, "auto_squared_error": 1.0, "null_counts": list(counts),
        "null_ratios": [1.0] * len(counts),
    }  # fmt: skip
