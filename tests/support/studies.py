"""Helpers for tests of systems: records, points, changed points, verdicts and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.claims import Verdict
from solvable.frame.points import Metrics, Point, predicted_or_refused
from solvable.frame.system import System
from solvable.plots.figure import Figure


def record_of(
    system: System, setting: dict[str, Any], seed: int = 0, stream: str = "one"
) -> Metrics:
    """Measure one replicate and return its metrics."""
    return system.measure(system.parameters(**setting), random_stream(stream, seed))


def point_of(system: System, setting: dict[str, Any], seeds: int, stream: str = "one") -> Point:
    """Return a point with this number of replicates, and its prediction."""
    parameters = system.parameters(**setting)
    records = [record_of(system, setting, seed, stream) for seed in range(seeds)]
    prediction = predicted_or_refused(system.predict, parameters)
    return Point(parameters.model_dump(), records, prediction)


def changed(
    points: Sequence[Point], metric: str, change: Callable[[Any, Point], Any]
) -> list[Point]:
    """Return points with every number of a metric replaced by `change(number, point)`."""

    def moved(value: Any, point: Point) -> Any:
        if isinstance(value, list):
            return [moved(entry, point) for entry in value]
        return None if value is None else change(value, point)

    return [
        replace(p, metrics=[record | {metric: moved(record[metric], p)} for record in p.metrics])
        for p in points
    ]


def verdict_of(system: System, claim: str, points: Sequence[Point]) -> Verdict:
    """Return the verdict of the claim with this name."""
    (row,) = [row for row in system.claims if row.name == claim]
    return row.verdict(system.settled(points))


def check_without_points(claim: Any) -> None:
    """Check that a claim without points is not testable, with a reason."""
    nothing = claim.verdict([])
    assert nothing.status == "not testable"
    assert len(nothing.reason) > 20


def check_chance(system: System, points: Sequence[Point]) -> None:
    """Check that no claim holds for a learner without information."""
    for row in system.power(points):
        assert row.chance != "holds", row.claim


def figures_of(
    system: System, points: Sequence[Point], resolution: int, *, gaps: bool = False
) -> list[Figure]:
    """Return figures with short theory lines; check names, captions and lengths of their series."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "axis", replace(system.axis, resolution=resolution))
        figures = system.figures(points)
    names = [figure.name for figure in figures]
    assert len(names) == len(set(names))
    for figure in figures:
        assert figure.caption
        for series in figure.series:
            edges = series.kind == "histogram"
            assert len(series.x) == len(series.y) + edges
            if series.kind != "points" and not gaps:
                assert np.isfinite(series.y).all(), (figure.name, series.label)
    assert system.figures([]) == []
    return list(figures)


def check_predicted_alone(system: System, setting: dict[str, Any], words: str) -> None:
    """Check that a size can be predicted but not measured."""
    parameters = system.parameters(**setting)
    assert system.predict(parameters)
    with pytest.raises(InvalidParameter, match=words):
        system.measure(parameters, np.random.default_rng(0))
