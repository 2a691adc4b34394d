"""``solvable report``: write the report, figures and records of a run directory again."""

from __future__ import annotations

from pathlib import Path

from solvable.cli.settings import Flag


def report(directory: Path, /, *, stored: Flag = False, json: Flag = False) -> int:
    """Write report.html, figures and records.csv of a run directory again.

    For example:
      solvable report solvable-runs/sequential-recovery-1a2b3c4d

    Nothing is measured again. Predictions and figures are made again by the installed
    theory. Unfinished runs can be reported too. Exit status 1 if a claim, a panel,
    a theory line or a prediction raises.

    Parameters
    ----------
    directory
        Run directory, as `solvable run` printed it.
    stored
        Keep the predictions that the run stored.
    json
        Print {"report", "records", "figures"}: the paths; and "errors".
    """
    from solvable.cli.terminal import note, write, write_json
    from solvable.cli.verdicts import load_result, note_gaps, plain_errors
    from solvable.errors import StudyError
    from solvable.study.outputs import check_directory, write_outputs

    result = load_result(directory, stored)
    check_directory(directory)
    if not result.points:
        raise StudyError(
            f"{directory}: no task has finished, so there is nothing to report. Run it first."
        )
    written = write_outputs(result)
    note_gaps(result, written.faults)
    errors = plain_errors(result, written.faults)
    for error in errors:
        if error["part"] == "claim":
            note(f"solvable: claim {error['name']} raised {error['error']}")
    if json:
        write_json(
            {
                "report": str(written.report),
                "records": str(written.records),
                "figures": [str(path) for path in written.figures],
                "errors": errors,
            }
        )
    else:
        write(*(str(path) for path in (written.report, written.records, *written.figures)))
    return 1 if any(error["part"] != "task" for error in errors) else 0
