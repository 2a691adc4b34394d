"""``solvable verify``: judge the claims again on stored records."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from solvable.cli.settings import Flag


def verify(
    directory: Path,
    /,
    *,
    details: Flag = False,
    power: Flag = False,
    stored: Flag = False,
    json: Flag = False,
) -> int:
    """Judge the claims of a system again on the records of a run directory.

    For example:
      solvable verify solvable-runs/sequential-recovery-1a2b3c4d
      solvable verify solvable-runs/sequential-recovery-1a2b3c4d --power

    Exit status 1 if a claim fails, or a claim or a prediction raises. Predictions are
    made again by the installed theory; differences from the stored ones are printed.
    Nothing is measured again and nothing is written.

    Parameters
    ----------
    directory
        Run directory, as `solvable run` printed it.
    details
        Add the column of replicates, and that of the power where a narrow terminal leaves it out.
    power
        Print the smallest error of a prediction with which each claim fails.
    stored
        Judge by the stored predictions of the run.
    json
        Print {"verdicts": [...], "errors": [...]}, and "power" if asked.
    """
    from solvable.cli.terminal import write, write_json, write_title
    from solvable.cli.verdicts import (
        load_result,
        note_gaps,
        plain_errors,
        plain_verdicts,
        status_of,
        write_power,
        write_verdicts,
    )

    result = load_result(directory, stored)
    note_gaps(result)
    if json:
        answer = {"verdicts": plain_verdicts(result.verdicts), "errors": plain_errors(result)}
        if power:
            answer["power"] = [asdict(row) for row in result.power]
        write_json(answer)
    else:
        write_title(result.system.title)
        write("")
        write_verdicts(result.verdicts, details=details)
        if power and result.power:
            write("")
            write_power(result.power)
    return status_of(result)
