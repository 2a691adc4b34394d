"""``solvable compare``: verdicts and metrics of several runs side by side."""

from __future__ import annotations

from pathlib import Path

from solvable.cli.settings import Flag


def compare(
    *directories: Path,
    details: Flag = False,
    output: Path | None = None,
    json: Flag = False,
) -> int:
    """Compare the verdicts and metrics of runs.

    For example:
      solvable compare results/first results/second

    Exit status 1 if a claim that holds in the first run fails or raises in another. Nothing is
    measured again; only --output writes files.

    Parameters
    ----------
    directories
        Run directories; all are compared with the first.
    details
        Show all differences; otherwise at most 40, those marked as different first.
    output
        Directory for report.html with curves of all runs, figures as SVG and PDF, comparison.csv.
    json
        Print {"runs": [...], "verdicts": [...], "differences": [...], "broken": [...]}.
    """
    from solvable.cli.terminal import note, plain, write, write_json, write_prose
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
        write_json(
            {
                "runs": [
                    {"label": label, "directory": str(result.directory)}
                    for label, result in zip(found.labels, found.results, strict=True)
                ],
                "verdicts": [plain_verdicts(result.verdicts) for result in found.results],
                "differences": [plain(row) for row in rows(found)],
                "broken": [{"claim": claim, "run": run} for claim, run in found.broken],
            }
        )
    else:
        for table in tables(found, details=details):
            write(table, "")
        remarks = [
            "Paired: both runs have the same random numbers."
            * any(row.pairing == "paired" for row in found.differences),
            '"Differs" is corrected for all compared means together (Holm, 5 %).'
            if found.differences
            else "No metrics are compared: the runs share no setting.",
        ]
        write_prose(line(found) + ".", " ".join(filter(None, remarks)), style="dim")
        for claim, run in found.broken:
            write_prose(f"{claim} holds in the first run, and not in {run}.")
    return 1 if found.broken else 0
