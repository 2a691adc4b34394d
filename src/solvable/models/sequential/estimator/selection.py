"""Select the eigenvalues beyond the predicted edges as features; give reasons for each rejection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solvable.moment_spectrum.bulk_edges import Edges, NullEdges
from solvable.operators.eigen import Eigenpairs

Reason: TypeAlias = Literal["below threshold", "inside population bulk", "solver not converged"]
"""Reason for which a direction does not count as a feature."""


@dataclass(frozen=True)
class Rejection:
    """A candidate direction that does not count as a feature, with the reason."""

    rank: int  # rank among all candidates, 1 for the eigenvalue farthest beyond an edge
    eigenvalue: float
    # One of three reasons: the eigenvalue is inside the noise, which shrinks with more samples; it is
    # inside the population bulk, which does not shrink; or the solver did not converge.
    reason: Reason
    message: str  # sentence that states the reason with the values behind it
    returned: bool = False  # True if the direction is still returned (selection="forced")


@dataclass(frozen=True)
class Selection:
    """Candidates to return, most significant first, and the edges used for the test."""

    distance: np.ndarray  # distance of every candidate beyond the nearer edge; negative inside
    order: np.ndarray  # indices of the candidates returned
    outliers: np.ndarray  # True for each returned candidate that counts as a feature
    edges: NullEdges
    rejected: tuple[Rejection, ...]  # requested candidates that do not count as features


def is_enough(pairs: Eigenpairs, selection: Selection, wanted: int | None, *, forced: bool) -> bool:
    """Return True if further products with the operator cannot change the selection."""
    good = pairs.converged
    if wanted is not None and (forced or selection.outliers.sum() == wanted):
        return bool(good[selection.order].all())
    # Two conditions must hold. All candidates outside the bulk have converged. On each side, the
    # candidate inside the bulk that is nearest to the edge has too small a residual to leave the bulk,
    # since Ritz values only move outwards.
    outside = selection.distance > 0
    near = pairs.residuals <= np.maximum(5e-3 * pairs.scale, -selection.distance / 4)
    ends = np.arange(good.size) < pairs.n_upper
    sides = [np.flatnonzero(~outside & side) for side in (ends, ~ends)]
    nearest = [side[np.argmax(selection.distance[side])] for side in sides if side.size]
    return bool(good[outside].all() and near[nearest].all())


def beyond(values: np.ndarray, edges: Edges) -> np.ndarray:
    """Distance of each value beyond the nearer edge of the bulk; negative inside the bulk."""
    return np.maximum(values - edges[1], edges[0] - values)


def select_outliers(
    pairs: Eigenpairs,
    edges_with: Callable[[np.ndarray, np.ndarray], NullEdges],
    *,
    corrected: np.ndarray | None = None,
    wanted: int | None,
    forced: bool = False,
    by_modulus: bool = False,
) -> Selection:
    """Select the candidates outside the bulk, where the bulk depends on the selected features."""
    # `edges_with(values, vectors)` returns the edges for given selected features. The strongest
    # candidates outside the bulk are selected first and widen the population bulk. Weaker candidates
    # are then tested against the wider bulk, until no candidate is outside. `corrected` contains <u, W
    # u> for each candidate u, with the operator W whose lower Hermite components are removed: a feature
    # may be inside the plain bulk, which the feature itself widens, but outside the corrected bulk.
    values = pairs.values
    corrected = values if corrected is None else corrected
    chosen = np.zeros(values.size, dtype=bool)
    while True:
        edges = edges_with(values[chosen], pairs.vectors[:, chosen])
        distance = np.maximum(beyond(values, edges.bulk), beyond(corrected, edges.corrected))
        open_ones = ~chosen & pairs.converged & (distance > 0)
        if not open_ones.any():
            break
        # Only the strongest candidates are selected in each round. Eigenvectors at the edge of a
        # population bulk are not features and would imply a wrong bulk if they were selected.
        chosen |= open_ones & (distance >= distance[open_ones].max() / 2)
    outside = chosen & (distance > 0)
    # The published ranking is by modulus (arXiv:2605.14567, Algorithm 1). Otherwise, candidates clearly
    # beyond an edge are ranked by their distance from the edge, and all other candidates by their
    # distance from the centre of the bulk.
    far = np.abs(values) if by_modulus else np.maximum(distance - edges.room, 0.0)
    ranking = np.lexsort((-np.abs(values - edges.centre), -far))
    if forced:
        order = ranking[:wanted]
    else:
        order = np.array([k for k in ranking if outside[k]][:wanted], dtype=int)
    rejected = _reasons(pairs, edges, ranking, order, outside, wanted)
    return Selection(distance, order, outside[order], edges, rejected)


def _reasons(
    pairs: Eigenpairs,
    edges: NullEdges,
    ranking: np.ndarray,
    order: np.ndarray,
    outside: np.ndarray,
    wanted: int | None,
) -> tuple[Rejection, ...]:
    """Return the reason for each requested candidate that does not count as a feature."""
    missing = [(place, int(k)) for place, k in enumerate(ranking, start=1) if not outside[k]]
    if wanted is not None:
        missing = missing[: max(0, wanted - int(np.count_nonzero(outside)))]
    returned = set(order.tolist())
    rejections = [_reason(pairs, edges, place, k, k in returned) for place, k in missing]
    if wanted is not None:
        return tuple(rejections)
    # For n_directions="auto" at most three candidates are listed for each reason.
    seen: Counter[str] = Counter()
    shown = []
    for rejection in rejections:
        seen[rejection.reason] += 1
        if seen[rejection.reason] <= 3:
            shown.append(rejection)
    return tuple(shown)


def _reason(pairs: Eigenpairs, edges: NullEdges, rank: int, k: int, returned: bool) -> Rejection:
    value, residual = float(pairs.values[k]), float(pairs.residuals[k])
    name = f"eigenvalue {value:.4g} (rank {rank})"
    noise = f"[{edges.noise[0]:.4g}, {edges.noise[1]:.4g}]"
    bulk = f"[{edges.bulk[0]:.4g}, {edges.bulk[1]:.4g}]"
    reason: Reason
    if beyond(pairs.values[k : k + 1], edges.noise)[0] <= 0:
        reason = "below threshold"
        message = (
            f"{name} lies inside the noise, {noise}, and is not significant. The noise shrinks as "
            "1/sqrt(n). Use more samples or a bounded label map."
        )
    elif beyond(pairs.values[k : k + 1], edges.bulk)[0] <= 0:
        reason = "inside population bulk"
        message = (
            f"{name} lies outside the noise, {noise}, but inside the population bulk that the selected "
            f"features imply in this dimension, {bulk}. More samples do not help; use "
            "correction='wick' or a larger dimension."
        )
    else:
        reason = "solver not converged"
        message = (
            f"{name} lies outside the bulk, {bulk}, but its residual is {residual:.2e} after "
            f"{pairs.products} products (largest eigenvalue {pairs.scale:.4g}). Raise max_products "
            "or the tolerance."
        )
    return Rejection(rank, value, reason, message, returned)
