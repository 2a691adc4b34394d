"""The files of a run directory that are made from its study: report, figures, records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from solvable.errors import InvalidParameter, StudyConflict

if TYPE_CHECKING:
    from solvable.frame.system import System
    from solvable.study import StudyResult
    from solvable.study.toml import StudyFile

REPORT_NAME = "report.html"
FIGURES_NAME = "figures"


class Outputs(NamedTuple):
    """Files that were written.

    Parameters
    ----------
    report, records : Path
        ``report.html`` and ``records.csv``.
    figures : list of Path
        SVG and PDF files.
    """

    report: Path
    records: Path
    figures: list[Path]


def check_directory(directory: Path) -> None:
    """Refuse a run directory in which something else would be overwritten.

    Parameters
    ----------
    directory : Path
        Need not exist.

    Raises
    ------
    InvalidParameter
        If it is a file.
    StudyConflict
        If it holds a report or figures that are not those of a study there.
    """
    if directory.exists() and not directory.is_dir():
        raise InvalidParameter(
            f"--output is {str(directory)!r}, a file; allowed: a directory, new or of this study."
        )
    report = directory / REPORT_NAME
    if report.exists():
        from solvable.study.html import is_report

        if not is_report(report):
            raise StudyConflict(
                f"{report}: not a report of solvable; it would be overwritten. Use another "
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


def write_outputs(result: StudyResult) -> Outputs:
    """Write report, figures and records of a study.

    Parameters
    ----------
    result : StudyResult
        With one point at least.

    Returns
    -------
    Outputs
        The files.

    Raises
    ------
    StorageFailed
        If one cannot be written.
    """
    from solvable.plots.files import write_figures
    from solvable.study.content import report_content
    from solvable.study.html import render_report
    from solvable.study.toml import parse_study

    directory, system = result.directory, result.system
    asked = parse_study(result.snapshot.meta["study"])
    content = report_content(
        system,
        grid=asked.grid,
        replicates=asked.replicates,
        seed=asked.seed,
        points=result.points,
        verdicts=result.verdicts,
        command=repeat_command(system, asked),
        facts=_facts(result),
        figures_directory=FIGURES_NAME,
        failures=result.failures,
    )
    figures = write_figures(content.figures, directory / FIGURES_NAME)
    render_report(content, directory / REPORT_NAME)
    return Outputs(directory / REPORT_NAME, result.write_records(), figures)


def repeat_command(system: System, asked: StudyFile) -> str:
    """Write the command that repeats a study.

    Parameters
    ----------
    system : System
        What was studied.
    asked : solvable.study.toml.StudyFile
        Content of ``study.toml``.

    Returns
    -------
    str
        ``solvable run ...``; only what differs from the preset is spelled out.
    """
    from solvable.cli.settings import format_settings
    from solvable.study import Study

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
    if asked.replicates != base.replicates:
        words.append(f"--seeds {asked.replicates}")
    if asked.seed:
        words.append(f"--seed {asked.seed}")
    return " ".join(words)


def _facts(result: StudyResult) -> dict[str, str]:
    from solvable.cli.terminal import format_duration

    seconds = sum(record["seconds"] or 0.0 for record in result.records)
    return {
        "tasks": f"{result.planned - result.missing} of {result.planned}",
        "computing time": format_duration(seconds),
    }
