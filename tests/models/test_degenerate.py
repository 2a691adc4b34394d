"""Claims and panels of every shipped system do not raise on incomplete records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from solvable.frame.points import Metrics, Point
from solvable.frame.registry import available, load
from solvable.study import Study
from solvable.study.execute import Job, execute

pytestmark = pytest.mark.usefixtures("few")

SHIPPED = [listing.name for listing in available() if listing.package.startswith("solvable")]

ONE_FEATURE: dict[str, dict[str, Any]] = {
    "sequential-recovery": {"features": 1, "dimension": 12, "samples": 2_000},
    "compositional-target": {"features": 1, "dimension": 12, "samples": 2_000, "width": 64},
    "emergence-in-sgd": {"features": 1, "dimension": 24},
    "hierarchical-multi-index": {"features": 1, "dimension": 40},
    "quadratic-flow": {"features": 2},
    "separable-multi-index": {"directions": 2, "dimension": 40},
    "narrow-network": {"width": 1, "dimension": 20},
}
"""Smallest numbers of features, for which lists have one entry or none."""


@cache
def record_of(name: str, **settings: Any) -> tuple[Mapping[str, Any], Metrics, Metrics]:
    """Parameters, metrics and prediction at the first point of a study."""
    system = load(name)
    study = Study(system, settings) if settings else Study(system, preset="quick")
    task = study.tasks[0]
    measured = execute(Job("task", task.identity, system, system.version, task.parameters))
    predicted = execute(Job("prediction", task.point, system, system.version, task.parameters))
    assert measured.metrics is not None, measured.error
    assert predicted.metrics is not None, predicted.error
    return task.parameters, measured.metrics, predicted.metrics


def missing(metrics: Metrics, *names: str) -> Metrics:
    """Remove the values of the given metrics, or of all metrics."""
    return {**metrics, **dict.fromkeys(names or metrics)}


def gaps(metrics: Metrics, *names: str) -> Metrics:
    """Replace every number, or the numbers of the given lists, by None."""
    return {
        name: value
        if names and name not in names
        else ([None] * len(value) if isinstance(value, list) else None)
        for name, value in metrics.items()
    }


def whole(metrics: Metrics, prediction: Metrics) -> Iterator[tuple[str, Metrics, Metrics]]:
    """Records without measured numbers, or without predicted numbers."""
    yield "as it is", metrics, prediction
    for word, lose in (("none", missing), ("gaps", gaps)):
        yield f"measured: {word}", lose(metrics), prediction
        yield f"predicted: {word}", metrics, lose(prediction)
        yield f"both: {word}", lose(metrics), lose(prediction)


def single(metrics: Metrics, prediction: Metrics) -> Iterator[tuple[str, Metrics, Metrics]]:
    """Records without one metric."""
    for word, lose in (("none", missing), ("gaps", gaps)):
        for name in metrics:
            yield f"measured {name}: {word}", lose(metrics, name), prediction
        for name in prediction:
            yield f"predicted {name}: {word}", metrics, lose(prediction, name)


@pytest.fixture
def theory_lines(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Metrics]]:
    """Function that replaces the theory lines of a system by constants, from its answer."""

    def constant(name: str) -> dict[str, Metrics]:
        held: dict[str, Metrics] = {}
        system = load(name)
        assert system.claims
        assert system.panels  # panels are imported before the change
        parts = system._parts | {"curve": lambda _, grid: [held["line"]] * len(grid)}
        monkeypatch.setattr(system, "_parts", parts)
        for module in [
            one for key, one in sys.modules.items() if key.startswith("solvable.models")
        ]:
            if hasattr(module, "predict_each"):
                monkeypatch.setattr(module, "predict_each", lambda *_: parts["curve"])
        return held

    return constant


@pytest.mark.parametrize("name", SHIPPED)
def test_what_was_not_measured_or_not_predicted_raises_nowhere(name, theory_lines):
    system, held = load(name), theory_lines(name)
    parameters, *record = record_of(name)
    raised: dict[str, str] = {}

    def judge(words: str, points: list[Point]) -> None:
        for verdict in system.verdicts(points):
            if verdict.status == "error":
                raised.setdefault(f"{verdict.claim}: {verdict.reason}", words)

    for words, metrics, held["line"] in whole(*record):
        for replicates in (1, 2):
            points = [Point(parameters, [metrics] * replicates, held["line"])]
            judge(words, points)
        for fault in system.drawn(points).faults:
            raised.setdefault(f"{fault.name}: {fault.error}", words)
    for words, metrics, held["line"] in single(*record):
        judge(words, [Point(parameters, [metrics] * 2, held["line"])])
    assert raised == {}


@pytest.mark.parametrize("name", ONE_FEATURE)
def test_one_feature_raises_nowhere(name, theory_lines):
    system, held = load(name), theory_lines(name)
    parameters, metrics, held["line"] = record_of(name, **ONE_FEATURE[name])
    for replicates in (1, 3):
        points = [Point(parameters, [metrics] * replicates, held["line"])]
        errors = [row for row in system.verdicts(points) if row.status == "error"]
        assert errors == []
        assert list(system.drawn(points).faults) == []


def test_the_claims_without_a_prediction_of_a_list_are_not_testable():
    parameters, metrics, prediction = record_of("sequential-recovery")
    lost = missing(prediction, "neighbour_mixing", "squared_overlap", "threshold_samples")
    system = load("sequential-recovery")
    verdicts = {one.claim: one for one in system.verdicts([Point(parameters, [metrics] * 2, lost)])}
    assert verdicts["neighbour-mixing"].status == "not testable"
    assert (
        "no two neighbouring features are predicted to mix" in verdicts["neighbour-mixing"].reason
    )
    assert verdicts["overlap-around-threshold"].status == "not testable"
