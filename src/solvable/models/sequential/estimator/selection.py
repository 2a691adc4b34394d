"""Which eigenvalues are features: two-sided, against predicted edges, with a reason for each no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solvable.moment_spectrum.bulk_edges import Edges, NullEdges
from solvable.operators.eigen import Eigenpairs

Reason: TypeAlias = Literal["below threshold", "inside population bulk", "solver not converged"]
"""Why a direction does not count as a feature."""


@dataclass(frozen=True)
class Rejection:
    """A direction that does not count as a feature, and why."""

    rank: int  # among all candidates by the distance of their eigenvalue beyond an edge, from 1
    eigenvalue: float
    # Inside the noise, of which more samples may lift it out; or inside the bulk of the population,
    # which no number of samples shrinks; or the solver stopped too early.
    reason: Reason
    message: str  # the reason with its numbers
    returned: bool = False  # whether it is returned all the same (selection="forced")


@dataclass(frozen=True)
class Selection:
    """Candidates that are returned, most significant first, and what they were tested against."""

    distance: np.ndarray  # of every candidate beyond the nearer edge, negative inside
    order: np.ndarray  # of the candidates returned
    outliers: np.ndarray  # whether each of them counts as a feature
    edges: NullEdges
    rejected: tuple[Rejection, ...]  # candidates asked for that do not count


def is_enough(pairs: Eigenpairs, selection: Selection, wanted: int | None, *, forced: bool) -> bool:
    """Whether more products could change what is selected."""
    good = pairs.converged
    if wanted is not None and (forced or selection.outliers.sum() == wanted):
        return bool(good[selection.order].all())
    # As many as there are: all that are outside must have converged, and on each side the one nearest
    # to the edge from inside must be known well enough to stay there, as Ritz values move outwards.
    outside = selection.distance > 0
    near = pairs.residuals <= np.maximum(5e-3 * pairs.scale, -selection.distance / 4)
    ends = np.arange(good.size) < pairs.n_upper
    sides = [np.flatnonzero(~outside & side) for side in (ends, ~ends)]
    nearest = [side[np.argmax(selection.distance[side])] for side in sides if side.size]
    return bool(good[outside].all() and near[nearest].all())


def beyond(values: np.ndarray, edges: Edges) -> np.ndarray:
    """Distance of values beyond the nearer edge, negative inside."""
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
    """Test every candidate against the edges that the features themselves predict."""
    # `edges_with(values, vectors)` are the edges given features. The strongest candidates outside are
    # features; they widen the population bulk, against which the weaker ones are tested, until none is
    # left outside. `corrected` is what the eigenvectors have of the operator without its lower
    # chaoses: a feature may stand out of the corrected bulk while the plain one, which it has widened
    # itself, still holds its eigenvalue.
    values = pairs.values
    corrected = values if corrected is None else corrected
    chosen = np.zeros(values.size, dtype=bool)
    while True:
        edges = edges_with(values[chosen], pairs.vectors[:, chosen])
        distance = np.maximum(beyond(values, edges.bulk), beyond(corrected, edges.corrected))
        open_ones = ~chosen & pairs.converged & (distance > 0)
        if not open_ones.any():
            break
        # The strongest first: eigenvectors at the edge of a population bulk are no features, and
        # would predict a bulk of their own if they were taken for some.
        chosen |= open_ones & (distance >= distance[open_ones].max() / 2)
    outside = chosen & (distance > 0)
    # Published: the largest moduli (2605.14567, Algorithm 1). Else clearly beyond the edges the distance
    # counts; inside, where an edge is no more than the end of
    # the noise, the modulus about the centre.
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
    """Say why the candidates asked for that are not features are none."""
    missing = [(place, int(k)) for place, k in enumerate(ranking, start=1) if not outside[k]]
    if wanted is not None:
        missing = missing[: max(0, wanted - int(np.count_nonzero(outside)))]
    returned = set(order.tolist())
    rejections = [_reason(pairs, edges, place, k, k in returned) for place, k in missing]
    if wanted is not None:
        return tuple(rejections)
    # Where no number was asked for, three of each reason are enough.
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
            f"{name} lies inside the noise, {noise}: it cannot be told from chance. The noise "
            "shrinks as 1/sqrt(n); more samples or a bounded label map may lift the feature out."
        )
    elif beyond(pairs.values[k : k + 1], edges.bulk)[0] <= 0:
        reason = "inside population bulk"
        message = (
            f"{name} lies outside the noise, {noise}, but inside the bulk that the features found "
            f"predict at this dimension, {bulk}. More samples do not help; correction='wick' or a "
            "larger dimension does."
        )
    else:
        reason = "solver not converged"
        message = (
            f"{name} lies outside the bulk, {bulk}, but its residual is {residual:.2e} after "
            f"{pairs.products} products (largest eigenvalue {pairs.scale:.4g}). Raise max_products "
            "or the tolerance."
        )
    return Rejection(rank, value, reason, message, returned)
