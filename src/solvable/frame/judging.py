"""Points and metrics that some claim judges; panels draw all others as hollow points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from solvable.frame.agreement import Agreement, compare
from solvable.frame.claims import Claim, NotTestable
from solvable.frame.points import EVERY_METRIC, Point
from solvable.frame.points_claim import PointsClaim


@dataclass(frozen=True)
class Watched(Point):
    """A point that records the names of the metrics read from it."""

    names: set[str] = field(default_factory=set, compare=False)

    def values(self, name: str) -> Any:
        """Return measured values as :class:`Point` does, and record the name."""
        self.names.add(name)
        return super().values(name)


def watched(point: Point) -> Watched:
    """Return a copy of the point that records the names of the metrics read from it."""
    fields = (point.parameters, point.metrics, point.prediction, point.setting, point.other)
    return Watched(*fields, judged=point.judged, former=point.former)


def metrics_read(function: Callable[[Point], Any], point: Point) -> set[str]:
    """Return the metrics that a function reads from a point; all of them if it reads none."""
    view = watched(point)
    function(view)
    return view.names or {EVERY_METRIC}


def with_judged(
    claims: Sequence[Claim | PointsClaim | Agreement], points: Sequence[Point]
) -> list[Point]:
    """Return the points with the metrics that some claim judges; unchanged without claims."""
    if not claims:
        return list(points)
    names: dict[str, set[str]] = {}
    predicted = [point for point in points if not point.refused]
    for claim in claims:
        try:
            for point, metrics in _judged_by(claim, predicted):
                names.setdefault(_key(point), set()).update(metrics)
        except Exception:
            continue  # the verdict holds the error
    return [replace(point, judged=frozenset(names.get(_key(point), ()))) for point in points]


def _judged_by(
    claim: Claim | PointsClaim | Agreement, points: Sequence[Point]
) -> list[tuple[Point, set[str]]]:
    """Return the points that a claim judges, each with the names of the metrics."""
    if isinstance(claim, Agreement):
        comparison = compare(claim, points)
        if isinstance(comparison, NotTestable):
            return []
        marks = comparison.judged()
        cells = [cell for cell, mark in zip(comparison.cells, marks, strict=True) if mark]
        pairs = [p for cell in cells for p in (cell.point, cell.point.other) if p is not None]
        used = {id(point): point for point in pairs}.values()
        if not callable(claim.metric):
            return [(point, {claim.metric}) for point in used]
        return [(point, metrics_read(claim.metric, point)) for point in used]
    views: list[Point] = [watched(point) for point in points]
    if isinstance(claim, PointsClaim):
        used_views = [point for group in claim.groups_used(views) for point in group]
    else:
        used_views = [] if isinstance(claim.check(views), NotTestable) else views
    metric = getattr(claim, "metric", None)
    if isinstance(metric, str):
        return [(point, {metric}) for point in used_views]
    return [(point, getattr(point, "names", None) or {EVERY_METRIC}) for point in used_views]


def _key(point: Point) -> str:
    return str(sorted((name, str(value)) for name, value in point.parameters.items()))
