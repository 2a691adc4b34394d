"""The contract of a system as one test: presets, parameters, metrics, streams, claims, panels."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidSystem
from solvable.frame.claims import Statement, presets_named
from solvable.frame.points import NO_PREDICTION, Metrics, Point, predicted_or_refused
from solvable.frame.references import works_of
from solvable.frame.system import System
from solvable.paths import error_line


def check_system(system: System, *, preset: str = "quick", setting: Any = None) -> None:
    """Test that a system keeps the contract that studies, reports and claims rest on.

    Every point of every preset must be valid, every parameter described, and every metric a number, a
    list or a word. Measurements and targets must depend on the random stream alone. Claims must have
    distinct names and a source, and must fail on records that contradict the prediction. Panels must
    draw. Two replicates are measured at one setting; everything else uses predictions.

    Parameters
    ----------
    system : System
        The system.
    preset : str
        Preset at whose points claims and panels are tested; every system has ``quick``.
    setting : mapping, optional
        Parameters at which replicates are measured, such as small ones; default the first point of
        the preset.

    Examples
    --------
    >>> from solvable.frame.registry import load
    >>> check_system(load("diagonal-network"))
    """
    faults = [*_described(system), *_valid_presets(system)]
    if not faults:
        faults += _tested(system, preset, setting)
    if faults:
        raise InvalidSystem(f"system {system.name!r} breaks its contract: " + "; ".join(faults))


def _tested(system: System, preset: str, setting: Any) -> Iterator[str]:
    if preset not in system.presets:
        yield f"it has no preset {preset!r}; add one that runs in under a minute"
        return
    grid = system.presets[preset].grid
    first = {name: next(iter(values)) for name, values in grid.items()}
    parameters = system.parameters(**(first if setting is None else setting))
    measured: list[Metrics] = []
    for check in (_measured, _taught):
        try:
            yield from check(system, parameters, measured)
        except Exception as error:
            yield f"at {first if setting is None else setting} it raised {error_line(error)}"
    if not measured:
        return
    points = _predicted_points(system, grid, measured[0])
    yield from _claimed(system, points)
    drawn = system.drawn(points, seconds=0.0, resolution=3)
    yield from (f"{fault.part} {fault.name} raised {fault.error}" for fault in drawn.faults)


def _described(system: System) -> Iterator[str]:
    """Faults of the name, title, descriptions, claims and sources."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", system.name):
        yield f"its name is {system.name!r}; allowed: lower-case words joined by hyphens"
    if not system.title.strip():
        yield "its title is empty"
    for name, field in system.parameters.model_fields.items():
        if not (field.description or "").strip():
            yield f"parameter {name!r} has no description; write one line below its field"
    names = [claim.name for claim in system.claims]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{names.count(name)} claims are named {name!r}; their names must differ"
    for claim in system.claims:
        for what in ("statement", "source", "tolerance_reason"):
            if not str(getattr(claim, what)).strip():
                yield f"claim {claim.name!r} has no {what.replace('_', ' ')}"
        yield from _missing_works(claim, system)
        for names, _ in presets_named(getattr(claim, "missing", "")):
            for name in set(names) - set(system.presets):
                yield f"claim {claim.name!r} names the preset {name!r}, which the system does not have"
    if not system.references:
        yield "it has no references; name the paper that the model comes from"


def _missing_works(claim: Statement, system: System) -> Iterator[str]:
    """Works that a claim's source cites and the references of the system lack."""
    for work in works_of(claim.source):
        if not any(work == entry.key or work in entry.bibtex for entry in system.references):
            yield (
                f"claim {claim.name!r} cites {work}, which is not among the references of the system; "
                f"add it to them, or correct the source"
            )


def _valid_presets(system: System) -> Iterator[str]:
    """Faults of presets: points that the parameters refuse, too few replicates."""
    for name, preset in system.presets.items():
        for values in itertools.product(*preset.grid.values()):
            try:
                system.parameters(**dict(zip(preset.grid, values, strict=True)))
            except ValueError as error:
                yield f"preset {name!r} has an invalid point: {error_line(error)}"
                break
        if preset.replicates < 1:
            yield f"preset {name!r} has {preset.replicates} replicates; allowed: 1 or more"


def _measured(system: System, parameters: Any, measured: list[Metrics]) -> Iterator[str]:
    """Faults of metrics: wrong types, different names in `measure` and `predict`, hidden randomness."""
    first, again, other = (
        system.measure(parameters, random_stream("check", seed)) for seed in (0, 0, 1)
    )
    measured.append(first)
    yield from (f"measure returns {name!r}: {fault}" for name, fault in _not_plain(first))
    if not _equal(first, again):
        yield "measure gives other numbers from the same random stream; draw from rng alone"
    if _equal(first, other):
        yield "measure gives the same numbers from two random streams; draw from rng"
    prediction = predicted_or_refused(system.predict, parameters)
    yield from (f"predict returns {name!r}: {fault}" for name, fault in _not_plain(prediction))
    if NO_PREDICTION not in prediction and not prediction.keys() & first.keys():
        yield (
            f"no metric has one name in measure ({', '.join(first)}) and predict "
            f"({', '.join(prediction)})"
        )


def _taught(system: System, parameters: Any, measured: list[Metrics]) -> Iterator[str]:
    """Faults of the stored target, which must depend on the random stream alone."""
    first, again = (system.teacher(parameters, random_stream("check", 0)) for _ in range(2))
    for name, array in first.items():
        if not np.issubdtype(np.asarray(array).dtype, np.number):
            yield f"teacher returns {name!r}, which is not an array of numbers"
        elif not np.array_equal(array, again[name]):
            yield f"teacher gives another {name!r} from the same random stream"


def _not_plain(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in metrics.items():
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if isinstance(entry, str | None) and (entry is None or not isinstance(value, list)):
                continue
            if not isinstance(entry, int | float | np.number) or isinstance(entry, bool):
                yield (
                    name,
                    f"a {type(entry).__name__}; allowed: numbers, None, lists of them, words",
                )
                break
            if not np.isfinite(entry):
                yield name, f"{entry}; allowed: finite numbers, or None where there is none"
                break


def _equal(one: Metrics, other: Metrics) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(np.array(one[name], dtype=object), np.array(other[name], dtype=object))
        for name in one
    )


def _predicted_points(
    system: System, grid: Mapping[str, Sequence[Any]], template: Metrics
) -> list[Point]:
    """Build points whose replicates equal the prediction; other metrics come from one replicate."""
    points = []
    for values in itertools.product(*grid.values()):
        setting = system.parameters(**dict(zip(grid, values, strict=True)))
        prediction = predicted_or_refused(system.predict, setting)
        known = {name: prediction[name] for name in template if name in prediction}
        metrics = [{**template, **known} for _ in range(4)]
        points.append(Point(setting.model_dump(), metrics, prediction, setting))
    return points


def _claimed(system: System, points: Sequence[Point]) -> Iterator[str]:
    """Faults of claims that hold on the prediction and also on records that contradict it."""
    right = {verdict.claim: verdict for verdict in system.verdicts(points)}
    wrong: Sequence[Callable[[float], float]] = (
        lambda x: 3 * x + 1,
        lambda x: x / 3 - 1,
        lambda x: 0.0,
    )
    with np.errstate(all="ignore"):  # values far outside any measurement
        outcomes = [
            {verdict.claim: verdict.status for verdict in system.verdicts(_changed(points, change))}
            for change in wrong
        ]
    for name, verdict in right.items():
        if verdict.status == "holds" and all(found[name] == "holds" for found in outcomes):
            yield f"claim {name!r} holds whatever is measured; it tests nothing"


def _changed(points: Sequence[Point], change: Callable[[float], float]) -> list[Point]:
    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(entry) for entry in value]
        return value if value is None or isinstance(value, str) else float(change(float(value)))

    return [
        Point(
            point.parameters,
            [{name: changed(value) for name, value in row.items()} for row in point.metrics],
            point.prediction,
            point.setting,
        )
        for point in points
    ]
