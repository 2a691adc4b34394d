"""Ridge readouts on monomials of a few coordinates or on random neurons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from math import sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.errors import MemoryLimitExceeded
from solvable.fitting.ridge import ReadoutMoments, Regularisation
from solvable.memory import available_bytes, gigabytes

ReadoutName: TypeAlias = Literal["monomials", "relu", "none"]
"""Names of the readouts."""


@dataclass(frozen=True)
class Readout:
    """A fitted readout, which predicts labels from coordinates H of shape (n, k)."""

    kind: ReadoutName
    first_layer: np.ndarray | None  # each neuron's weights a_j and bias b_j, (m, k + 1)
    coefficients: np.ndarray  # weight of each feature, (P,)
    intercept: float
    penalty: float
    degrees_of_freedom: float

    def __call__(self, H: np.ndarray) -> np.ndarray:
        """Predict labels, shape (n,)."""
        features = readout_features(self.kind, H, self.first_layer)
        return np.asarray(features @ self.coefficients + self.intercept)


def readout_features(
    kind: ReadoutName, H: np.ndarray, first_layer: np.ndarray | None
) -> np.ndarray:
    """Compute the readout's P features (n, P) from coordinates (n, k), without the constant."""
    H = np.asarray(H, dtype=np.float64)
    if kind == "monomials":
        i, j = np.triu_indices(H.shape[1])
        return np.concatenate([H, H[:, i] * H[:, j]], axis=1)
    assert first_layer is not None
    # relu(A U^T x + b)
    return np.maximum(H @ first_layer[:, :-1].T + first_layer[:, -1], 0.0)


def count_features(kind: ReadoutName, n_directions: int, n_neurons: int) -> int:
    """Number P of features without the constant."""
    return n_neurons if kind == "relu" else n_directions * (n_directions + 3) // 2


def fit_readout(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    n_directions: int,
    kind: ReadoutName,
    *,
    n_neurons: int,
    regularisation: Regularisation,
    rng: np.random.Generator,
) -> Readout:
    """Fit a ridge of labels on features, from blocks (H, y); only sums over blocks stay in memory."""
    size = count_features(kind, n_directions, n_neurons)
    needed, free = 24.0 * size**2, available_bytes()
    if needed > free:
        raise MemoryLimitExceeded(
            f"a readout='{kind}' with {size} features of {n_directions} directions needs "
            f"{gigabytes(needed)}; {gigabytes(free)} are free. Keep fewer directions, or use "
            "readout='relu' with fewer n_neurons."
        )
    first_layer = None
    if kind == "relu":
        # For coordinates of unit variance A_jk ~ N(0, 1/p') and b_j ~ N(0, 1). Other coordinates are
        # scaled by their standard deviations in the first block.
        blocks = iter(blocks)
        start = next(blocks)
        scale = np.std(start[0], axis=0)
        first_layer = rng.standard_normal((n_neurons, n_directions + 1))
        first_layer[:, :-1] /= sqrt(n_directions) * np.where(scale > 0, scale, 1.0)
        blocks = chain([start], blocks)
    sums = ReadoutMoments(size, 1)
    for H, y in blocks:
        sums.add(readout_features(kind, H, first_layer), y[:, None])
    fit: Any = sums.solve(regularisation=regularisation)
    return Readout(
        kind,
        first_layer,
        fit.coefficients[:, 0],
        float(fit.intercept[0]),
        fit.penalty,
        fit.degrees_of_freedom,
    )
