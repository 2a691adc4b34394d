"""Content of a report, gathered from a system and its study."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, get_args, get_origin

from solvable.frame.claims import Verdict
from solvable.frame.drawn import Drawn, Fault
from solvable.frame.parameters import Parameters
from solvable.frame.points import Point
from solvable.frame.references import Reference
from solvable.frame.system import System
from solvable.plots.figure import Figure
from solvable.study.results import Failure
from solvable.study.tables import format_value


@dataclass(frozen=True)
class ParameterRow:
    """One parameter of a study as text."""

    name: str
    values: str  # its values in the study, separated by commas
    meaning: str = ""  # description in one line
    varied: bool = False  # True if the study varies it
    allowed: str = ""  # allowed range


@dataclass(frozen=True)
class ReportContent:
    """Content of a report."""

    title: str
    system: str
    summary: str = ""  # introduction to the system
    parameters: Sequence[ParameterRow] = ()
    command: str = ""  # command that repeats the study
    figures: Sequence[Figure] = ()
    verdicts: Sequence[Verdict] = ()
    points: Sequence[Point] = ()
    references: Sequence[Reference] = ()
    facts: Mapping[str, str] = field(default_factory=dict)  # replicates, seed, versions, date
    figures_directory: str | None = (
        "figures"  # relative to the report; None if no figures are written
    )
    failures: Sequence[Failure] = ()  # tasks and predictions that raised
    faults: Sequence[Fault] = ()  # panels and theory lines that raised


def parameter_rows(
    model: type[Parameters], grid: Mapping[str, Sequence[Any]]
) -> list[ParameterRow]:
    """Return the parameters of a study with their descriptions, the varied ones first."""
    rows = []
    for name, info in model.model_fields.items():
        default = None if info.is_required() else info.get_default(call_default_factory=True)
        values = list(grid.get(name, [default]))
        text = ", ".join(format_value(value) for value in values)
        meaning = " ".join((info.description or "").split())
        rows.append(ParameterRow(name, text, meaning, len(values) > 1, _allowed(info)))
    unknown = [name for name in grid if name not in model.model_fields]
    rows += [
        ParameterRow(name, format_value(list(grid[name])), varied=len(grid[name]) > 1)
        for name in unknown
    ]
    return sorted(rows, key=lambda row: not row.varied)


def _allowed(info: Any) -> str:
    """Return the allowed range of a pydantic field as text."""
    if get_origin(info.annotation) is Literal:
        return " | ".join(str(choice) for choice in get_args(info.annotation))
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    bounds = [
        f"{sign} {format_value(getattr(rule, name))}"
        for rule in info.metadata
        for name, sign in signs.items()
        if getattr(rule, name, None) is not None
    ]
    return " and ".join(bounds)


def report_content(
    system: System,
    *,
    grid: Mapping[str, Sequence[Any]],
    replicates: int,
    seed: int,
    points: Sequence[Point],
    verdicts: Sequence[Verdict],
    command: str = "",
    facts: Mapping[str, str] | None = None,
    figures_directory: str | None = "figures",
    failures: Sequence[Failure] = (),
    drawn: Drawn | None = None,
) -> ReportContent:
    """Gather the content of a report from a system and the results of a study."""
    known = {
        "system": f"{system.name}, version {system.version}",
        "replicates per point": str(replicates),
        "seed": str(seed),
        **_versions(),
        **(facts or {}),
    }
    drawn = system.drawn(points) if drawn is None else drawn
    return ReportContent(
        title=system.title,
        system=system.name,
        summary=system.summary,
        parameters=parameter_rows(system.parameters, grid),
        command=command,
        figures=drawn.figures,
        verdicts=list(verdicts),
        points=list(points),
        references=list(system.references),
        facts=known,
        figures_directory=figures_directory,
        failures=list(failures),
        faults=drawn.faults,
    )


def _versions() -> dict[str, str]:
    versions = {"Python": platform.python_version()}
    for package in ("solvable", "numpy", "scipy"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
