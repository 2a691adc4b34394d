r"""Edges beyond which an eigenvalue of the moment operator is a feature: noise and population.

The null is :math:`P + N`: noise :math:`N = \frac1n\sum_\mu w_\mu g_\mu g_\mu^\top - \bar w I` with
:math:`w = T\|K\|_F/D`, K the part of highest chaos of :math:`FF^\top`, and a population operator
:math:`P` which does not shrink with n: the lower chaoses, as they are measured (their noise is part
of them and no part of N), and the background of the features found. The two are taken as free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from solvable.moment_spectrum.cubic_forms import cubic_operator, tensors_of
from solvable.moment_spectrum.highest_chaos import chaos_eigenvalues
from solvable.operators import HermiteFeatures, MomentOperator
from solvable.spectra.edges import BulkEdges, upper_edge

Edges: TypeAlias = tuple[float, float]
"""Lower and upper edge of a bulk."""

VectorMap: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A linear map on columns, shape (D, k)."""


def weight_law(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Atoms and probabilities that stand for many weights, shape (at most 1536,) each."""
    # The extremes, which set the edges, are kept; narrow bins stand for the others, to second order
    # in their width.
    n, kept, bins = weights.size, 256, 1024
    if n <= 2 * kept + bins:
        return weights, np.full(n, 1 / n)
    ordered = np.partition(weights, (kept, n - kept))
    ends = np.concatenate([ordered[:kept], ordered[n - kept :]])
    inner = ordered[kept : n - kept]
    counts, borders = np.histogram(inner, bins=bins)
    sums, _ = np.histogram(inner, bins=borders, weights=inner)
    held = counts > 0
    atoms = np.concatenate([ends, sums[held] / counts[held]])
    chance = np.concatenate([np.ones(ends.size), counts[held]]) / n
    return atoms, chance


def noise_law(operator: MomentOperator) -> tuple[np.ndarray, np.ndarray]:
    """Atoms w of the noise and their chances: free terms w g g^T, several to a sample above degree 1."""
    features, weights = operator.features, operator.weights
    if operator.input_norms is None:
        return weight_law(operator.weighted_norms)
    assert isinstance(features, HermiteFeatures)
    # A sample adds T K / n with K the part of degree 2q of F F^T - I, which has eigenvalues of both
    # signs; w = T kappa / D, as often as kappa.
    laws = [
        (weight_law(weights * values / features.n_features), count)
        for values, count in chaos_eigenvalues(
            operator.input_norms, features.dimension, features.degree
        )
    ]
    atoms = np.concatenate([law[0] for law, _ in laws])
    return atoms, np.concatenate([count * law[1] for law, count in laws])


@dataclass(frozen=True)
class SpectralMeasure:
    """Nodes and weights of a Gauss quadrature for the spectrum of a large symmetric operator."""

    atoms: np.ndarray
    probabilities: np.ndarray

    def centred(self) -> SpectralMeasure:
        """The measure moved to mean zero."""
        mean = np.dot(self.probabilities, self.atoms)
        return SpectralMeasure(self.atoms - mean, self.probabilities)

    def flipped(self) -> SpectralMeasure:
        """The measure of the operator with its sign changed."""
        return SpectralMeasure(-self.atoms, self.probabilities)


def quadrature_of(
    apply: Callable[[np.ndarray], np.ndarray],
    vectors: np.ndarray,
    rng: np.random.Generator,
    steps: int = 40,
) -> SpectralMeasure:
    """Spectral measure of an operator on the complement of orthonormal columns, by Lanczos."""
    # The spectral measure of one random vector stands for the mean one.
    size = len(vectors)
    basis = np.empty((size, min(steps, size - vectors.shape[1])))
    held = np.concatenate([vectors, basis], axis=1)
    skipped = vectors.shape[1]
    projected = np.zeros((basis.shape[1], basis.shape[1]))
    vector = rng.standard_normal(size)
    for k in range(basis.shape[1]):
        for _ in range(2):
            vector = vector - held[:, : skipped + k] @ (held[:, : skipped + k].T @ vector)
        norm = np.linalg.norm(vector)
        if norm <= 1e-12 * (np.max(np.abs(projected)) if k else 0.0):
            projected = projected[:k, :k]
            break
        held[:, skipped + k] = vector / norm
        vector = apply(held[:, skipped + k])
        row = held[:, skipped : skipped + k + 1].T @ vector
        projected[k, : k + 1] = projected[: k + 1, k] = row
    atoms, coefficients = np.linalg.eigh(projected)
    return SpectralMeasure(atoms, coefficients[0] ** 2)


def free_upper_edge(
    measure: SpectralMeasure, atoms: np.ndarray, chance: np.ndarray, aspect_ratio: float
) -> float:
    """Upper edge of the free sum of a spectrum and of a weighted sample covariance."""
    from scipy.optimize import brentq, minimize_scalar

    top = float(measure.atoms.max())
    largest = float(atoms.max())

    def resolvent(t: float) -> float:
        return float(np.dot(measure.probabilities, 1 / (top + np.exp(t) - measure.atoms)))

    # u + E[w / (1 - w G(u) / delta)] with G(u) = int dnu(x) / (u - x) < delta / max w: the edge is its
    # minimum over u = top + e^t (additive subordination; note 3.2 is the case of an atom at 0).
    def position(t: float) -> float:
        a = resolvent(t) / aspect_ratio
        return float(top + np.exp(t) + np.dot(chance, atoms / (1 - atoms * a)))

    deviation = np.sqrt(np.dot(chance, atoms**2) / aspect_ratio) + np.ptp(measure.atoms)
    high = np.log(deviation) + 12.0
    low = np.log(deviation) - 24.0
    if largest > 0 and resolvent(low) * largest >= aspect_ratio:
        low = brentq(lambda t: np.log(resolvent(t) * largest / aspect_ratio), low, high + 40.0)
        low += 1e-9
    # Convex in u, hence with one minimum; a grid first, as t stretches it.
    grid = np.linspace(low, max(high, low + 1.0), 60)
    values = np.array([position(t) for t in grid])
    best = int(np.argmin(values))
    around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    lowest = minimize_scalar(position, bounds=around, method="bounded", options={"xatol": 1e-8})
    return float(min(lowest.fun, values[best]))


@dataclass(frozen=True)
class NullEdges:
    """What eigenvalues are tested against, edges with their margins."""

    noise: Edges  # of the noise alone
    bulk: Edges  # of noise and population operator together, never inside `noise`
    centre: float  # mean of the noise spectrum
    corrected: Edges  # of what is left without the lower chaoses; `bulk` where there are none
    room: float = 0.0  # to which `bulk` is known: corrections are of relative order 1/d


class PredictedBulk:
    """Bulk edges of a moment operator, given the features found in it."""

    def __init__(self, operator: MomentOperator, rng: np.random.Generator) -> None:
        self.operator = operator
        self.features = operator.features
        self.n_features = operator.shape[0]
        self.aspect_ratio = operator.n_samples / self.n_features
        self._contraction = None if operator.correction == "wick" else operator.lower_chaoses
        # Infinite samples are an error of the operator's; NumPy need not warn of them before.
        with np.errstate(invalid="ignore", over="ignore"):
            self.atoms, self.chance = noise_law(operator)
        # Of the spectrum, but for uncorrected features of degree 1, from which mean(T) I is taken.
        self.mean = float(np.dot(self.chance, self.atoms))
        # E[w²] / delta = s²
        self.noise_scale = float(np.sqrt(np.dot(self.chance, self.atoms**2) / self.aspect_ratio))
        # One seed for all rounds, so that edges change with the features only.
        self._seed = int(rng.integers(2**31))

    @cached_property
    def _noise(self) -> BulkEdges:
        """Noise without the lower chaoses, around zero mean."""
        return _centred_edges(self.atoms, self.chance, self.aspect_ratio)

    @cached_property
    def _whole_noise(self) -> BulkEdges:
        """Noise of the operator as it is, around zero mean."""
        if self._contraction is None:
            return self._noise
        return _centred_edges(*weight_law(self.operator.weighted_norms), self.aspect_ratio)

    def centre(self, values: np.ndarray) -> float:
        """Mean of the eigenvalues that are no features, from the trace and those that are."""
        wick = self.operator.correction == "wick"
        return self._mean_of_rest(self.mean if wick else self.operator.statistics.shift, values)

    def _mean_of_rest(self, mean: float, values: np.ndarray) -> float:
        rest = self.n_features - values.size
        return float((self.n_features * mean - values.sum()) / rest) if rest else 0.0

    def edges(self, values: np.ndarray, vectors: np.ndarray) -> NullEdges:
        """Edges when the population operator of the features found is added to the noise."""
        centre = self.centre(values)
        noise = self._moved(self._whole_noise, centre)
        background = self._background(values, vectors)
        if self._contraction is None:
            bulk = _hull(self._edges_with((background, None), vectors, centre), noise)
            return NullEdges(noise, bulk, centre, bulk, self._room(bulk))
        bulk = _hull(self._edges_with((background, self._contraction), vectors, centre), noise)
        within = self._mean_of_rest(self.mean, self.corrected_values(values, vectors))
        corrected = self._edges_with((background, None), vectors, within)
        return NullEdges(noise, bulk, centre, corrected, self._room(bulk))

    def _room(self, bulk: Edges) -> float:
        # 4/d of half of the width
        return 2 * (bulk[1] - bulk[0]) / self.features.dimension

    def _moved(self, edges: BulkEdges, centre: float) -> Edges:
        # Noise alone stays inside in 99 of a hundred fits, on each side.
        lower, upper = edges.with_margin(dimension=self.n_features, probability=0.99)
        return lower + centre, upper + centre

    def _edges_with(
        self,
        parts: tuple[VectorMap | None, VectorMap | None],
        vectors: np.ndarray,
        centre: float,
    ) -> Edges:
        """Edges of noise and population about a mean, on the complement of some vectors."""
        known = [part for part in parts if part is not None]
        if not known or self.n_features - vectors.shape[1] < 2:
            return self._moved(self._noise, centre)

        def population(vector: np.ndarray) -> np.ndarray:
            return np.asarray(sum(part(vector[:, None])[:, 0] for part in known))

        measure = quadrature_of(population, vectors, np.random.default_rng(self._seed))
        return self._moved(self._free_edges(measure.centred()), centre)

    def _free_edges(self, measure: SpectralMeasure) -> BulkEdges:
        """Edges of the free sum of a population and the noise."""
        law = self.chance, self.aspect_ratio
        upper = free_upper_edge(measure, self.atoms, *law) - self.mean
        lower = -free_upper_edge(measure.flipped(), -self.atoms, *law) - self.mean
        return BulkEdges(lower, upper, self._noise.lower_scale, self._noise.upper_scale)

    def corrected_values(self, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """What eigenvectors have of the operator without its lower chaoses, <u, W u>."""
        if self._contraction is None:
            return values
        return np.asarray(values - np.sum(vectors * self._contraction(vectors), axis=0))

    def _background(self, values: np.ndarray, vectors: np.ndarray) -> VectorMap | None:
        """What the features found add to the highest chaos beside their spikes."""
        features = self.features
        if not isinstance(features, HermiteFeatures) or features.degree == 1 or not values.size:
            return None
        seen, directions = values, vectors
        if self._contraction is not None:
            # C u = lambda u and C = W + P give W u = lambda u - P u without a product: nearer to the
            # feature than u, which leans towards the top of P.
            images = vectors * values - self._contraction(vectors)
            norms = np.linalg.norm(images, axis=0)
            seen, directions = np.sign(np.sum(vectors * images, axis=0)) * norms, images / norms
        # A spike seen at theta + s² / theta is known up to c² and counts by
        # theta c² = sqrt(seen² - 4 s²).
        counted = np.sign(seen) * np.sqrt(np.maximum(seen**2 - 4 * self.noise_scale**2, 0.0))
        if features.degree == 3:
            return cubic_operator(tensors_of(directions), counted)
        M = np.asarray(features.to_symmetric(directions))

        def apply(vectors: np.ndarray) -> np.ndarray:
            # 2 sum_i theta_i M_i U M_i (note 3.6)
            U = np.asarray(features.to_symmetric(vectors))[:, None]
            return np.asarray(features.from_symmetric(2 * np.tensordot(counted, M @ U @ M, (0, 1))))

        return apply


def _centred_edges(atoms: np.ndarray, chance: np.ndarray, aspect_ratio: float) -> BulkEdges:
    """Edges of weighted noise around zero mean."""
    mean = float(np.dot(chance, atoms))
    upper, upper_scale, _ = upper_edge(atoms, aspect_ratio, chance)
    lower, lower_scale, _ = upper_edge(-atoms, aspect_ratio, chance)
    return BulkEdges(-lower - mean, upper - mean, lower_scale, upper_scale)


def _hull(first: Edges, second: Edges) -> Edges:
    return min(first[0], second[0]), max(first[1], second[1])
