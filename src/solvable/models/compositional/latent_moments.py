"""Draws of a compositional target and of its rotated latent features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.target import CompositionalTarget
from solvable.models.compositional.upper_layers import rotated_basis, rotated_directions
from solvable.moment_spectrum.cubic_forms import CubicSample, cubic_sample
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel

TEACHERS = 4
"""Number of drawn first layers over which a prediction is averaged."""


@dataclass(frozen=True)
class LatentMoments:
    """Labels, latent features and norms of m draws, for one first layer."""

    labels: np.ndarray  # labels g(s), (m,)
    signal: np.ndarray  # rotated latent features u_k, (m, p)
    squared_norm: np.ndarray  # squared norm of the Hermite features, (m,)
    squared_input_norm: np.ndarray  # squared norm of the input x, (m,)
    second_moment: np.ndarray  # moment E[y (x x^T - I)], (d, d)
    images: np.ndarray | None  # squared norms of M_k x, (m, p), for degree 2
    corrected: SampleKernel | None  # Wick-corrected kernel, for degree 2
    cubic: CubicSample | None  # cubic forms, for degree 3


def draw_latent(target: CompositionalTarget, parameters: CompositionalParameters) -> LatentMoments:
    """Draw labels, latent features and kernel values of fresh samples of one target."""
    d, p, q = parameters.dimension, parameters.widths[0], parameters.degree
    # All first layers together get 80,000 draws, fewer if the draws would cost more than 1e11 operations.
    most = 80_000
    count = int(np.clip(1e11 / (4 * p * d**q), most / 10, most)) // TEACHERS
    rng = random_stream("compositional-target", "moments", target.seed)
    features = target.feature_map
    truth = rotated_directions(target, rotated_basis(parameters))
    matrices = np.asarray(features.to_symmetric(truth)) if q == 2 else np.empty((0, d, d))
    traces = np.trace(matrices, axis1=1, axis2=2)
    signal, images = np.zeros((2, count, p))
    labels, squared_norm, squared_input_norm = np.empty((3, count))
    second_moment, blocks = np.zeros((d, d)), []
    for start in range(0, count, 4_096):
        rows = slice(start, min(start + 4_096, count))
        X = rng.standard_normal((rows.stop - start, d), dtype=np.float32)
        if q == 3:
            blocks.append(X)
        elif q == 1:
            signal[rows] = features.project(X, truth)
        for k, M in enumerate(matrices.astype(np.float32)):
            image = X @ M
            # rotated features u_k = (x^T M_k x - tr M_k) / sqrt(2)
            signal[rows, k] = (np.einsum("na,na->n", image, X) - traces[k]) / np.sqrt(2)
            images[rows, k] = np.einsum("na,na->n", image, image)
        squared_norm[rows] = features.squared_norm(X)
        squared_input_norm[rows] = np.sum(X.astype(float) ** 2, axis=1)
        labels[rows] = target.readout_function(target.index(X))
        second_moment += (X * labels[rows, None]).T @ X
    cubic = cubic_sample(truth, blocks) if q == 3 else None
    corrected = None
    if q == 2:
        corrected = corrected_kernel(
            latent=signal,
            squared_input_norm=squared_input_norm,
            squared_images=images,
            traces=traces,
            dimension=d,
        )
    return LatentMoments(
        labels,
        signal if cubic is None else cubic.latent,
        squared_norm,
        squared_input_norm,
        second_moment / count - labels.mean() * np.eye(d),
        images if q == 2 else None,
        corrected,
        cubic,
    )
