"""Convolutional networks with filters on images, and their filters as patches of pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Metrics
from solvable.models.lofi_images.images import SHAPES
from solvable.models.lofi_images.parameters import NeuralLoFiImagesParameters
from solvable.networks.blocks import Block, network_blocks
from solvable.networks.lofi import NeuralLoFiClassifier, NeuralLoFiTransformer
from solvable.operators.lift import patches

DRAWN = 6
"""Number of filters that are drawn and compared with shapes."""

POOLING = 2
"""Side of the squares over which the coordinates of each filter are averaged."""


def convolutional_blocks(parameters: NeuralLoFiImagesParameters) -> list[Block]:
    """Convolutional lifts with a filter after each, and an infinitely wide lift before the readout."""
    k, P, name, size = (
        parameters.kept[0], parameters.width, parameters.activation, parameters.patch
    )  # fmt: skip
    deeper = Block(k, P, name, first_moment=True, patch=size, pooling=POOLING)
    last = Block(k, math.inf, name, first_moment=True, pooling=POOLING)
    return [Block(None, P, name, patch=size), *[deeper] * (parameters.filters - 1), last]


def convolutional(parameters: NeuralLoFiImagesParameters, split: Any) -> Metrics:
    """Test errors of learned and of random filters, and the learned filters of the first lift."""
    shape = SHAPES[parameters.data]
    model = NeuralLoFiClassifier(
        convolutional_blocks(parameters), scaling="none", image_shape=shape, random_state=split.seed
    ).fit(split.X, split.y)
    error, squared = split.judged(model.decision_function(split.X_test))
    lazy, lazy_squared = _random_filters(parameters, split)
    size = parameters.patch
    pixels = patches(split.X.reshape(-1, *shape), size).reshape(len(split.X), -1, size**2)
    filters = pixel_filters(pixels, split.targets(split.y)[:, 0])
    return {
        "error": [error],
        "squared_error": [squared],
        "random_filters_error": lazy,
        "random_filters_squared_error": lazy_squared,
        "pixel_filters": filters.T.ravel().tolist(),
        "patch_filters": lifted_filters(model, pixels).T.ravel().tolist(),
        "patch_shapes": shape_overlaps(filters, size),
    }


def _random_filters(parameters: NeuralLoFiImagesParameters, split: Any) -> tuple[float, float]:
    """Test errors of the same network with random orthonormal filters of the same ranks."""
    rng = random_stream(split.seed, "random filters")
    rows, shape = [split.X, split.X_test], SHAPES[parameters.data]
    for stage in range(parameters.filters):
        block = Block(None, parameters.width, parameters.activation, patch=parameters.patch)
        lift = NeuralLoFiTransformer(
            [block], scaling="none", image_shape=shape, random_state=split.seed + stage
        ).fit(rows[0], split.y)
        Q = np.linalg.qr(rng.standard_normal((parameters.width, parameters.kept[0] + 1)))[0]
        height, width = shape[0] // POOLING, shape[1] // POOLING
        maps = [lift.transform(part).reshape(len(part), *shape[:2], -1) @ Q for part in rows]
        # average over squares of side POOLING; rows and columns beyond the last square are left out
        kept = [part[:, : height * POOLING, : width * POOLING] for part in maps]
        pooled = [p.reshape(len(p), height, POOLING, width, POOLING, -1).mean((2, 4)) for p in kept]
        rows, shape = [part.reshape(len(part), -1) for part in pooled], pooled[0].shape[1:]
    readout = NeuralLoFiClassifier(
        network_blocks(1, activation=parameters.activation), scaling="none", random_state=split.seed
    ).fit(rows[0], split.y)
    lazy: tuple[float, float] = split.judged(readout.decision_function(rows[1]))
    return lazy


def pixel_filters(pixels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Leading eigenvectors of the label-weighted second moment of patches (n, places, pixels)."""
    # C = (1 / n H W) sum_mu sum_p y_mu z_{mu p} z_{mu p}^T, ranked by modulus   (lofi 36)
    matrix = np.einsum("npi,n,npj->ij", pixels, weights, pixels, optimize=True)
    values, vectors = np.linalg.eigh(matrix / (pixels.shape[0] * pixels.shape[1]))
    kept = vectors[:, np.argsort(-np.abs(values))[:DRAWN]]
    largest = np.take_along_axis(kept, np.argmax(np.abs(kept), axis=0)[None], axis=0)
    return np.asarray(kept * np.sign(largest))


def lifted_filters(model: NeuralLoFiClassifier, pixels: np.ndarray) -> np.ndarray:
    """Best linear approximation of the first kept coordinates by the pixels of a patch, unit columns."""
    kinds = {layer.kind: layer for layer in reversed(model.network_.layers)}  # first of each kind
    # at most 20,000 patches, spread over the images
    pixels = pixels.reshape(-1, pixels.shape[-1])
    pixels = pixels[:: max(1, len(pixels) // 20_000)]
    response = kinds["filter"].apply(kinds["lift"].features.transform(pixels))
    centred = pixels - pixels.mean(axis=0)
    filters = np.linalg.lstsq(centred, response - response.mean(axis=0), rcond=None)[0][:, :DRAWN]
    return np.asarray(filters / np.linalg.norm(filters, axis=0))


def shape_overlaps(filters: np.ndarray, size: int) -> list[float | None]:
    """Squared overlap of a constant and of both linear ramps with the span of the filters."""
    steps = np.arange(float(size)) - size // 2
    shapes = np.stack([np.ones(size**2), np.repeat(steps, size), np.tile(steps, size)])
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    return list(np.sum((shapes @ filters) ** 2, axis=1).tolist())
