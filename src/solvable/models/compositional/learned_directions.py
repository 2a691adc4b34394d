"""Directions that the first spectral step returns, drawn as eigenvectors of a random matrix.

The direction that the learner returns in place of an unrecovered feature is not random. The direction
is an eigenvector of the population background, mainly a product of features, or an extreme
eigenvector of the noise. For features of degree 2 the noise is a symmetric tensor of order 4 plus a
few samples of large norm, and the extreme eigenvectors of this noise are forms of low rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from solvable.arrays import random_stream
from solvable.models.compositional.parameters import CompositionalParameters
from solvable.models.compositional.upper_layers import SharedUpperLayers
from solvable.moment_spectrum.operator_noise import single_level, single_sizes
from solvable.moment_spectrum.spike_law import SpikeLaw
from solvable.operators import HermiteFeatures, MomentOperator

Operator = Callable[[np.ndarray], np.ndarray]

SINGLE = 1_000
"""Largest number of samples for which the noise is the sum of single drawn samples."""


def population_background(
    truth: np.ndarray, heights: np.ndarray, dimension: int, moment: Operator | None = None
) -> Operator:
    """Apply the corrected population operator of degree 2, without spikes, to columns (D, k)."""
    # `moment` estimates the whole operator and is used along directions of products of features.
    features = HermiteFeatures(2, dimension)
    matrices = np.asarray(features.to_symmetric(truth))

    # On the complement of the M_k the operator is P[U] = 2 sum_k theta_k / (1 + 4 / d) M_k U M_k, with
    # spike heights theta_k   (compositional 13).
    def apply(columns: np.ndarray) -> np.ndarray:
        U = np.asarray(features.to_symmetric(columns))
        image = np.zeros_like(U)
        for height, M in zip(heights / (1 + 4 / dimension), matrices, strict=True):
            image += 2 * height * (M @ U @ M)
        moved = np.asarray(features.from_symmetric(image))
        return np.asarray(moved - truth @ (truth.T @ moved))

    if moment is None:
        return apply
    # A label of degree 4 in the features adds tensors (M_a M_b) x (M_c M_d) of the same size, which
    # have low rank.
    rows, columns = np.triu_indices(len(matrices))
    products = matrices[rows] @ matrices[columns]
    few = np.asarray(features.from_symmetric(products + products.transpose(0, 2, 1)))
    few = few - truth @ (truth.T @ few)
    left, size, _ = np.linalg.svd(few, full_matrices=False)
    span = left[:, size > 0.05 * size[0]]
    excess = span.T @ (moment(span) - apply(span))
    excess = (excess + excess.T) / 2
    return lambda columns: apply(columns) + span @ (excess @ (span.T @ columns))


@lru_cache(maxsize=4)
def _tensor_entries(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Index of the independent tensor entry behind each matrix entry, and scale of each entry, (D, D)."""
    features = HermiteFeatures(2, dimension)
    units = np.abs(features.to_symmetric(np.eye(features.n_features)))
    first, second = np.divmod(units.reshape(len(units), -1).argmax(axis=1), dimension)
    scale = np.where(first == second, 1.0, np.sqrt(2))
    places = np.stack(
        np.broadcast_arrays(first[:, None], second[:, None], first[None], second[None]), axis=-1
    )
    places = np.sort(places, axis=-1)
    keys = places @ dimension ** np.arange(3, -1, -1)
    _, entry = np.unique(keys, return_inverse=True)
    # In the highest Hermite degree, F_ab F_cd equals s_ab s_cd H_abcd / 2   (compositional 14), where E
    # H² = alpha! for the multi-index alpha.
    run, factorial = np.ones(keys.shape), np.ones(keys.shape)
    for k in range(3):
        run = np.where(places[..., k] == places[..., k + 1], run + 1, 1)
        factorial *= run
    return entry.reshape(keys.shape), scale[:, None] * scale * np.sqrt(factorial) / 2


def quartic_noise(dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the matrix (D, D) of a symmetric Gaussian tensor of order 4 with unit variance."""
    entry, size = _tensor_entries(dimension)
    return np.asarray(rng.standard_normal(int(entry.max()) + 1)[entry] * size)


def contraction(matrix: np.ndarray) -> np.ndarray:
    """Matrix (D, D) of the contraction U -> B U + U B, which the correction subtracts."""
    # This is the matrix in (compositional 15).
    features = HermiteFeatures(2, len(matrix))
    moved = np.asarray(features.to_symmetric(np.eye(features.n_features))) @ matrix
    return np.asarray(features.from_symmetric(moved + moved.swapaxes(1, 2)))


@dataclass(frozen=True, eq=False)
class FirstStep:
    """Moment operator of the first step for one target: mean of the operator, and draws of the noise."""

    parameters: CompositionalParameters
    heights: np.ndarray  # heights of the spikes, (p,)
    target: SharedUpperLayers
    truth: np.ndarray  # orthonormal directions of the rotated features, (D, p)
    X: np.ndarray  # sets of rows, (sets, m, d)
    labels: np.ndarray  # labels of the rows, (sets, m)
    T: np.ndarray  # mapped labels, (sets, m)

    @property
    def _plain(self) -> bool:
        """Return True if the operator has degree 2 and contains its contractions (no correction)."""
        return self.parameters.degree == 2 and self.parameters.correction == "none"

    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of all sets, and the mapped labels of these rows."""
        return self.X.reshape(self.T.size, -1), self.T.ravel()

    @cached_property
    def population(self) -> np.ndarray:
        """Mean of the operator, (D, D): sum of the spikes and the background."""
        A, heights = self.truth, self.heights
        spikes = (A * heights) @ A.T
        if self.parameters.degree != 2:
            return np.asarray(spikes)
        X, T = self._rows()
        moment = MomentOperator(X, T, self.target.feature_map, correction="wick")
        background = population_background(
            A, heights, self.parameters.dimension, lambda columns: moment.matmat(columns)
        )
        image = background(np.eye(len(A)))
        if self._plain:
            plain = contraction(_second_moment(X, T))
            image += plain - A @ (A.T @ plain)
        # Operator P on the complement of the features, and couplings between the features and the
        # complement
        links = image @ A
        return np.asarray(spikes + image + A @ links.T)

    @cached_property
    def _weights(self) -> np.ndarray:
        """Modulus of the mapped label times the squared feature norm, for every row, (sets, m)."""
        X, T = self._rows()
        norms = np.asarray(self.target.feature_map.squared_norm(X))
        return np.asarray((np.abs(T) * norms).reshape(self.T.shape))

    def _sum(self, X: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Sum of T (F F^T - I) over rows, (D, D), without contractions if the correction is used."""
        F = np.asarray(self.target.feature_map.transform(X))
        T = T.astype(F.dtype)
        total = (F * T[:, None]).T @ F - T.sum() * np.eye(F.shape[1])
        if self.parameters.degree == 2 and not self._plain:
            total -= contraction(_second_moment(X, T) * T.size)
        return np.asarray(total, float)

    def noise(
        self, law: SpikeLaw, samples: int
    ) -> Callable[[list[int], np.random.Generator], np.ndarray]:
        """Return a function that draws the noise (D, D), which includes rows of the given sets."""
        (sets, rows), n = self.T.shape, samples
        used = min(max(n // rows, 1), 2)
        size = self._weights
        several = n / (used * rows)
        grown = single_sizes(size, single_level(size, n, SINGLE), several)
        chance = several * (size / np.maximum(grown, 1e-300)) ** 3
        rng = random_stream("compositional-target", "single samples", self.target.seed)
        single = rng.random(size.shape) < chance
        T = self.T * grown / np.maximum(size, 1e-300)
        sums = np.array([self._sum(self.X[k][single[k]], T[k][single[k]]) for k in range(sets)])
        mean = self._smoothed(sums.mean(axis=0))
        taken = np.sum(size**3 / np.maximum(grown, 1e-300)) / np.sum(size**2)
        left = max(1 - float(taken), 0.0)

        def draw(places: list[int], rng: np.random.Generator) -> np.ndarray:
            matrix = self._gaussian(law, n, left, rng)
            # The mean of the single samples belongs to the population operator and is subtracted.
            return np.asarray(matrix + (sums[places[:used]].sum(axis=0) - used * mean) / n)

        return draw

    def _smoothed(self, matrix: np.ndarray) -> np.ndarray:
        """Project a matrix on spikes, background and identity; this removes the noise in the matrix."""
        A = self.truth
        spikes = np.sum(A * (matrix @ A), axis=0)
        background = self.population - (A * self.heights) @ A.T
        share = np.sum(background * matrix) / max(float(np.sum(background**2)), 1e-300)
        found = (A * spikes) @ A.T + share * background
        D, p = A.shape
        rest = (np.trace(matrix) - np.trace(found)) / max(D - p, 1)
        return np.asarray(found + rest * (np.eye(D) - A @ A.T))

    def _gaussian(
        self, law: SpikeLaw, samples: int, share: float, rng: np.random.Generator
    ) -> np.ndarray:
        """Gaussian noise with a given fraction of the noise variance, (D, D)."""
        D, d = len(self.truth), self.parameters.dimension
        if self.parameters.degree == 2:
            matrix = quartic_noise(d, rng)
        else:
            matrix = rng.standard_normal((D, D)) / np.sqrt(2)
            matrix = matrix + matrix.T
        # Rounding may give a fraction of -1e-16.
        matrix *= np.sqrt(law.noise * max(share, 0.0) / samples)
        # Noise along the features has the variance E[T² |P K A_i|² / D] instead of tau_2.
        ratio = law.sample.probabilities @ law.sample.couplings / law.noise
        stretch = self.truth * (np.sqrt(ratio) - 1)
        matrix += stretch @ (self.truth.T @ matrix)
        matrix += (matrix @ self.truth) @ stretch.T
        if self._plain:
            # Noise of the moment E[T (x x^T - I)]; its entries off the diagonal have variance E[T²] / n
            B = rng.standard_normal((d, d)) * np.sqrt(np.mean(self.T**2) * share / (2 * samples))
            matrix += contraction(B + B.T)
        return np.asarray(matrix)


def _second_moment(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Average of T (x x^T - I) over rows, (d, d)."""
    return np.asarray((X * T[:, None]).T.astype(float) @ X / T.size - T.mean() * np.eye(X.shape[1]))


def learned_directions(
    truth: np.ndarray, *, population: np.ndarray, noise: Callable[[int], np.ndarray], draws: int
) -> np.ndarray:
    """Orthonormal directions that drawn learners return, (draws, D, p)."""
    from scipy.sparse.linalg import eigsh

    D, p = truth.shape
    found = np.empty((draws, D, p))
    # The centre is the mean eigenvalue outside the features, as the learner measures it from the bulk.
    inside = float(np.sum(truth * (population @ truth)))
    centred = population - (np.trace(population) - inside) / (D - p) * np.eye(D)
    for k in range(draws):
        matrix = centred + noise(k)
        # Directions are ranked by distance from the centre, as the learner ranks directions not clearly
        # outside. A fixed start makes the result reproducible.
        if 4 * p < D:
            found[k] = eigsh(matrix, p, v0=np.ones(D), tol=1e-4)[1]
        else:
            values, vectors = np.linalg.eigh(matrix)
            found[k] = vectors[:, np.argsort(-np.abs(values))[:p]]
    return found


def random_directions(
    truth: np.ndarray, *, squared_overlap: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Directions with given overlaps with the features, otherwise random, (draws, D, p)."""
    rest = rng.standard_normal((draws, *truth.shape))
    rest -= np.einsum("da,nak->ndk", truth, np.einsum("da,ndk->nak", truth, rest))
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    c2 = np.clip(squared_overlap, 0, 1)
    return np.asarray(np.sqrt(c2) * truth + np.sqrt(1 - c2) * rest)
