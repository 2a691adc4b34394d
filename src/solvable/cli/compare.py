"""``solvable compare``: verdicts and metrics of several runs side by side."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from solvable.cli.settings import Flag


def compare(
    *directories: Path, details: Flag = False, output: Path | None = None, json: Flag = False
) -> int:
    """Compare runs: their settings, verdicts, and metrics at shared settings.

    For example:
      solvable compare solvable-runs/single-index-1a2b3c4d solvable-runs/single-index-5e6f7a8b

    Exit status 1 if a claim that holds in the first run fails or raises in another.
    Nothing is measured again; predictions are the stored ones. Only --output writes files.

    Parameters
    ----------
    directories
        Run directories, two or more; all are compared with the first.
    details
        Show all differences; otherwise at most 40, those marked as different first.
    output
        Directory for report.html with curves of all runs, figures as SVG and PDF, comparison.csv.
    json
        Print {"runs": [...], "verdicts": [...], "differences": [...], "broken": [...]}.
    """
    from solvable.cli.terminal import note, write, write_json, write_prose
    from solvable.cli.verdicts import plain_verdicts
    from solvable.study.compare import compare_runs, line, rows, tables

    found = compare_runs(directories)
    if output is not None:
        from solvable.study.comparison_outputs import write_comparison

        note(f"Report: {write_comparison(found, output).report}")
    for label, result in zip(found.labels, found.results, strict=True):
        if not result.complete:
            note(f"solvable: {label}: {result.missing} of {result.planned} tasks have no result.")
        version = result.snapshot.meta["version"]
        if version != result.system.version:
            note(
                f"solvable: {label} was made by version {version} of {result.system.name}; its "
                f"claims are judged by version {result.system.version}."
            )
    if json:
        numbers = [
            {
                name: None if isinstance(value, float) and not isfinite(value) else value
                for name, value in row.items()
            }
            for row in rows(found)
        ]
        write_json(
            {
                "runs": [
                    {"label": label, "directory": str(result.directory)}
                    for label, result in zip(found.labels, found.results, strict=True)
                ],
                "verdicts": [plain_verdicts(result.verdicts) for result in found.results],
                "differences": numbers,
                "broken": [{"claim": claim, "run": run} for claim, run in found.broken],
            }
        )
    else:
        for table in tables(found, details=details):
            write(table, "")
        write_prose(
            line(found) + ".",
            'Paired: both runs have the same random numbers. "Differs" is corrected for all compared '
            "means together (Holm, 5 %).",
            style="dim",
        )
        for claim, run in found.broken:
            write_prose(f"{claim} holds in the first run, and not in {run}.")
    return 1 if found.broken else 0
