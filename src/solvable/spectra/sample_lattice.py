"""Lattice of sample sizes, between which means over random draws are interpolated smoothly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LatticeSize:
    """Sample size of the lattice, and its weight in the interpolation at a given sample size."""

    index: int
    samples: int
    weight: float


def lattice_sizes(
    samples: float, fewest: int = 1, per_octave: int = 4, *, curved: bool = False
) -> list[LatticeSize]:
    """Sizes around a number of samples with the weights of a cubic B-spline in log n, which sum to 1.

    If `curved`, cubics in log n are exact too; this takes six sizes and averages less noise.
    """
    # Draws at two close sample sizes differ, because a sample that enters changes the eigenvectors. Draws
    # are made at 2^(k/4) samples only (`per_octave` 4), with random numbers of each k. The spline has two
    # continuous derivatives and averages the noise of four sizes. It is exact for straight lines in log n
    # and adds h² f'' / 6 = 0.005 f'' to other functions f, h = log(2) / 4.
    place = per_octave * np.log2(samples)
    first = int(np.floor(place)) - 1
    t = place - first - 1
    weights = [
        (1 - t) ** 3 / 6,
        2 / 3 - t**2 + t**3 / 2,
        2 / 3 - (1 - t) ** 2 + (1 - t) ** 3 / 2,
        t**3 / 6,
    ]
    if curved:  # the coefficient of each spline is f_k - (f_(k+1) - 2 f_k + f_(k-1)) / 6
        weights = np.convolve(weights, [-1 / 6, 4 / 3, -1 / 6]).tolist()
        first -= 1
    return [
        LatticeSize(k, max(round(2.0 ** (k / per_octave)), fewest), float(weight))
        for k, weight in enumerate(weights, first)
        if abs(weight) > 1e-6  # draws take seconds
    ]
