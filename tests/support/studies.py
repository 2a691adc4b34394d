"""Small studies of a system for its tests: records, points, changed points, verdicts, figures."""

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
    """Metrics of one replicate."""
    return system.measure(system.parameters(**setting), random_stream(stream, seed))


def point_of(system: System, setting: dict[str, Any], seeds: int, stream: str = "one") -> Point:
    """A point with so many replicates, and its prediction."""
    parameters = system.parameters(**setting)
    records = [record_of(system, setting, seed, stream) for seed in range(seeds)]
    prediction = predicted_or_refused(system.predict, parameters)
    return Point(parameters.model_dump(), records, prediction)


def changed(
    points: Sequence[Point], metric: str, change: Callable[[Any, Point], Any]
) -> list[Point]:
    """The same points with every number of a metric changed; None stays."""

    def moved(value: Any, point: Point) -> Any:
        if isinstance(value, list):
            return [moved(entry, point) for entry in value]
        return None if value is None else change(value, point)

    return [
        replace(p, metrics=[record | {metric: moved(record[metric], p)} for record in p.metrics])
        for p in points
    ]


def verdict_of(system: System, claim: str, points: Sequence[Point]) -> Verdict:
    """Verdict of the claim of a name."""
    (row,) = [row for row in system.claims if row.name == claim]
    return row.verdict(system.settled(points))


def check_without_points(claim: Any) -> None:
    """A claim says at length what is missing where there are no points."""
    nothing = claim.verdict([])
    assert nothing.status == "not testable"
    assert len(nothing.reason) > 20


def check_chance(system: System, points: Sequence[Point]) -> None:
    """No claim holds of a learner that knows nothing."""
    for row in system.power(points):
        assert row.chance != "holds", row.claim


def figures_of(
    system: System, points: Sequence[Point], resolution: int, *, gaps: bool = False
) -> list[Figure]:
    """Figures with few points of theory, each with a name of its own, a caption and full series."""
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
    """A size that theory answers at and a measurement refuses."""
    parameters = system.parameters(**setting)
    assert system.predict(parameters)
    with pytest.raises(InvalidParameter, match=words):
        system.measure(parameters, np.random.default_rng(0))
