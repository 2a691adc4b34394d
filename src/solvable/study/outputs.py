"""Files of a run directory that are made from its study: report, figures, records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from solvable.errors import InvalidParameter, StudyConflict, quoted
from solvable.frame.drawn import Drawn, Fault, failed_figure
from solvable.frame.system import System
from solvable.paths import check_path
from solvable.plots.files import Pictures, pictures, try_all, write_figures
from solvable.plots.numbers import format_duration
from solvable.study.content import ReportContent, report_content
from solvable.study.grid import Study
from solvable.study.html import is_report, render_report
from solvable.study.parameters import format_settings
from solvable.study.results import StudyResult
from solvable.study.toml import StudyFile, parse_study

REPORT_NAME = "report.html"
FIGURES_NAME = "figures"


class Outputs(NamedTuple):
    """Written files (an SVG and a PDF per figure), and the faults of figures."""

    report: Path
    records: Path
    figures: list[Path]
    faults: Sequence[Fault]


def check_directory(directory: Path) -> None:
    """Refuse a run directory in which other files would be overwritten; a new one is allowed."""
    check_path(directory, "--output")
    if directory.exists() and not directory.is_dir():
        raise InvalidParameter(
            f"--output is {quoted(str(directory))}, a file; allowed: a directory, new or of this study."
        )
    report = directory / REPORT_NAME
    if report.exists() and not is_report(report):
        raise StudyConflict(
            f"{report}, which is not a report of solvable and would be overwritten. Use another "
            "directory, or move the file away."
        )
    if (directory / "study.sqlite").exists():
        return
    for name in (REPORT_NAME, FIGURES_NAME):
        if (directory / name).exists():
            raise StudyConflict(
                f"{directory}: holds {name} but no study.sqlite; it would be overwritten. Use "
                "another directory, or move it away."
            )


def write_outputs(result: StudyResult, workers: int = 1) -> Outputs:
    """Write report, figures and records of a study; figures are drawn in parallel processes."""
    directory, system = result.directory, result.system
    asked = parse_study(result.snapshot.meta["study"])
    seconds = sum(record["seconds"] or 0.0 for record in result.records)
    content = report_content(
        system,
        grid=asked.grid,
        replicates=asked.replicates,
        seed=asked.seed,
        points=result.points,
        verdicts=result.verdicts,
        command=repeat_command(system, asked),
        facts={
            "tasks": f"{result.planned - result.missing} of {result.planned}",
            "computing time": format_duration(seconds),
        },
        figures_directory=FIGURES_NAME,
        failures=result.failures,
        drawn=Drawn(list(result.drawn), list(result.faults)),
    )
    content, drawn = _pictured(content, workers)
    figures = write_figures(content.figures, directory / FIGURES_NAME, drawn=drawn)
    render_report(content, directory / REPORT_NAME, drawn=drawn)
    return Outputs(directory / REPORT_NAME, result.write_records(), figures, content.faults)


def _pictured(content: ReportContent, workers: int) -> tuple[ReportContent, list[Pictures]]:
    """Draw the figures; an empty figure replaces one that could not be drawn."""
    figures, faults, drawn = list(content.figures), list(content.faults), []
    for place, made in enumerate(try_all(figures, workers)):
        if isinstance(made, str):
            faults.append(Fault("panel", figures[place].name, made))
            figures[place] = failed_figure(figures[place].name, made)
        drawn.append(pictures(figures[place]) if isinstance(made, str) else made)
    return replace(content, figures=figures, faults=faults), drawn


def repeat_command(system: System, asked: StudyFile) -> str:
    """Return the command that repeats a study; it lists only the differences from the preset."""
    if own := system.repeat_command(asked.grid, asked.replicates, asked.seed):
        return own
    words = [f"solvable run {system.name}"]
    base = Study(system, preset=asked.preset if asked.preset in system.presets else None)
    if base.preset is None:
        words.append("--preset none")
    elif base.preset != "quick":
        words.append(f"--preset {base.preset}")
    settings = {
        name: values for name, values in asked.grid.items() if base.grid.get(name) != values
    }
    if settings:
        words.append(f"--set {format_settings(settings)}")
    if asked.points:
        words.append("--points study.toml")
    if asked.replicates != base.replicates:
        words.append(f"--seeds {asked.replicates}")
    if asked.seed:
        words.append(f"--seed {asked.seed}")
    return " ".join(words)
