"""Figures of a system at one setting: theory lines along its axis, and points of a run on top."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.errors import InvalidParameter
from solvable.explore.memo import Remembered, remembered
from solvable.explore.nodes import Nodes, nodes_within
from solvable.explore.span import span_of
from solvable.frame.curves import Curve
from solvable.frame.drawn import Fault, draw_panels, panel_name
from solvable.frame.panels import Panel
from solvable.frame.points import Metrics, Point, predicted_or_refused, raised_prediction
from solvable.frame.spectrum import Spectrum
from solvable.frame.system import System
from solvable.paths import error_line
from solvable.plots.figure import Figure, Marker
from solvable.study.parameters import validate_parameters
from solvable.study.results import StudyResult

LONGEST = 60.0
"""Seconds for the lines of one setting if the caller sets no limit."""


@dataclass(frozen=True)
class Lines:
    """Figures of one setting, and what they cost.

    `complete` is False if lines are interpolated between fewer predictions than they could have; a
    second call with more seconds computes only the missing ones. `refusal` is the reason if nothing
    is predicted at this setting.
    """

    figures: list[Figure] = field(default_factory=list)
    seconds: float = 0.0
    refusal: str = ""
    faults: list[Fault] = field(default_factory=list)
    complete: bool = True
    predictions: int = 0  # number of predictions between which lines are interpolated
    left_out: int = 0  # points of the run at other settings
    omitted: list[str] = field(default_factory=list)  # panels that need measurements


def theory_figures(
    system: System,
    settings: Mapping[str, Any],
    result: StudyResult | None = None,
    seconds: float | None = None,
    *,
    only: Sequence[str] | None = None,
    newer: Callable[[], bool] = lambda: False,
) -> Lines:
    """Draw the panels of a system from its theory, with the points of a run at the same setting.

    Parameters that are not in `settings` have their defaults. `seconds` limits the time of the lines;
    with `only`, panels with other names are left out. Refinement ends once `newer` returns True.
    """
    start = time.perf_counter()
    try:
        setting = validate_parameters(system, settings)
    except InvalidParameter as error:
        return Lines(refusal=str(error))
    if system.axis is None or type(system).figures is not System.figures or not system.panels:
        return Lines(refusal=f"{system.name} has no panels that theory alone can draw.")
    points = [] if result is None else system.settled(result.points)
    with threadpool_limits(limits=1):
        return _drawn(system, setting, points, seconds, only, newer, start)


def _drawn(
    system: System,
    setting: Any,
    measured: Sequence[Point],
    seconds: float | None,
    only: Sequence[str] | None,
    newer: Callable[[], bool],
    start: float,
) -> Lines:
    memo = remembered(system)
    budget = LONGEST if seconds is None else seconds
    here = _predicted_point(memo, setting)
    same = [point for point in measured if _alike(system, point, here)]
    left = budget - (time.perf_counter() - start)
    curve, nodes = _curve(system, memo, here, same, left, newer)
    shown, omitted = _panels(system, only, measured=bool(same))
    drawn = draw_panels(shown, [curve])
    failed = {fault.name for fault in drawn.faults}
    figures = [f for f in drawn.figures if _has_values(f) or f.name in failed]
    names = [figure.name for figure in figures]
    omitted += [p.name for p in shown if isinstance(p, Panel) and not _has(names, p.name)]
    predicted = any(curve.predictions)
    return Lines(
        figures=[_at(_as_drawn(figure), system, here) for figure in figures],
        seconds=time.perf_counter() - start,
        refusal="" if predicted else here.refusal or "theory predicts nothing at this setting",
        faults=[*drawn.faults],
        complete=nodes.complete,
        predictions=len(nodes.found),
        left_out=len(measured) - len(same),
        omitted=omitted,
    )


def _predicted_point(memo: Remembered, setting: Any) -> Point:
    """Return a point without replicates."""
    try:
        metrics: Metrics = predicted_or_refused(memo.predict, setting)
    except Exception as error:  # a system may raise any exception
        metrics = raised_prediction(error_line(error))
    return Point(setting.model_dump(mode="json"), (), metrics, setting)


def _alike(system: System, point: Point, here: Point) -> bool:
    """Return True if two points are on one curve."""
    assert system.axis is not None
    skipped = {system.axis.parameter, *system.axis.ignore}
    fields = point.setting.model_dump(mode="json")
    return all(value == here.parameters[n] for n, value in fields.items() if n not in skipped)


def _curve(
    system: System,
    memo: Remembered,
    here: Point,
    same: Sequence[Point],
    seconds: float,
    newer: Callable[[], bool],
) -> tuple[Curve, Nodes]:
    """Return the curve through a setting, and its predictions."""
    axis = system.axis
    assert axis is not None
    points = tuple(sorted(same, key=axis.coordinate)) or (here,)
    grid = axis.grid(*span_of(system, [*points, here]))
    x = axis.coordinate(here)
    first = int(np.abs(grid - x).argmin())
    grid[first] = x  # the prediction at the setting is one of the line
    along = partial(memo.along, here.setting)
    nodes = nodes_within(along, grid, seconds, first, newer)
    line = nodes.line(log=axis.scale_from(float(grid[0])) == "log")
    curve = Curve(points, axis, lambda *_: line, theory=memo.predict, places=grid)
    return curve, nodes


def _panels(
    system: System, only: Sequence[str] | None, *, measured: bool
) -> tuple[list[Any], list[str]]:
    """Return the panels that can be drawn, and the names of those that need measurements."""
    shown, omitted = [], []
    for panel in system.panels:
        name = panel_name(panel)
        if only is not None and name not in only:
            continue
        if not measured and _needs_measurements(panel):
            omitted.append(name)
        else:
            shown.append(panel)
    return shown, omitted


def _needs_measurements(panel: Any) -> bool:
    """Return True for a histogram, and for a panel whose traces have no theory."""
    if isinstance(panel, Panel):
        traces = [*panel.traces, *panel.once]
        return panel.also is None and all(trace.theory is None for trace in traces)
    return isinstance(panel, Spectrum)


def _has_values(figure: Figure) -> bool:
    """Return True if a series has a finite value."""
    return any(np.isfinite(np.asarray(series.y, dtype=float)).any() for series in figure.series)


def _as_drawn(figure: Figure) -> Figure:
    """Leave out the sentences of a caption on measurements that are not on the figure."""
    kinds = {series.kind for series in figure.series}
    absent = [] if "points" in kinds else ["Points", "Measured", "Hollow"]
    absent += [] if "histogram" in kinds else ["Histogram"]
    sentences = re.split(r"(?<=[.]) (?=[A-Z])", figure.caption)
    kept = [words for words in sentences if not words.startswith(tuple(absent))]
    return replace(figure, caption=" ".join(kept))


def _has(names: Sequence[str], panel: str) -> bool:
    return any(name == panel or name.startswith(f"{panel}-") for name in names)


def _at(figure: Figure, system: System, here: Point) -> Figure:
    """Mark the setting on a figure along the axis of the system."""
    assert system.axis is not None
    if figure.x_label != system.axis.label:
        return figure
    x = system.axis.coordinate(here)
    words = f"{system.axis.parameter.replace('_', ' ')} = {x:.4g}"
    return replace(figure, markers=[*figure.markers, Marker(x, words)])
