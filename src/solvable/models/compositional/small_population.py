"""Mean operator of the first step in few directions, first layer by first layer."""

from __future__ import annotations

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import (
    make_target,
    rotated_basis,
    rotated_directions,
)
from solvable.moment_spectrum.small_population import ROWS, index_population, small_population
from solvable.operators import apply_label_map, standardise
from solvable.spectra.sampled_spikes import Population

LAYERS = 16
"""First layers whose operators stand for those of all replicates."""


def small_populations(parameters: CompositionalParameters) -> tuple[Population, ...]:
    """E[T K] of several first layers, rotated features first."""
    d, basis, found = parameters.dimension, rotated_basis(parameters), []
    rows = ROWS
    if parameters.first_layer == "random-features":
        rows = int(np.clip(2e10 / (LAYERS * d * parameters.width), 5_000, ROWS))
    linear = parameters.readout == "identity" and parameters.label_map == "identity"
    known = linear and parameters.layers == 3 and parameters.first_layer != "random-features"
    for seed in range(LAYERS):
        target = make_target(parameters, seed)
        X = random_stream("compositional-target", "small population", seed).standard_normal(
            (rows, d)
        )
        labels = target.readout_function(target.index(X))
        mean = None
        if known:  # s = sum_k beta_k <A v_k, F>^2 + const. for B = sum_k beta_k v_k v_k^T
            values, vectors = np.linalg.eigh(target.matrix)
            directions = target.directions @ vectors
            mean = index_population(target.feature_map, directions, values, parameters.correction)
        T = apply_label_map(standardise(labels)[0], parameters.label_map)
        truth = rotated_directions(target, basis)
        found.append(small_population(target.feature_map, truth, X, T, parameters.correction, mean))
    return tuple(found)
