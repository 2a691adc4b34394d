"""Panels drawn one by one: an exception in one panel is shown in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from solvable.errors import InvalidParameter
from solvable.frame.curves import Curve, varying, words_of
from solvable.frame.panels import Panel, PanelFunction
from solvable.frame.points import RAISED
from solvable.frame.spectrum import Spectrum
from solvable.paths import error_line
from solvable.plots.figure import Figure
from solvable.plots.files import check_names
from solvable.plots.recording_backend import record


@dataclass(frozen=True)
class Fault:
    """A panel or a theory line that raised an exception."""

    part: str  # "panel" or "theory line"
    name: str  # of the figure, or the parameters of the curve
    error: str  # the exception in one line


class Drawn(NamedTuple):
    """Figures of a study, and the faults: an empty figure replaces a panel that raised."""

    figures: list[Figure]
    faults: list[Fault]


def draw_panels(panels: Sequence[Panel | PanelFunction], curves: Sequence[Curve]) -> Drawn:
    """Draw every panel for every curve; a figure that raises becomes a fault."""
    found = Drawn([], [])
    for panel in panels:
        name = panel_name(panel)
        for part, draw in _attempt(found, name, partial(_parts, panel, name, curves)):
            for figure in _attempt(found, part, draw):
                own = figure.name if isinstance(figure, Figure) else part
                found.figures.extend(_attempt(found, own, partial(_checked, figure, found)))
    names = varying(curves)
    for curve in curves:
        where = words_of(curve, names) or "all points"
        found.faults.extend(Fault("theory line", where, line) for line in curve.raised)
    return found


def failed_figure(name: str, line: str, taken: Iterable[str] = ()) -> Figure:
    """Return an empty figure that shows this line of an exception."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:90] or "panel"
    used, count = {one.lower() for one in taken}, 1
    own = plain
    while own.lower() in used:
        count += 1
        own = f"{plain}-{count}"
    return Figure(own, f"{name[:90]}: not drawn", "", "", [], f"{RAISED}{line}")


def _attempt(found: Drawn, name: str, draw: Callable[[], Iterable[Any]]) -> list[Any]:
    """Call a function that draws; if it raises, record the fault and return an empty figure."""
    try:
        return list(draw())
    except Exception as error:  # a panel may raise any exception
        line = error_line(error)
        found.faults.append(Fault("panel", name, line))
        found.figures.append(failed_figure(name, line, (one.name for one in found.figures)))
        return []


def _parts(
    panel: Panel | PanelFunction, name: str, curves: Sequence[Curve]
) -> list[tuple[str, Callable[[], Iterable[Any]]]]:
    """Split a panel into named figures, each with the function that draws it."""
    whole = Spectrum.__call__ if isinstance(panel, Spectrum) else Panel.__call__
    if isinstance(panel, Panel | Spectrum) and type(panel).__call__ is whole:
        return [(part, partial(_alone, draw)) for part, draw in panel.pieces(curves)]
    return [(name, partial(panel, curves))]


def _alone(draw: Callable[[], Figure]) -> list[Figure]:
    return [draw()]


def _checked(figure: Any, found: Drawn) -> list[Figure]:
    """Refuse a result that is not a figure, cannot be drawn, or repeats a name."""
    if not isinstance(figure, Figure):
        raise InvalidParameter(f"the panel returned a {type(figure).__name__}; allowed: Figure.")
    check_names([*found.figures, figure])
    record(figure)
    return [figure]


def panel_name(panel: Panel | PanelFunction) -> str:
    """Return the name of a panel, or of the function that draws it."""
    found = getattr(panel, "name", "") or getattr(panel, "__name__", "")
    return str(found).strip("<>_") or type(panel).__name__
