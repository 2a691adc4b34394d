"""Records from which figures of systems are drawn: measured once, stored, drawn by the present code."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from picture_data import ROUNDING, Picture, of_figure, plain

from solvable.frame import registry
from solvable.frame.points import Point, predicted_or_refused
from solvable.frame.system import System
from solvable.frame.theory_lines import LineBudget
from solvable.plots.figure import Figure
from solvable.study import Study, run_study

RECORDS = Path(__file__).parent / "figures" / "records"


class Drawing(NamedTuple):
    """Run of a system, and the beginning of the title of one of its figures."""

    system: str
    title: str
    preset: str = "quick"
    # Lines are interpolated between this number of predictions, independent of the machine's speed.
    predictions: int = 13
    accuracy: float = ROUNDING  # relative
    panel: int | None = None  # its number in the system, where other panels are slow
    width: float | None = None  # inches; None draws the figure of a report


Group = Mapping[str, Drawing]
"""Figures of one run, by the names of their files."""


def wanted(drawings: Group) -> list[dict[str, Drawing]]:
    """Group figures by their runs."""
    runs: dict[tuple[str, str], dict[str, Drawing]] = {}
    for name, asked in drawings.items():
        runs.setdefault((asked.system, asked.preset), {})[name] = asked
    return list(runs.values())


class Used(dict[str, Any]):
    """Metrics of a replicate that remember which of them were read."""

    names: set[str]

    def __getitem__(self, name: str) -> Any:
        """Return a metric."""
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a metric, or the default."""
        self.names.add(name)
        return super().get(name, default)


def path_of(group: Group) -> Path:
    """Return the file of the records of a run."""
    asked = next(iter(group.values()))
    return RECORDS / f"{asked.system}-{asked.preset}.json"


def measured(group: Group, directory: str | None = None) -> dict[str, Picture]:
    """Run the system, store the metrics that the figures read, and draw the figures."""
    asked = next(iter(group.values()))
    system = registry.load(asked.system)
    with tempfile.TemporaryDirectory() as home:
        run = run_study(Study(system, preset=asked.preset), directory or home)
        store(group, system, run.points)
    return redrawn(group)


def store(group: Group, system: System, points: Sequence[Point]) -> None:
    """Store the metrics of these points that the figures read, one line per point."""
    names: set[str] = set()
    followed = []
    for point in points:
        metrics = []
        for row in point.metrics:
            used = Used(row)
            used.names = names
            metrics.append(used)
        followed.append(replace(point, metrics=metrics))
    for asked in group.values():
        _find(system, followed, asked._replace(predictions=1))
    rows = [
        {
            "parameters": dict(point.parameters),
            "metrics": [
                {name: plain(value) for name, value in row.items() if name in names}
                for row in point.metrics
            ],
        }
        for point in points
    ]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    head = json.dumps({"system": system.name, "version": system.version})[:-1]
    RECORDS.mkdir(exist_ok=True)
    path_of(group).write_text(f'{head}, "points": [\n{lines}\n]}}\n', "utf-8")


def redrawn(group: Group, points: Sequence[Point] | None = None) -> dict[str, Picture]:
    """Draw figures from stored records, with predictions, panels and statistics of the present code."""
    system = registry.load(next(iter(group.values())).system)
    chosen = read(group, system) if points is None else points
    drawn = {name: of_figure(_find(system, chosen, asked)) for name, asked in group.items()}
    return {name: picture._replace(width=group[name].width) for name, picture in drawn.items()}


def read(group: Group, system: System) -> list[Point]:
    """Read stored points, predicted by the present code."""
    path = path_of(group)
    if not path.exists():
        names = " ".join(group)
        raise SystemExit(f"{path} is missing; measure it with `python docs/figures.py {names}`")
    content = json.loads(path.read_text("utf-8"))
    if content["version"] != system.version:
        raise SystemExit(
            f"{path}: records of version {content['version']} of {system.name}, which is now "
            f"{system.version}. Measure again: `python docs/figures.py {' '.join(group)}`"
        )
    points = []
    for row in content["points"]:
        setting = system.parameters(**row["parameters"])
        prediction = predicted_or_refused(system.predict, setting)
        points.append(Point(row["parameters"], row["metrics"], prediction, setting))
    return points


def _find(system: System, points: Sequence[Point], asked: Drawing) -> Figure:
    """Draw figures until one has the title."""
    titles = []
    for draw in _pieces(system, points, asked):
        for figure in draw():
            if figure.title.startswith(asked.title):
                return figure
            titles.append(figure.title)
    raise SystemExit(f"no figure is titled {asked.title!r}...; there are {'; '.join(titles)}")


def _pieces(
    system: System, points: Sequence[Point], asked: Drawing
) -> Iterator[Callable[[], list[Figure]]]:
    """Return functions that draw figures; those whose panel has the title come first."""
    curves = [
        replace(curve, budget=LineBudget(0.0, 1, fewest=asked.predictions))
        if curve.budget is not None or system._part("curve") is None
        else curve
        for curve in system.curves(points)
    ]
    later = []
    chosen = slice(None) if asked.panel is None else slice(asked.panel, asked.panel + 1)
    for panel in system.panels[chosen]:
        title = getattr(panel, "title", None)
        likely = isinstance(title, str) and asked.title.startswith(title[: len(asked.title)])
        pieces = getattr(panel, "pieces", None)
        draws = (
            [partial(lambda draw: [draw()], draw) for _, draw in pieces(curves)]
            if pieces is not None
            else [partial(panel, curves)]
        )
        if likely:
            yield from draws
        else:
            later += draws
    yield from later
