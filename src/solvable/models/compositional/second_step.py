"""The second spectral step of a target of four layers, on draws of what the first one returns.

Everything the step depends on is small but for the inputs: the p learned features of as many fresh rows
as the learner has, along directions drawn from the law of the first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.latent_layers import inner_layer
from solvable.models.compositional.learned_directions import (
    learned_directions,
    population_background,
)
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import (
    SharedUpperLayers,
    make_target,
    rotated_basis,
    rotated_directions,
)
from solvable.models.sequential.latent_draws import fit_last_layer
from solvable.models.sequential.spike_law import SpikeLaw
from solvable.operators import MomentOperator, apply_label_map
from solvable.spectra.spikes import SpikePrediction

TEACHERS, BLOCKS = 4, 4
"""First layers over which the second step is averaged, and sets of fresh rows for each."""


@dataclass(frozen=True)
class SecondStep:
    """Means over replicates."""

    squared_overlap: np.ndarray  # of each feature of the second representation
    last_layer: np.ndarray  # eigenvalues, descending
    normalised_mse: float


def fresh_rows(parameters: CompositionalParameters) -> int:
    """Rows kept for each later step, so that the first spectral step has ``samples`` of its own."""
    fewest, most = 4_000, 20_000
    if len(parameters.widths) > 1:
        # The learner gives a deeper layer no more rows than the first one has.
        return min(parameters.samples, most)
    return int(np.clip(parameters.samples, fewest, most))


def second_step(
    parameters: CompositionalParameters, law: SpikeLaw, spikes: SpikePrediction
) -> SecondStep:
    """Second representation, last layer and error of a target of four layers."""
    p, d, q = parameters.widths[0], parameters.dimension, parameters.degree
    # At most 4e10 operations: fewer rows than the learner's only where features are very many.
    most = 4e10 / (16 * p * d**q * TEACHERS * BLOCKS)
    rows = int(np.clip(most, 200, fresh_rows(parameters)))
    found = [
        step
        for seed in range(TEACHERS)
        for step in _steps(parameters, law, spikes, make_target(parameters, seed), rows)
    ]
    return SecondStep(
        np.mean([step.squared_overlap for step in found], axis=0),
        np.mean([step.last_layer for step in found], axis=0),
        float(np.mean([step.normalised_mse for step in found])),
    )


def _steps(
    parameters: CompositionalParameters,
    law: SpikeLaw,
    spikes: SpikePrediction,
    target: SharedUpperLayers,
    rows: int,
) -> Iterator[SecondStep]:
    """The second step on several sets of rows of one target, each with directions of its own."""
    basis = rotated_basis(parameters)
    truth = rotated_directions(target, basis)
    # The same numbers at every sample size, so that curves are smooth.
    rng = random_stream("compositional-target", "second step", target.seed)
    X = rng.standard_normal((BLOCKS, rows, parameters.dimension), dtype=np.float32)
    labels = np.stack([target.readout_function(target.index(block)) for block in X])
    labels = (labels - labels.mean()) / labels.std()
    background = None
    if parameters.degree == 2:
        T = apply_label_map(labels.ravel(), parameters.label_map)
        moment = MomentOperator(X.reshape(T.size, -1), T, target.feature_map, correction="wick")
        background = population_background(
            truth, law.heights, parameters.dimension, lambda columns: moment.matmat(columns)
        )
    directions = learned_directions(
        truth,
        signs=_sides(law, spikes),
        squared_overlap=spikes.squared_overlap,
        noise=law.sample.probabilities @ law.sample.couplings / parameters.samples,
        background=background,
        draws=BLOCKS,
        rng=rng,
    )
    for k, own in enumerate(directions):
        # Rows of the last layer are those of another set.
        other = (k + 1) % BLOCKS
        features = [np.asarray(target.feature_map.project(X[j], own), float) for j in (k, other)]
        inner = inner_layer(
            features=np.concatenate(features),
            norms=np.asarray(target.feature_map.squared_norm(X[k])),
            weights=apply_label_map(labels[k], parameters.label_map),
            layers=target.hidden_layers[0],
            alignment=own.T @ truth @ basis.rotation.T,
            correction=parameters.correction,
        )
        readout = parameters.readout != "identity"
        fit = fit_last_layer(
            inner.features[rows:], labels[other], readout=readout, rows=fresh_rows(parameters)
        )
        values = np.linalg.eigvalsh(fit.matrix)[::-1]
        yield SecondStep(inner.squared_overlap, values, fit.normalised_mse)


def _sides(law: SpikeLaw, spikes: SpikePrediction) -> np.ndarray:
    """End of the spectrum at which each learned direction lies."""
    # What is lost is replaced by what the longer end of the bulk holds.
    lower, upper = spikes.bulk_edges
    longer = 1.0 if upper >= -lower else -1.0
    return np.where(spikes.recovered, np.sign(law.heights), longer)
