"""Exact large-deviation energy, for comparison with the energies of patterns."""

from __future__ import annotations

from dataclasses import dataclass

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.two_layer_posterior.large_deviation import large_deviation
from solvable.models.two_layer_posterior.overlap import NeuronOverlap
from solvable.scale.prefactors.pattern_sums import Sizes

LARGEST_DIMENSION = 2_000
"""Largest dimension at which the exact energy is computed."""


@dataclass(frozen=True)
class Exact:
    """Chernoff energy over the whole prior, and the neurons that contribute to it."""

    energy: float
    neurons: float
    strength: float
    rest: float
    condensed: bool


def exact_energy(overlap: NeuronOverlap, sizes: Sizes, alpha: float) -> Exact | None:
    """Compute the exact energy for one hidden layer; None for fractional or too large sizes."""
    d, width = sizes.dimension, sizes.widths[0]
    if d != round(d) or width != round(width) or d > LARGEST_DIMENSION:
        return None
    try:
        found = large_deviation(
            dimension=round(d),
            width=round(width),
            degree=overlap.degree,
            activation=overlap.activation,
            target=overlap.target,
            alignment=alpha,
            readout_variance=alpha**2 / sizes.alignment,
        )
    except (NotConverged, InvalidParameter):
        return None
    return Exact(found.energy, found.neurons, found.u, found.r, found.condensed)
