"""Directions of multi-index models as outliers of a label-weighted second moment of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from solvable.arrays import Array, Source, random_stream
from solvable.models.multi_index.whitening import Scaling
from solvable.operators import HermiteFeatures, MomentOperator, choose_route, leading_eigenpairs
from solvable.operators.base import MomentStatistics, SymmetricOperator
from solvable.operators.blocks import array_behind
from solvable.operators.eigen import Eigenpairs

MARGIN = 0.02
"""Least distance of an outlier from the edge with permuted labels, in half-widths of the bulk."""

FULL_SPECTRUM = 400
"""Dimension up to which a full eigendecomposition is faster than a partial one."""


class InputMoment(SymmetricOperator):
    """Second moment of inputs with weights T, stored as a (d, d) matrix if products are then faster."""

    # D = (1/n) sum T(y) z z^T, z = P L^-1 x   (multi-index 7). L whitens; P removes known directions.

    def __init__(
        self,
        source: Source,
        weights: np.ndarray,
        *,
        scaling: Scaling | None = None,
        known: np.ndarray | None = None,
        n_vectors: int = 32,
        chunk_rows: int | None = None,
    ) -> None:
        scaling = scaling or Scaling()
        self.features = HermiteFeatures(1, source.n_columns)
        self.scaling = scaling
        self.known = known  # orthonormal directions that P removes, (d, k)
        self.moment = MomentOperator(
            scaling.source(source), weights, self.features, chunk_rows=chunk_rows
        )
        self.n_samples, self.correction = source.n_samples, self.moment.correction
        # Passes over samples that are drawn again or read from disk take longer than the arithmetic.
        behind = array_behind(source)
        slow = behind is None or isinstance(behind, np.memmap)
        size = source.n_columns
        route = choose_route(
            self.n_samples, self.features, min(n_vectors, size), itemsize=self.itemsize
        )
        # The dual route needs unscaled samples. It is chosen if there are few samples, so that products
        # are fast.
        held = route.name == "dense" or (slow and size <= 5_000)
        self._held = self._matrix() if held else None

    def _matrix(self) -> np.ndarray:
        # MomentOperator subtracts mean(T) I, which must not be whitened. It is added back first.
        matrix = self.moment.dense()
        matrix[np.diag_indices(len(matrix))] += self.moment.weights.mean()
        matrix = self.scaling.turn_back(self.scaling.turn_back(matrix).T)
        matrix = self._without_known(self._without_known(matrix).T)
        return np.asarray((matrix + matrix.T) / 2)

    def _without_known(self, U: np.ndarray) -> np.ndarray:
        return U if self.known is None else U - self.known @ (self.known.T @ U)

    def _apply(self, U: Array) -> Array:
        if self._held is not None:
            return self._held @ U
        V = self.scaling.turn(self._without_known(U))
        product = self.moment.matmat(V) + self.moment.weights.mean() * V
        return self._without_known(self.scaling.turn_back(product))

    @property
    def itemsize(self) -> int:
        """Bytes per entry of the samples in products: 4 or 8."""
        return self.moment.itemsize

    def blocks(self, rows: int) -> Iterator[tuple[Array, np.ndarray]]:
        """Yield centred and scaled samples with their weights, in order."""
        return self.moment.blocks(rows)

    @property
    def weighted_norms(self) -> np.ndarray:
        """Weight T times squared norm of x, divided by d, for every centred and scaled sample."""
        return self.moment.weighted_norms

    @property
    def statistics(self) -> MomentStatistics:
        """Averages over the centred and scaled samples."""
        return self.moment.statistics

    def dense(self) -> np.ndarray:
        """Return the operator as a matrix."""
        return self._matrix() if self._held is None else self._held


@dataclass(frozen=True)
class SpectralDirections:
    """Directions sorted by distance from the bulk, and the edges with which they were compared."""

    directions: np.ndarray  # orthonormal directions of the whitened inputs, (d, k)
    eigenvalues: np.ndarray  # eigenvalue of each direction, (k,)
    outliers: np.ndarray  # True if the eigenvalue is beyond an edge plus margin, (k,)
    edges: tuple[float, float]  # lower and upper edge of the bulk with permuted labels
    rejected: tuple[
        str, ...
    ]  # reasons why the next candidates, or kept directions, are not outliers

    def first(self, count: int) -> SpectralDirections:
        """Return the `count` directions farthest from the bulk."""
        return replace(
            self,
            directions=self.directions[:, :count],
            eigenvalues=self.eigenvalues[:count],
            outliers=self.outliers[:count],
        )


def permuted_edges(
    operator_of: Callable[[np.ndarray], InputMoment],
    weights: np.ndarray,
    n_permutations: int,
    seed: int,
) -> tuple[float, float]:
    """Smallest and largest eigenvalue over all operators with permuted labels."""
    lower, upper = np.inf, -np.inf
    for draw in range(n_permutations):
        order = random_stream(seed, "permuted labels", draw).permutation(weights.size)
        operator = operator_of(weights[order])
        size = operator.shape[0]
        pairs = end_pairs(
            operator, 1, min(1, size - 1), random_stream(seed, "permuted start", draw)
        )
        lower, upper = min(lower, float(pairs.values[-1])), max(upper, float(pairs.values[0]))
    return lower, upper


def end_pairs(
    operator: InputMoment,
    n_upper: int,
    n_lower: int,
    rng: np.random.Generator,
    enough: Callable[[Eigenpairs], bool] | None = None,
) -> Eigenpairs:
    """Eigenpairs at both ends of the spectrum; residuals are below 0.001 of the largest eigenvalue."""
    size = operator.shape[0]
    explicit = size <= FULL_SPECTRUM or 3 * (n_upper + n_lower) >= size
    return leading_eigenpairs(
        operator,
        n_upper,
        n_lower,
        route="dense" if explicit else "lanczos",
        tolerance=1e-3,
        rng=rng,
        enough=enough,
    )


def default_permutations(n_samples: int, dimension: int) -> int:
    """Default number of label permutations; small matrices need more, as their edges fluctuate more."""
    # With m = min(n, d) the relative fluctuations of an edge are about 0.6 m^(-2/3). For m >= 1000 they
    # are below the margin of 2 %. With 19 permutations an edge is exceeded by chance once in twenty
    # fits, for any inputs.
    return int(np.clip(2_000 // min(n_samples, dimension), 1, 19))


def spectral_directions(
    operator_of: Callable[[np.ndarray], InputMoment],
    weights: np.ndarray,
    n_directions: int | None,
    *,
    n_permutations: int | None = None,
    seed: int,
) -> SpectralDirections:
    """Find all outliers at both ends, or the `n_directions` eigenvectors farthest from the bulk."""
    operator = operator_of(weights)
    size = operator.shape[0]
    known = 0 if operator.known is None else operator.known.shape[1]
    edges = permuted_edges(
        operator_of, weights, n_permutations or default_permutations(weights.size, size), seed
    )
    room = MARGIN * (edges[1] - edges[0]) / 2
    available = size - known

    def beyond(values: np.ndarray) -> np.ndarray:
        """Distance of each eigenvalue beyond the nearer edge; negative inside the bulk."""
        return np.asarray(np.maximum(values - edges[1], edges[0] - values))

    def enough(pairs: Eigenpairs) -> bool:
        # Ritz values move outwards with iterations. Values that stay inside the bulk need no precision.
        distance = beyond(pairs.values) - room
        near = pairs.residuals <= np.maximum(5e-3 * pairs.scale, -distance / 4)
        return bool(pairs.converged[distance > 0].all() and near[distance <= 0].all())

    wanted = 8 if n_directions is None else n_directions
    while True:
        per_end = min(wanted, size - size // 2), min(wanted, size // 2)
        rng = random_stream(seed, "start", wanted)
        pairs = end_pairs(operator, *per_end, rng, enough if n_directions is None else None)
        distance = beyond(pairs.values)
        innermost = distance[[per_end[0] - 1, per_end[0] % distance.size]] > room
        if n_directions is not None or sum(per_end) == size or not innermost.any():
            break
        wanted *= 2
    if known:
        # Known directions are null vectors of the operator and therefore not candidates.
        share = np.sum((operator.known.T @ pairs.vectors) ** 2, axis=0)  # type: ignore[union-attr]
        distance = np.where(share > 0.5, -np.inf, distance)
    ranking = np.argsort(-distance, kind="stable")[: min(distance.size, available)]
    outliers = distance > room
    count = int(np.count_nonzero(outliers)) if n_directions is None else n_directions
    kept = ranking[:count]
    return SpectralDirections(
        directions=pairs.vectors[:, kept],
        eigenvalues=pairs.values[kept],
        outliers=outliers[kept],
        edges=edges,
        rejected=_reasons(pairs.values[ranking], outliers[ranking], count, edges, room),
    )


def _reasons(
    values: np.ndarray, outliers: np.ndarray, count: int, edges: tuple[float, float], room: float
) -> tuple[str, ...]:
    """Explain why kept directions and the next three candidates inside the bulk are not outliers."""
    inside = np.flatnonzero(~outliers)
    shown = inside[: max(3, int(np.count_nonzero(inside < count)))]
    return tuple(
        f"eigenvalue {values[k]:.4g} (rank {k + 1}) is not significant: with permuted labels the bulk is "
        f"[{edges[0]:.4g}, {edges[1]:.4g}], and an outlier must exceed it by {room:.2g}"
        + ("; its direction is kept because n_directions requires it. " if k < count else ". ")
        + "The bulk shrinks as 1/sqrt(n): use more samples or another label_map."
        for k in map(int, shown)
    )
