"""``solvable verify``: the claims, judged again on stored records."""

from __future__ import annotations

from pathlib import Path

from solvable.cli.settings import Flag


def verify(directory: Path, /, *, json: Flag = False) -> int:
    """Judge the claims of a system again on the records of a run directory.

    For example:
      solvable verify solvable-runs/sequential-recovery-1a2b3c4d

    Exit status 1 if a claim fails. Nothing is measured anew and nothing is written.

    Parameters
    ----------
    directory
        Run directory, as `solvable run` printed it.
    json
        Print {"verdicts": [...]}.
    """
    from solvable.cli.terminal import write, write_json, write_title
    from solvable.cli.verdicts import note_gaps, plain_verdicts, status_of, write_verdicts
    from solvable.study import load

    result = load(directory)
    note_gaps(result)
    if json:
        write_json({"verdicts": plain_verdicts(result.verdicts)})
    else:
        write_title(result.system.title)
        write("")
        write_verdicts(result.verdicts)
    return status_of(result)
