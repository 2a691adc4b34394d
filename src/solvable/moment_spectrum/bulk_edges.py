r"""Edges of the bulk of a moment operator: noise and population operator.

Apart from the features, the spectrum is the spectrum of :math:`P + N`. The noise is
:math:`N = \frac1n\sum_\mu w_\mu g_\mu g_\mu^\top - \bar w I` with :math:`w = T\|K\|_F/D` and K the
highest chaos of :math:`FF^\top`. The population operator :math:`P`, which does not shrink with n, is the
sum of the measured lower chaoses (with their noise) and of the background of the selected features.
P and N are treated as free.
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
from solvable.spectra.lanczos import lanczos_quadrature

Edges: TypeAlias = tuple[float, float]
"""Lower and upper edge of a bulk."""

VectorMap: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Linear map that acts on columns of shape (D, k)."""


def weight_law(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reduce many weights to at most 1536 atoms with probabilities."""
    # The extreme weights, which determine the edges, are kept. Other weights are replaced by the means
    # of narrow bins, which is accurate to second order in the width of a bin.
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
    """Weights w of the free terms w g g^T in the noise, and expected number of each per sample."""
    if operator.input_norms is None:
        return weight_law(operator.weighted_norms)
    assert isinstance(operator.features, HermiteFeatures)
    return chaos_law(operator.weights, operator.input_norms, operator.features)


def chaos_law(
    weights: np.ndarray, input_norms: np.ndarray, features: HermiteFeatures
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the free terms of the highest chaos, and expected number of each per sample."""
    # A sample adds T K / n to the operator, where K is the component of degree 2q of F F^T - I. Each
    # eigenvalue kappa of K, positive or negative, gives a weight w = T kappa / D with the multiplicity
    # of kappa.
    laws = [
        (weight_law(weights * values / features.n_features), count)
        for values, count in chaos_eigenvalues(input_norms, features.dimension, features.degree)
    ]
    atoms = np.concatenate([law[0] for law, _ in laws])
    return atoms, np.concatenate([count * law[1] for law, count in laws])


@dataclass(frozen=True)
class SpectralMeasure:
    """Atoms and probabilities that approximate the spectrum of a large operator (Gauss quadrature)."""

    atoms: np.ndarray
    probabilities: np.ndarray

    def centred(self) -> SpectralMeasure:
        """Return the measure shifted to mean zero."""
        mean = np.dot(self.probabilities, self.atoms)
        return SpectralMeasure(self.atoms - mean, self.probabilities)

    def flipped(self) -> SpectralMeasure:
        """Return the measure of the operator with opposite sign."""
        return SpectralMeasure(-self.atoms, self.probabilities)


def quadrature_of(
    apply: Callable[[np.ndarray], np.ndarray],
    vectors: np.ndarray,
    rng: np.random.Generator,
    steps: int = 40,
) -> SpectralMeasure:
    """Spectral measure of an operator on the complement of orthonormal columns, by Lanczos steps."""
    # The spectral measure of one random vector approximates the mean over all vectors.
    start = rng.standard_normal((len(vectors), 1))
    found = lanczos_quadrature(apply, start, steps=steps, outside=vectors)
    return SpectralMeasure(found.nodes[found.held], found.weights[found.held])


def free_upper_edge(
    measure: SpectralMeasure, atoms: np.ndarray, chance: np.ndarray, aspect_ratio: float
) -> float:
    """Upper edge of the free sum of a spectrum and of a weighted sample covariance."""
    from scipy.optimize import brentq, minimize_scalar

    top = float(measure.atoms.max())
    largest = float(atoms.max())

    def resolvent(t: float) -> float:
        return float(np.dot(measure.probabilities, 1 / (top + np.exp(t) - measure.atoms)))

    # The edge is min_u u + E[w / (1 - w G(u) / delta)] over G(u) = int dnu(x) / (u - x) < delta / max w
    # and u = top + e^t   (sequential 24).
    def position(t: float) -> float:
        a = resolvent(t) / aspect_ratio
        return float(top + np.exp(t) + np.dot(chance, atoms / (1 - atoms * a)))

    deviation = np.sqrt(np.dot(chance, atoms**2) / aspect_ratio) + np.ptp(measure.atoms)
    high = np.log(deviation) + 12.0
    low = np.log(deviation) - 24.0
    if largest > 0 and resolvent(low) * largest >= aspect_ratio:
        low = brentq(lambda t: np.log(resolvent(t) * largest / aspect_ratio), low, high + 40.0)
        low += 1e-9
    # The function is convex in u and has one minimum; a grid in t brackets it.
    grid = np.linspace(low, max(high, low + 1.0), 60)
    values = np.array([position(t) for t in grid])
    best = int(np.argmin(values))
    around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    lowest = minimize_scalar(position, bounds=around, method="bounded", options={"xatol": 1e-8})
    return float(min(lowest.fun, values[best]))


@dataclass(frozen=True)
class NullEdges:
    """Edges, with margins, against which eigenvalues are tested."""

    noise: Edges  # edges of the noise alone
    bulk: Edges  # edges of noise plus population operator; contains `noise`
    centre: float  # mean of the noise spectrum
    corrected: Edges  # edges without lower Hermite degrees; equal to `bulk` if corrected
    room: float = 0.0  # uncertainty of the edges `bulk`, of relative order 1/d


class PredictedBulk:
    """Bulk edges of a moment operator, given the features selected so far."""

    def __init__(self, operator: MomentOperator, rng: np.random.Generator) -> None:
        self.operator = operator
        self.features = operator.features
        self.n_features = operator.shape[0]
        self.aspect_ratio = operator.n_samples / self.n_features
        self._contraction = None if operator.correction == "wick" else operator.lower_chaoses
        # NumPy warnings are switched off, because the operator raises an error for infinite samples.
        with np.errstate(invalid="ignore", over="ignore"):
            self.atoms, self.chance = noise_law(operator)
        # Mean of the spectrum. For features of degree 1, mean(T) I is subtracted from the operator later.
        self.mean = float(np.dot(self.chance, self.atoms))
        # squared noise scale s² = E[w²] / delta
        self.noise_scale = float(np.sqrt(np.dot(self.chance, self.atoms**2) / self.aspect_ratio))
        # All rounds use one seed, so that the edges depend on the selected features only.
        self._seed = int(rng.integers(2**31))

    @cached_property
    def _noise(self) -> BulkEdges:
        """Edges of the noise bulk of the degree-2q part alone, relative to the mean."""
        return centred_edges(self.atoms, self.chance, self.aspect_ratio)

    @cached_property
    def _whole_noise(self) -> BulkEdges:
        """Edges of the noise of the whole operator, relative to the mean."""
        if self._contraction is None:
            return self._noise
        return centred_edges(*weight_law(self.operator.weighted_norms), self.aspect_ratio)

    def centre(self, values: np.ndarray) -> float:
        """Mean of all eigenvalues except the selected ones, computed from the trace."""
        wick = self.operator.correction == "wick"
        return self._mean_of_rest(self.mean if wick else self.operator.statistics.shift, values)

    def _mean_of_rest(self, mean: float, values: np.ndarray) -> float:
        rest = self.n_features - values.size
        return float((self.n_features * mean - values.sum()) / rest) if rest else 0.0

    def edges(self, values: np.ndarray, vectors: np.ndarray) -> NullEdges:
        """Edges of the sum of the noise and the population operator of the selected features."""
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
        # margin of 4/d of the half-width
        return 2 * (bulk[1] - bulk[0]) / self.features.dimension

    def _moved(self, edges: BulkEdges, centre: float) -> Edges:
        # On each side, noise alone stays inside this margin in 99 of 100 fits.
        lower, upper = edges.with_margin(dimension=self.n_features, probability=0.99)
        return lower + centre, upper + centre

    def _edges_with(
        self,
        parts: tuple[VectorMap | None, VectorMap | None],
        vectors: np.ndarray,
        centre: float,
    ) -> Edges:
        """Edges of noise plus population around a mean, on the complement of the given vectors."""
        known = [part for part in parts if part is not None]
        if not known or self.n_features - vectors.shape[1] < 2:
            return self._moved(self._noise, centre)

        def population(U: np.ndarray) -> np.ndarray:
            return np.asarray(sum(part(U) for part in known))

        measure = quadrature_of(population, vectors, np.random.default_rng(self._seed))
        return self._moved(self._free_edges(measure.centred()), centre)

    def _free_edges(self, measure: SpectralMeasure) -> BulkEdges:
        """Edges of the free sum of a population operator and the noise."""
        law = self.chance, self.aspect_ratio
        upper = free_upper_edge(measure, self.atoms, *law) - self.mean
        lower = -free_upper_edge(measure.flipped(), -self.atoms, *law) - self.mean
        return BulkEdges(lower, upper, self._noise.lower_scale, self._noise.upper_scale)

    def corrected_values(self, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Values <u, W u> of eigenvectors u, where W is the operator without lower Hermite degrees."""
        if self._contraction is None:
            return values
        return np.asarray(values - np.sum(vectors * self._contraction(vectors), axis=0))

    def _background(self, values: np.ndarray, vectors: np.ndarray) -> VectorMap | None:
        """Highest-degree population operator of the selected features, without their spikes."""
        features = self.features
        if not isinstance(features, HermiteFeatures) or features.degree == 1 or not values.size:
            return None
        seen, directions = values, vectors
        if self._contraction is not None:
            # C u = lambda u and C = W + P give W u = lambda u - P u without a product with C. W u is
            # closer to the feature than u, which is tilted towards the top of P.
            images = vectors * values - self._contraction(vectors)
            norms = np.linalg.norm(images, axis=0)
            seen, directions = np.sign(np.sum(vectors * images, axis=0)) * norms, images / norms
        # A direction with eigenvalue seen = theta + s² / theta has a squared overlap c². Its weight in
        # the population operator is theta c² = sqrt(seen² - 4 s²)   (sequential 15).
        counted = np.sign(seen) * np.sqrt(np.maximum(seen**2 - 4 * self.noise_scale**2, 0.0))
        if features.degree == 3:
            return cubic_operator(tensors_of(directions), counted)
        M = np.asarray(features.to_symmetric(directions))

        def apply(vectors: np.ndarray) -> np.ndarray:
            # The operator is U -> 2 sum_i theta_i M_i U M_i   (sequential 19), with theta_i = sqrt(2)
            # lambda_i.
            U = np.asarray(features.to_symmetric(vectors))[:, None]
            return np.asarray(features.from_symmetric(2 * np.tensordot(counted, M @ U @ M, (0, 1))))

        return apply


def centred_edges(atoms: np.ndarray, chance: np.ndarray, aspect_ratio: float) -> BulkEdges:
    """Edges of the weighted noise after a shift to mean zero."""
    mean = float(np.dot(chance, atoms))
    upper, upper_scale, _ = upper_edge(atoms, aspect_ratio, chance)
    lower, lower_scale, _ = upper_edge(-atoms, aspect_ratio, chance)
    return BulkEdges(-lower - mean, upper - mean, lower_scale, upper_scale)


def _hull(first: Edges, second: Edges) -> Edges:
    return min(first[0], second[0]), max(first[1], second[1])
