"""Spectral steps after the first one, on draws of the output of the first step.

Each step uses as many fresh rows as the learner has. For each row the p learned features of the first
representation are computed along directions drawn from the theory of the first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.latent_layers import inner_layer, later_overlaps
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

TEACHERS = 4
"""Number of first layers to average over."""

LARGEST = 1_000
"""Largest D for which whole matrices are drawn; if D is larger, all features must be recovered."""


@dataclass(frozen=True)
class LaterSteps:
    """Overlaps, last layer and error, averaged over first layers and sets of rows."""

    first_overlap: np.ndarray  # squared overlap of each feature of the first representation
    squared_overlap: np.ndarray  # squared overlap of each feature of the later representations
    last_layer: np.ndarray  # eigenvalues of the last layer, descending
    normalised_mse: np.ndarray  # normalised error, a single number


def fresh_rows(parameters: CompositionalParameters) -> int:
    """Number of rows for each later step, in addition to the ``samples`` of the first spectral step."""
    fewest, most = 4_000, 20_000
    later = len(parameters.widths) - 1
    if later:
        # The learner gives all deeper layers together at most as many rows as the first layer.
        return min(parameters.samples // later, most)
    return int(np.clip(parameters.samples, fewest, most))


def later_steps(
    parameters: CompositionalParameters, law: SpikeLaw, spikes: SpikePrediction
) -> LaterSteps:
    """Predict the later representations, the last layer and the error of four or more layers."""
    p, d, q = parameters.widths[0], parameters.dimension, parameters.degree
    # The cost is limited to 4e10 operations, so with very many features fewer rows are used than the
    # learner has.
    most = 4e10 / (16 * p * d**q * TEACHERS * _sets(parameters))
    rows = int(np.clip(most, 200, fresh_rows(parameters)))
    same = parameters.model_copy(update={"samples": 2, "test_samples": 2, "kernel_samples": 0})
    heights = tuple(law.heights.tolist())
    found = [
        step
        for seed in range(TEACHERS)
        for step in _steps(parameters, law, spikes, _first_step(same, heights, seed, rows))
    ]
    names = [field.name for field in fields(LaterSteps)]
    return LaterSteps(**{n: np.mean([getattr(s, n) for s in found], axis=0) for n in names})


def _sets(parameters: CompositionalParameters) -> int:
    """Number of sets of rows for each first layer: one per later step and last layer, and two more."""
    return len(parameters.widths) + 2


@lru_cache(maxsize=TEACHERS)
def _first_step(
    parameters: CompositionalParameters, heights: tuple[float, ...], seed: int, rows: int
) -> FirstStep:
    """Sets of rows of a target, the same at every sample size so that curves are smooth."""
    target = make_target(parameters, seed)
    truth = rotated_directions(target, rotated_basis(parameters))
    rng = random_stream("compositional-target", "second step", seed)
    X = rng.standard_normal((_sets(parameters), rows, parameters.dimension), dtype=np.float32)
    labels = np.stack([target.readout_function(target.index(block)) for block in X])
    labels = (labels - labels.mean()) / labels.std()
    T = apply_label_map(labels.ravel(), parameters.label_map).reshape(labels.shape)
    return FirstStep(parameters, np.array(heights), target, truth, X, labels, T)


def _steps(
    parameters: CompositionalParameters, law: SpikeLaw, spikes: SpikePrediction, first: FirstStep
) -> Iterator[LaterSteps]:
    """Yield the later steps on several sets of rows of one target, with separate directions."""
    target, truth, (sets, rows) = first.target, first.truth, first.T.shape
    rng = random_stream("compositional-target", "directions", target.seed)
    c2, rotation = spikes.squared_overlap, rotated_basis(parameters).rotation
    depth = len(parameters.widths)
    if len(truth) <= LARGEST:
        noise = first.noise(law, parameters.samples)
        directions = learned_directions(
            truth,
            population=first.population,
            # the sets of rows that are used neither by the later steps nor by the last layer
            noise=lambda k: noise([(k + depth) % sets, (k + depth + 1) % sets], rng),
            draws=sets,
        )
    else:
        directions = random_directions(truth, squared_overlap=c2, draws=sets, rng=rng)
    for k, own in enumerate(directions):
        # Each later step uses the rows of another set, and the last layer those of the last set.
        places = [(k + j) % sets for j in range(depth)]
        features = np.concatenate(
            [np.asarray(target.feature_map.project(first.X[j], own), float) for j in places]
        )
        steps = []
        for j, (place, width) in enumerate(zip(places, parameters.widths[1:], strict=False)):
            step = inner_layer(
                features=features,
                norms=np.asarray(target.feature_map.squared_norm(first.X[place])),
                weights=first.T[place],
                width=width,
                depth=j + 1,
                correction=parameters.correction,
            )
            steps.append(step.directions)
            features = step.features[rows:]
        readout = parameters.readout != "identity"
        fit = fit_last_layer(
            features, first.labels[places[-1]], readout=readout, rows=fresh_rows(parameters)
        )
        yield LaterSteps(
            first_overlap=np.sum((truth.T @ own) ** 2, axis=1),
            squared_overlap=later_overlaps(target.hidden_layers, steps, own.T @ truth @ rotation.T),
            last_layer=np.linalg.eigvalsh(fit.matrix)[::-1],
            normalised_mse=np.array(fit.normalised_mse),
        )
