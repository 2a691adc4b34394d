"""``solvable run``: measure a system, compare with theory, judge its claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvable.cli.settings import Flag, Settings
from solvable.plots.words import counted

if TYPE_CHECKING:
    from solvable.study import Study, StudyResult
    from solvable.study.outputs import Outputs
    from solvable.study.parts import Part


def run(
    system: str,
    /,
    *,
    preset: str = "quick",
    set_: Settings = None,
    points: Path | None = None,
    seeds: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    part: str | None = None,
    device: str | None = None,
    output: Path | None = None,
    dry_run: Flag = False,
    details: Flag = False,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Measure a system, compare with theory, and judge its claims.

    For example:
      solvable run sequential-recovery
      solvable run sequential-recovery --set dimension=60,120 --seeds 5
      solvable run sequential-recovery --preset paper --output results/paper
      solvable run sequential-recovery --preset paper --dry-run
      solvable run sequential-recovery --set samples=1e4,1e5 --json > results.json

    The preset sets the grid. --set replaces the values of single parameters.
    `solvable run SYSTEM --help` lists the parameters of a system.

    The run directory holds study.sqlite, study.toml, report.html, figures/ and
    records.csv. The same command resumes a run that was stopped and recomputes
    nothing; a directory of another study is refused.

    Parameters
    ----------
    system
        Name of a system, as in `solvable list`.
    preset
        Named grid; `none` starts from the parameters' defaults.
    set_
        Parameters as name=value; commas make a grid: samples=1000,2000.
    points
        CSV file of settings that are no grid: a column per parameter, a row per setting. They are
        combined with --set and replace the preset's values of these parameters. The study.toml of a
        run with --points can be given too.
    seeds
        Replicates per point of the grid. [default: the preset's]
    seed
        Another seed repeats the study with independent random numbers.
    workers
        Local processes. [default: one per core, and one with --device]
    scheduler
        Address of a Dask scheduler whose workers run the tasks, such as tcp://host:8786.
    part
        Run only a part of the tasks: 3/10 is the third of ten parts, for array jobs. The same command
        without --part joins the parts and runs what they lack.
    device
        Device in torch's notation on which learners compute, such as cuda, for systems whose learners
        take tensors (extra `torch`). Results equal those of NumPy up to rounding.
    output
        Run directory. [default: solvable-runs/SYSTEM-FINGERPRINT]
    dry_run
        Print the tasks, the expected time and memory, and which claims can be tested. At most
        eighteen replicates are measured, in 20 seconds, and nothing is kept.
    details
        Add the column of replicates, and that of the power where a narrow terminal leaves it out.
    json
        Print only {"records": [...], "verdicts": [...], "errors": [...]}.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.cli.settings import read_points, read_settings
    from solvable.errors import InvalidParameter
    from solvable.frame import registry
    from solvable.study.dispatch import count_workers
    from solvable.study.outputs import check_directory
    from solvable.study.parts import Part
    from solvable.study.run import check_device
    from solvable.verbs import study_of

    loaded = registry.load(system)
    grid, rows = read_settings(loaded, set_), read_points(loaded, points) if points else []
    study = study_of(loaded, preset, grid, seeds, seed, points=rows, dashes="--")
    study.check_limits()
    directory = output or Path("solvable-runs") / f"{loaded.name}-{study.fingerprint[:8]}"
    share = None if part is None else Part.parse(part, "--part")
    if dry_run:
        if share is not None:
            raise InvalidParameter("--dry-run describes the whole study; leave out --part.")
        return _rehearse(study, directory, workers, json, quiet)
    check_directory(directory)
    if device is not None:
        check_device(loaded, device, here=scheduler is None)
        workers = 1 if workers is None else workers
    result = _measure(study, directory, workers, scheduler, share, device, quiet, progress)
    if share is not None:
        return _conclude_part(result, study, share, directory, json, quiet)
    if result.interrupted:
        return _say_interrupted(result)
    try:
        processes = 1 if scheduler else count_workers(workers)
        return _conclude(result, study.preset, json, quiet, processes, details)
    except KeyboardInterrupt:
        return _say_interrupted(result)


def _rehearse(study: Study, directory: Path, workers: int | None, json: bool, quiet: bool) -> int:
    """Print the expected time and memory of the study, and which claims it can test."""
    from solvable.cli.terminal import status_line, write, write_json, write_prose
    from solvable.study.rehearsal import claim_table, dry_run, sentences

    with status_line("trying a few replicates", shown=not quiet):
        found = dry_run(study, directory, workers=workers)
        lines = sentences(found)
    if json:
        write_json(found.to_json())
    else:
        write_prose(*lines[:2])
        if found.expectations:
            write("", claim_table(found), "")
        write_prose(*lines[2:])
    return 0


def _measure(
    study: Study,
    directory: Path,
    workers: int | None,
    scheduler: str | None,
    share: Part | None,
    device: str | None,
    quiet: bool,
    lines: bool,
) -> StudyResult:
    from solvable.cli.terminal import note
    from solvable.progress import progress_bar
    from solvable.study import run_study
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    where = f"on {scheduler}" if scheduler else counted(lanes, "worker")
    points = len(study.points)
    if not quiet:
        preset = f", preset {study.preset}" if study.preset else ""
        shape = f"{counted(points, 'point')} x {counted(study.replicates, 'replicate')}"
        which = f", {share}" if share else ""
        note(f"{study.system.name}{preset}: {shape}{which}, {where}, in {directory}")
    resumed = False
    with progress_bar(shown=not quiet, lines=lines) as show:

        def progress(done: int, total: int, seconds_left: float | None) -> None:
            nonlocal resumed
            if not resumed and done and not quiet:
                note(f"{done} of {total} tasks are finished already.")
            resumed = True
            show(done, total, seconds_left)

        part = None if share is None else f"{share.index}/{share.count}"
        options: dict[str, Any] = {"workers": workers, "scheduler": scheduler, "part": part}
        options["device"] = device
        return run_study(study, directory, progress=progress, **options)


def _conclude_part(
    result: StudyResult, study: Study, share: Part, whole: Path, json: bool, quiet: bool
) -> int:
    """Print how much of a part is finished, and return the exit status."""
    from solvable.cli.terminal import note, write, write_json
    from solvable.study.parts import finished_in

    identities = {task.identity for task in share.tasks(study)}
    stored = {record["task"] for record in result.records} | finished_in(whole, study)
    finished = len(identities & stored)
    for failure in result.failures[:5]:
        note(f"solvable: failed: {failure.error}")
    if json:
        counts = {"tasks": len(identities), "finished": finished, "failed": len(result.failures)}
        write_json({"part": share.index, "parts": share.count, **counts})
    elif not quiet:
        write(
            f"{share}: {finished} of {counted(len(identities), 'task')} finished, in {result.directory}",
            "The same command without --part joins the parts and prints the verdicts.",
        )
    if result.interrupted:
        note("solvable: interrupted; finished tasks are kept. The same command resumes.")
        return 130
    return 1 if result.failures else 0


def _conclude(
    result: StudyResult,
    preset: str | None,
    json: bool,
    quiet: bool,
    workers: int,
    details: bool,
) -> int:
    """Write the files, print the results, and return the exit status."""
    from solvable.cli.terminal import status_line, write, write_json, write_title
    from solvable.cli.verdicts import (
        note_gaps,
        plain_errors,
        plain_verdicts,
        status_of,
        unjudged,
        write_run,
    )
    from solvable.errors import SolvableError
    from solvable.study.outputs import write_outputs

    written: Outputs | None = None
    fault: SolvableError | None = None
    if result.points:
        try:
            with status_line("writing figures and report", shown=not quiet):
                written = write_outputs(result, workers)
        except SolvableError as error:
            # the results are printed even if a file cannot be written
            fault = error
    faults = written.faults if written else []
    note_gaps(result, faults, quiet=quiet)
    if json:
        verdicts, errors = plain_verdicts(result.verdicts), plain_errors(result, faults)
        answer = {"records": result.records, "verdicts": verdicts, "errors": errors}
        rows = [row._asdict() | {"distance": row.distance} for row in unjudged(result)]
        write_json(answer | {"unjudged": rows})
    elif not quiet:
        write_title(result.system.title)
        write("")
        write_run(result, preset, details=details)
        if written is not None:
            write("", f"report   {written.report}", f"figures  {written.report.parent / 'figures'}")
            write(f"records  {written.records}")
    if fault is not None:
        raise fault
    return status_of(result, faults)


def _say_interrupted(result: StudyResult) -> int:
    from solvable.cli.terminal import note

    done = result.planned - result.missing
    note(
        f"solvable: interrupted; {done} of {result.planned} tasks are kept in {result.directory}. "
        "The same command resumes; `solvable report` shows what is there."
    )
    return 130
