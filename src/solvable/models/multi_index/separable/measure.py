"""Measure one replicate of a sum of equal directions: draw data, find directions, score them."""

from __future__ import annotations

from functools import partial

import numpy as np

from solvable.arrays import as_source
from solvable.frame.points import Metrics
from solvable.models.multi_index.informed import informed_overlaps
from solvable.models.multi_index.separable.label_map import label_weights
from solvable.models.multi_index.separable.parameters import SeparableParameters
from solvable.models.multi_index.spectral import InputMoment, spectral_directions
from solvable.models.multi_index.target import draw_target
from solvable.operators import apply_label_map


def measure(parameters: SeparableParameters, rng: np.random.Generator) -> Metrics:
    """Return the metrics measured in one replicate."""
    target = draw_target(parameters, rng)
    X, y = target.sample(parameters.samples, rng)
    seed = int(rng.integers(2**31))
    if parameters.label_map == "optimal":
        moments = parameters.channel.moments
        T = np.interp(y, moments.labels, label_weights(parameters))
    else:
        T = apply_label_map(y, parameters.label_map)
    p = parameters.directions
    found = spectral_directions(
        partial(InputMoment, as_source(X)), T, p, n_permutations=1, seed=seed
    )
    # squared projections on the span of the leading eigenvectors: of true directions, and of their sum
    own = np.sum((found.directions.T @ target.directions) ** 2, axis=0)
    whole = float(np.sum((found.directions.T @ target.directions.sum(axis=1)) ** 2) / p)
    informed = None
    if parameters.informed:
        best = informed_overlaps(target.channel, X, y, target.directions, rng)
        informed = None if best is None else float(best.mean())
    at_upper = found.eigenvalues[0] > np.mean(found.edges)
    return {
        "squared_overlap": float(own.mean()),
        "sum_overlap": whole,
        "single_overlap": float((own.sum() - whole) / (p - 1)),
        "informed_overlap": informed,
        "eigenvalues": found.eigenvalues.tolist(),
        "bulk_edge": float(found.edges[int(at_upper)]),
    }
