"""Lower bound on the number of directions of any matrix, also of one that follows no law."""

from __future__ import annotations

from functools import cache

import numpy as np

from solvable.arrays import random_stream
from solvable.diagnose.chance_outliers import Signs, after_removal, workspace
from solvable.diagnose.decomposition import BY_PRODUCT, Vectors, eigenvectors, gram
from solvable.diagnose.spectrum import Spectrum

LEVEL = 0.05  # chance of one direction too many in a matrix of independent symmetric entries
DRAWS = 3  # matrices under random signs in each round
ROUNDS = 4  # rounds in which the directions found so far are removed; the count is a lower bound
EXACT = 19  # random signs for small matrices: the largest of 20 has rank 1 with probability 5 %


def directions_of(
    spectrum: Spectrum, seed: int, *, level: float = LEVEL, overwrite: bool = False
) -> int:
    """Count the values above the largest of the same matrix under random signs.

    Values that were counted are removed before the next round, so that they do not raise the largest
    value under random signs.
    """
    moduli = np.sort(np.abs(spectrum.values))[::-1]
    tops = moduli[: moduli.size // 2] * spectrum.scale
    control = Signs(spectrum.symmetric, level, draws=DRAWS, rounds=ROUNDS, raised=True)
    work = workspace(spectrum.matrix, overwrite)
    return control.beyond(work, tops, _vectors(spectrum), random_stream(seed, "signs", "()"))


def _vectors(spectrum: Spectrum) -> Vectors:
    """Leading singular vectors on the shorter side, ordered by decreasing value."""
    if spectrum.symmetric:
        return eigenvectors(spectrum.matrix)
    if len(spectrum.matrix) >= BY_PRODUCT and spectrum.vectors is not None:
        return spectrum.vectors

    @cache
    def left() -> np.ndarray:
        # Of large values the product with the transpose gives the vectors as exactly as the matrix.
        product = gram(spectrum.matrix, spectrum.scale)
        return np.asarray(np.linalg.eigh(product, UPLO="L")[1][:, ::-1])

    return lambda count: left()[:, :count]


def directions_of_small(matrix: np.ndarray, seed: int, precision: float = 2.0**-52) -> int:
    """Count the directions of a matrix with too few values for a spectrum, by a rank test."""
    # Under random signs a matrix of independent symmetric entries keeps its distribution exactly, so
    # the largest of all 20 values is that of the matrix itself with probability 1/20.
    rest = np.array(matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T, dtype=np.float64)
    rng = random_stream(seed, "signs of a small matrix")
    p = rest.shape[0]
    largest = float(np.abs(rest).max(initial=0.0))
    if p < 2 or not np.isfinite(largest) or largest == 0:
        return 0
    rest /= largest
    # Edge of the rounding of entries with a relative spacing of ``precision``.   (spectra 2)
    norm, q = float(np.linalg.norm(rest)), rest.shape[1]
    rounding = norm * max(precision * (p**-0.5 + q**-0.5), 2.0**-52 * q)
    for count in range(p // 2):
        u, values, v = np.linalg.svd(rest, full_matrices=False)
        if values[0] <= rounding:
            return count
        tops = [np.linalg.norm(rest * rng.choice([-1.0, 1.0], rest.shape), 2) for _ in range(EXACT)]
        if not values[0] > after_removal(rest.shape, count) * max(tops):
            return count
        rest -= values[0] * np.outer(u[:, 0], v[0])
    return p // 2
