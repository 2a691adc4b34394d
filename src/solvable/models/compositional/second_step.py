"""Second spectral step of a target of four layers, on draws of the output of the first step.

The second step uses as many fresh rows as the learner has. For each row it computes the p learned
features along directions drawn from the theory of the first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.latent_layers import inner_layer
from solvable.models.compositional.learned_directions import (
    FirstStep,
    learned_directions,
    random_directions,
)
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import (
    make_target,
    rotated_basis,
    rotated_directions,
)
from solvable.moment_spectrum.latent_draws import fit_last_layer
from solvable.moment_spectrum.spike_law import SpikeLaw
from solvable.operators import apply_label_map
from solvable.spectra.structured_spikes import SpikePrediction

TEACHERS, BLOCKS = 4, 4
"""Number of first layers to average over, and number of sets of fresh rows for each first layer."""

LARGEST = 1_000
"""Largest D for which whole matrices are drawn; if D is larger, all features must be recovered."""


@dataclass(frozen=True)
class SecondStep:
    """Overlaps, last layer and error, averaged over first layers and sets of rows."""

    first_overlap: np.ndarray  # squared overlap of each feature of the first representation
    squared_overlap: np.ndarray  # squared overlap of each feature of the second representation
    last_layer: np.ndarray  # eigenvalues of the last layer, descending
    normalised_mse: float


def fresh_rows(parameters: CompositionalParameters) -> int:
    """Number of rows for each later step, in addition to the ``samples`` of the first spectral step."""
    fewest, most = 4_000, 20_000
    if len(parameters.widths) > 1:
        # The learner gives a deeper layer at most as many rows as the first layer.
        return min(parameters.samples, most)
    return int(np.clip(parameters.samples, fewest, most))


def second_step(
    parameters: CompositionalParameters, law: SpikeLaw, spikes: SpikePrediction
) -> SecondStep:
    """Predict the second representation, the last layer and the error of a target of four layers."""
    p, d, q = parameters.widths[0], parameters.dimension, parameters.degree
    # The cost is limited to 4e10 operations, so with very many features fewer rows are used than the
    # learner has.
    most = 4e10 / (16 * p * d**q * TEACHERS * BLOCKS)
    rows = int(np.clip(most, 200, fresh_rows(parameters)))
    same = parameters.model_copy(update={"samples": 2, "test_samples": 2, "kernel_samples": 0})
    heights = tuple(law.heights.tolist())
    found = [
        step
        for seed in range(TEACHERS)
        for step in _steps(parameters, law, spikes, _first_step(same, heights, seed, rows))
    ]
    return SecondStep(
        np.mean([step.first_overlap for step in found], axis=0),
        np.mean([step.squared_overlap for step in found], axis=0),
        np.mean([step.last_layer for step in found], axis=0),
        float(np.mean([step.normalised_mse for step in found])),
    )


@lru_cache(maxsize=TEACHERS)
def _first_step(
    parameters: CompositionalParameters, heights: tuple[float, ...], seed: int, rows: int
) -> FirstStep:
    """Sets of rows of a target, the same at every sample size so that curves are smooth."""
    target = make_target(parameters, seed)
    truth = rotated_directions(target, rotated_basis(parameters))
    rng = random_stream("compositional-target", "second step", seed)
    X = rng.standard_normal((BLOCKS, rows, parameters.dimension), dtype=np.float32)
    labels = np.stack([target.readout_function(target.index(block)) for block in X])
    labels = (labels - labels.mean()) / labels.std()
    T = apply_label_map(labels.ravel(), parameters.label_map).reshape(labels.shape)
    return FirstStep(parameters, np.array(heights), target, truth, X, labels, T)


def _steps(
    parameters: CompositionalParameters, law: SpikeLaw, spikes: SpikePrediction, first: FirstStep
) -> Iterator[SecondStep]:
    """Yield the second step on several sets of rows of one target, with separate directions."""
    target, truth, rows = first.target, first.truth, first.T.shape[1]
    rng = random_stream("compositional-target", "directions", target.seed)
    c2, rotation = spikes.squared_overlap, rotated_basis(parameters).rotation
    if len(truth) <= LARGEST:
        noise = first.noise(law, parameters.samples)
        directions = learned_directions(
            truth,
            population=first.population,
            # the sets of rows that are used neither by the second step nor by the last layer
            noise=lambda k: noise([(k + 2) % BLOCKS, (k + 3) % BLOCKS], rng),
            draws=BLOCKS,
        )
    else:
        directions = random_directions(truth, squared_overlap=c2, draws=BLOCKS, rng=rng)
    for k, own in enumerate(directions):
        # The last layer uses the rows of another set.
        other = (k + 1) % BLOCKS
        features = [
            np.asarray(target.feature_map.project(first.X[j], own), float) for j in (k, other)
        ]
        inner = inner_layer(
            features=np.concatenate(features),
            norms=np.asarray(target.feature_map.squared_norm(first.X[k])),
            weights=first.T[k],
            layers=target.hidden_layers[0],
            alignment=own.T @ truth @ rotation.T,
            correction=parameters.correction,
        )
        readout = parameters.readout != "identity"
        fit = fit_last_layer(
            inner.features[rows:],
            first.labels[other],
            readout=readout,
            rows=fresh_rows(parameters),
        )
        values = np.linalg.eigvalsh(fit.matrix)[::-1]
        first_overlap = np.sum((truth.T @ own) ** 2, axis=1)
        yield SecondStep(first_overlap, inner.squared_overlap, values, fit.normalised_mse)
