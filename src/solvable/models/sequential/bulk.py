r"""Edges beyond which an eigenvalue of the moment operator is a feature: noise and population.

The null is :math:`P + N`: noise :math:`N = \frac1n\sum_\mu w_\mu g_\mu g_\mu^\top - \bar w I` with
:math:`w = T\|F\|^2/D`, and the population operator :math:`P` of true features of degree 2, which
does not shrink with n. The two are taken as free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from solvable.operators import HermiteFeatures, MomentOperator
from solvable.spectra.edges import BulkEdges, upper_edge

Edges: TypeAlias = tuple[float, float]
"""Lower and upper edge of a bulk."""


def weight_law(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Atoms and probabilities that stand for many weights, shape (at most 5120,) each."""
    # The extremes, which set the edges, are kept; narrow bins stand for the others, to second order
    # in their width.
    n, kept, bins = weights.size, 512, 4096
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


@dataclass(frozen=True)
class SpectralMeasure:
    """Nodes and weights of a Gauss quadrature for the spectrum of a large symmetric operator."""

    atoms: np.ndarray
    probabilities: np.ndarray

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
    grid = np.linspace(low, max(high, low + 1.0), 200)
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


class PredictedBulk:
    """Bulk edges of a moment operator, given the features found in it."""

    def __init__(self, operator: MomentOperator, rng: np.random.Generator) -> None:
        self.operator = operator
        self.features = operator.features
        self.corrected = operator.correction == "wick"
        self.n_features = operator.shape[0]
        self.aspect_ratio = operator.n_samples / self.n_features
        # Infinite samples are an error of the operator's; NumPy need not warn of them before.
        with np.errstate(invalid="ignore", over="ignore"):
            self.noise_scale = operator.statistics.noise_scale
        self.atoms, self.chance = weight_law(operator.weighted_norms)
        self.mean = float(np.dot(self.chance, self.atoms))
        # One seed for all rounds, so that edges change with the features only.
        self._seed = int(rng.integers(2**31))

    @cached_property
    def _noise(self) -> BulkEdges:
        """Noise around zero mean."""
        upper, upper_scale, _ = upper_edge(self.atoms, self.aspect_ratio, self.chance)
        lower, lower_scale, _ = upper_edge(-self.atoms, self.aspect_ratio, self.chance)
        return BulkEdges(-lower - self.mean, upper - self.mean, lower_scale, upper_scale)

    def centre(self, values: np.ndarray) -> float:
        """Mean of the eigenvalues that are no features, from the trace and those that are."""
        # Zero for the corrected operator, which has lost its mean with the rest of the bias.
        rest = self.n_features - values.size
        if self.corrected or rest == 0:
            return 0.0
        trace = self.n_features * self.operator.statistics.shift
        return float((trace - values.sum()) / rest)

    def _with_margin(self, edges: BulkEdges) -> Edges:
        # Noise alone stays inside in 99 of a hundred fits, on each side.
        return edges.with_margin(dimension=self.n_features, probability=0.99)

    def edges(self, values: np.ndarray, vectors: np.ndarray) -> NullEdges:
        """Edges when the population operator of the features found is added to the noise."""
        centre = self.centre(values)
        lower, upper = self._with_margin(self._noise)
        noise = lower + centre, upper + centre
        # Other features have a population operator whose bulk is not known here.
        known = isinstance(self.features, HermiteFeatures) and self.features.degree == 2
        nothing = self.corrected and values.size == 0
        if not known or nothing or self.n_features - values.size < 2:
            return NullEdges(noise, noise, centre)
        heights = self.spikes(values, centre)
        rng = np.random.default_rng(self._seed)
        measure = quadrature_of(self._population(heights, vectors), vectors, rng)
        lower, upper = self._with_margin(self._free_edges(measure))
        return NullEdges(noise, (min(lower, noise[0]), max(upper, noise[1])), centre)

    def _free_edges(self, measure: SpectralMeasure) -> BulkEdges:
        """Edges of the free sum of a population and the noise."""
        law = self.chance, self.aspect_ratio
        upper = free_upper_edge(measure, self.atoms, *law) - self.mean
        lower = -free_upper_edge(measure.flipped(), -self.atoms, *law) - self.mean
        return BulkEdges(lower, upper, self._noise.lower_scale, self._noise.upper_scale)

    def spikes(self, values: np.ndarray, centre: float) -> np.ndarray:
        """Spike heights behind eigenvalues; half the eigenvalue for one inside the noise."""
        # lambda = theta + s^2 / theta, solved for theta
        moved = values - centre
        root = np.sqrt(np.maximum(moved**2 - 4 * self.noise_scale**2, 0.0))
        return np.asarray((moved + np.sign(moved) * root) / 2)

    @cached_property
    def _contraction(self) -> np.ndarray:
        """B_1, the bias of the uncorrected operator: the moment of the inputs themselves."""
        inputs = HermiteFeatures(1, self.features.dimension)
        moment = MomentOperator(self.operator.source, self.operator.weights, inputs)
        return np.asarray(moment.matmat(np.eye(inputs.dimension)))

    def _population(
        self, heights: np.ndarray, vectors: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        features = self.features
        assert isinstance(features, HermiteFeatures)
        matrices = np.asarray(features.to_symmetric(vectors))

        # P[U] = B_1 U + U B_1 + 2 sum_i theta_i M_i U M_i with B_1 = E[T (x x^T - I)], measured (it is
        # 2 sum_i theta_i M_i^2 for T = h2); the Wick correction leaves the last term (note 3.6).
        def apply(vector: np.ndarray) -> np.ndarray:
            U = np.asarray(features.to_symmetric(vector[:, None]))[0]
            image = 2 * np.tensordot(heights, matrices @ U @ matrices, axes=1)
            if not self.corrected:
                image = image + self._contraction @ U + U @ self._contraction
            return np.asarray(features.from_symmetric(image[None]))[:, 0]

        return apply
