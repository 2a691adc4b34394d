r"""Edges beyond which an eigenvalue of the moment operator is a feature: noise and population.

The null is :math:`P + N`: noise :math:`N = \frac1n\sum_\mu w_\mu g_\mu g_\mu^\top - \bar w I` with
:math:`w = T\|F\|^2/D`, and the population operator :math:`P` of true features of degree 2, which
does not shrink with n. The two are taken as free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.operators import HermiteFeatures, MomentOperator
from solvable.spectra.edges import BulkEdges, upper_edge

NOISE_INSIDE = 0.99
"""Probability that noise alone stays inside on one side."""

EXACT_WEIGHTS = 512
"""Weights kept as they are at either end of the law of the weights."""

WEIGHT_BINS = 4096
"""Bins that stand for the other weights."""

QUADRATURE_STEPS = 40
"""Lanczos steps for the spectrum of the population operator."""


def weight_law(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Atoms and probabilities that stand for many weights.

    The extremes, which set the edges, are kept; the others are replaced by the means of narrow
    bins. Second order in the width of a bin.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Weights.

    Returns
    -------
    atoms, probabilities : ndarray
        At most 5120 of them.

    Examples
    --------
    >>> weight_law(np.array([1.0, 2.0]))
    (array([1., 2.]), array([0.5, 0.5]))
    """
    n = weights.size
    if n <= 2 * EXACT_WEIGHTS + WEIGHT_BINS:
        return weights, np.full(n, 1 / n)
    ordered = np.partition(weights, (EXACT_WEIGHTS, n - EXACT_WEIGHTS))
    ends = np.concatenate([ordered[:EXACT_WEIGHTS], ordered[n - EXACT_WEIGHTS :]])
    inner = ordered[EXACT_WEIGHTS : n - EXACT_WEIGHTS]
    counts, borders = np.histogram(inner, bins=WEIGHT_BINS)
    sums, _ = np.histogram(inner, bins=borders, weights=inner)
    held = counts > 0
    atoms = np.concatenate([ends, sums[held] / counts[held]])
    chance = np.concatenate([np.ones(ends.size), counts[held]]) / n
    return atoms, chance


@dataclass(frozen=True)
class SpectralMeasure:
    """A few atoms that stand for the spectrum of a large symmetric operator.

    Parameters
    ----------
    atoms, probabilities : ndarray of shape (m,)
        Nodes and weights of a Gauss quadrature.
    """

    atoms: np.ndarray
    probabilities: np.ndarray

    def flipped(self) -> SpectralMeasure:
        """The measure of the operator with its sign changed."""
        return SpectralMeasure(-self.atoms, self.probabilities)


def quadrature_of(
    apply: Callable[[np.ndarray], np.ndarray],
    vectors: np.ndarray,
    rng: np.random.Generator,
    steps: int = QUADRATURE_STEPS,
) -> SpectralMeasure:
    """Spectral measure of an operator on the complement of some vectors, by Lanczos.

    Parameters
    ----------
    apply : callable
        Product with a vector of shape (D,).
    vectors : ndarray of shape (D, k)
        Orthonormal columns that are projected out.
    rng : Generator
        Draws the starting vector, whose spectral measure stands for the mean one.
    steps : int
        Products with the operator.

    Returns
    -------
    SpectralMeasure
        At most ``steps`` atoms.
    """
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
    r"""Upper edge of the free sum of a spectrum and of a weighted sample covariance.

    .. math:: \min_{u > \max\nu} \; u + E\Big[\frac{w}{1 - w\,G_\nu(u)/\delta}\Big],
        \qquad G_\nu(u) = \int\frac{d\nu(x)}{u - x} < \delta/\max w .

    Parameters
    ----------
    measure : SpectralMeasure
        :math:`\nu`.
    atoms, chance : ndarray
        Law of the weights w.
    aspect_ratio : float
        :math:`\delta = n/D`.

    Returns
    -------
    float
        The edge; with :math:`\nu` a single atom at 0, that of the noise alone.

    Notes
    -----
    Source: derived (additive subordination; note 3.2 is the case of an atom at 0); backed by
    ``tests/learners/test_bulk.py`` (against simulated spectra).

    Examples
    --------
    >>> nothing = SpectralMeasure(np.zeros(1), np.ones(1))
    >>> round(free_upper_edge(nothing, np.ones(1), np.ones(1), 4.0), 6)
    2.25
    """
    from scipy.optimize import brentq, minimize_scalar

    top = float(measure.atoms.max())
    largest = float(atoms.max())

    def resolvent(t: float) -> float:
        return float(np.dot(measure.probabilities, 1 / (top + np.exp(t) - measure.atoms)))

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
    found = minimize_scalar(position, bounds=around, method="bounded", options={"xatol": 1e-8})
    return float(min(found.fun, values[best]))


class PredictedBulk:
    r"""Bulk edges of a moment operator without features, and with those that were found.

    Parameters
    ----------
    operator : MomentOperator
        Its weights and the norms of its samples set the noise.
    rng : Generator
        For the quadrature of the population operator.
    """

    def __init__(self, operator: MomentOperator, rng: np.random.Generator) -> None:
        self.features = operator.features
        self.corrected = operator.correction == "wick"
        self.n_features = operator.shape[0]
        self.aspect_ratio = operator.n_samples / self.n_features
        self.noise_scale = operator.statistics.noise_scale
        # The correction removes the mean eigenvalue together with the rest of the bias.
        self.centre = 0.0 if self.corrected else operator.statistics.shift
        self.atoms, self.chance = weight_law(operator.weighted_norms)
        self._operator = operator
        # One seed for all rounds, so that edges change with the features only.
        self._seed = int(rng.integers(2**31))

    @cached_property
    def _noise(self) -> BulkEdges:
        """Noise around zero mean."""
        mean = float(np.dot(self.chance, self.atoms))
        upper, upper_scale, _ = upper_edge(self.atoms, self.aspect_ratio, self.chance)
        lower, lower_scale, _ = upper_edge(-self.atoms, self.aspect_ratio, self.chance)
        return BulkEdges(-lower - mean, upper - mean, lower_scale, upper_scale)

    @cached_property
    def noise_edges(self) -> tuple[float, float]:
        """Edges of the noise, with a margin for its fluctuations."""
        lower, upper = self._noise.with_margin(dimension=self.n_features, probability=NOISE_INSIDE)
        return lower + self.centre, upper + self.centre

    @cached_property
    def edges(self) -> tuple[float, float]:
        """Edges before any feature is known: those of the noise and of the bias read off the data."""
        nothing = np.empty((self.n_features, 0))
        return self.edges_with(np.empty(0), nothing)

    def edges_with(self, values: np.ndarray, vectors: np.ndarray) -> tuple[float, float]:
        r"""Edges when the population operator of the features found is added to the noise.

        With :math:`\theta_i` the spikes behind the eigenvalues, :math:`M_i` the features as
        matrices and :math:`B_1=E[T(xx^\top-I)]`,

        .. math:: P[U] = B_1U + UB_1 + 2\sum_i\theta_iM_iUM_i,

        of which the Wick correction leaves the last term. For :math:`T=h^{(2)}`,
        :math:`B_1=2\sum_i\theta_iM_i^2`; here it is measured.

        Parameters
        ----------
        values : ndarray of shape (k,)
            Eigenvalues of the features.
        vectors : ndarray of shape (D, k)
            Their eigenvectors.

        Returns
        -------
        tuple of float
            Lower and upper edge, never inside :attr:`noise_edges`; equal to them for features that
            are not quadratic, whose population operator has no known bulk here.

        Notes
        -----
        Derived (note 3.6); backed by ``tests/learners/test_bulk.py``.
        """
        known = isinstance(self.features, HermiteFeatures) and self.features.degree == 2
        nothing = self.corrected and values.size == 0
        if not known or nothing or self.n_features - values.size < 2:
            return self.noise_edges
        rng = np.random.default_rng(self._seed)
        measure = quadrature_of(self._population(values, vectors), vectors, rng)
        mean = float(np.dot(self.chance, self.atoms))
        upper = free_upper_edge(measure, self.atoms, self.chance, self.aspect_ratio) - mean
        mirrored = measure.flipped()
        lower = -free_upper_edge(mirrored, -self.atoms, self.chance, self.aspect_ratio) - mean
        free = BulkEdges(lower, upper, self._noise.lower_scale, self._noise.upper_scale)
        moved = free.with_margin(dimension=self.n_features, probability=NOISE_INSIDE)
        return min(moved[0], self.noise_edges[0]), max(moved[1], self.noise_edges[1])

    def spikes(self, values: np.ndarray) -> np.ndarray:
        r"""Spike heights behind eigenvalues, from :math:`\hat\lambda = \theta + s^2/\theta`."""
        moved = values - self.centre
        root = np.sqrt(np.maximum(moved**2 - 4 * self.noise_scale**2, 0.0))
        return np.asarray((moved + np.sign(moved) * root) / 2)

    @cached_property
    def _contraction(self) -> np.ndarray:
        """B_1, the bias of the uncorrected operator: the moment of the inputs themselves."""
        inputs = HermiteFeatures(1, self.features.dimension)
        moment = MomentOperator(self._operator.source, self._operator.weights, inputs)
        return np.asarray(moment.matmat(np.eye(inputs.dimension)))

    def _population(
        self, values: np.ndarray, vectors: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        features = self.features
        assert isinstance(features, HermiteFeatures)
        matrices = np.asarray(features.to_symmetric(vectors))
        heights = 2 * self.spikes(values)

        def apply(vector: np.ndarray) -> np.ndarray:
            U = np.asarray(features.to_symmetric(vector[:, None]))[0]
            image = np.tensordot(heights, matrices @ U @ matrices, axes=1)
            if not self.corrected:
                image = image + self._contraction @ U + U @ self._contraction
            return np.asarray(features.from_symmetric(image[None]))[:, 0]

        return apply
