"""Groups of features of a quadratic network's target, whose errors are told together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from solvable.models.quadratic.system import QuadraticParameters

BLOCKS = 5
"""Groups of equal size that the features of a Marchenko-Pastur target are gathered in."""

GROWTH = 1.6
"""Ratio of the ranks at which successive groups of a power law end."""


def feature_groups(parameters: QuadraticParameters) -> list[int]:
    """Ranks at which the groups end, strongest features first; the last is d.

    The features of a power law in geometric groups, the first three alone; those of Marchenko and
    Pastur in fifths, and the directions that the target lacks as the last group.
    """
    d, rank = parameters.dimension, parameters.target_rank
    if parameters.target == "power-law":
        ends = [1, 2, 3]
        while ends[-1] < d:
            ends.append(min(d, max(ends[-1] + 1, int(GROWTH * ends[-1]))))
        return ends
    ends = sorted({max(1, round(rank * part / BLOCKS)) for part in range(1, BLOCKS + 1)})
    return ends if rank == d else [*ends, d]


def outlier_edge(noise: float, threshold: float, dimension: int) -> float:
    r"""Learned eigenvalue from which one stands out of the noise, :math:`2\delta-b` and a margin.

    The largest of d eigenvalues of noise lies within some :math:`\delta d^{-2/3}` of its edge.
    """
    return max(2 * noise * (1 + dimension ** (-2 / 3)) - threshold, 0.0)


def group_means(values: np.ndarray, ends: Sequence[int]) -> list[float]:
    """Means of values, one for each rank, over groups that end at these ranks."""
    starts = [0, *ends[:-1]]
    return [float(values[a:b].mean()) for a, b in zip(starts, ends, strict=True)]


def group_sizes(parameters: QuadraticParameters) -> np.ndarray:
    """Number of features in each group."""
    return np.diff([0, *feature_groups(parameters)])


def group_names(parameters: QuadraticParameters) -> list[str]:
    """Words for each group."""
    ends = feature_groups(parameters)
    starts = [0, *ends[:-1]]
    names = [
        f"feature {b}" if b == a + 1 else f"features {a + 1}-{b}"
        for a, b in zip(starts, ends, strict=True)
    ]
    return [*names[:-1], "no feature"] if ends[-1] > parameters.target_rank else names
