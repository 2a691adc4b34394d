"""``solvable compare``: verdicts and metrics of several runs side by side."""

from __future__ import annotations

from pathlib import Path

from solvable.cli.settings import Flag


def compare(
    *directories: Path,
    python: Path | None = None,
    details: Flag = False,
    output: Path | None = None,
    json: Flag = False,
) -> int:
    """Compare runs, or two versions of the library on one run.

    For example:
      solvable compare results/first results/second
      solvable compare solvable-runs/single-index-1a2b3c4d
      solvable compare solvable-runs/single-index-1a2b3c4d --python other/bin/python

    A single run is judged twice: by its stored predictions, or by the version of --python, and by
    the installed library.

    Exit status 1 if a claim that holds in the first run fails or raises in another, or in
    the installed version. Nothing is measured again; only --output writes files.

    Parameters
    ----------
    directories
        Run directories; all are compared with the first.
    python
        Interpreter of an environment with another version of solvable, for a single run.
    details
        Show all differences; otherwise at most 40, those marked as different first.
    output
        Directory for report.html with curves of all runs, figures as SVG and PDF, comparison.csv.
    json
        Print {"runs": [...], "verdicts": [...], "differences": [...], "broken": [...]}; for a single
        run "versions" and "shifts" instead of "runs" and "differences".
    """
    if len(directories) == 1:
        return _versions(directories[0], python, details, output, json)
    from solvable.cli.terminal import note, plain, write, write_json, write_prose
    from solvable.cli.verdicts import plain_verdicts
    from solvable.errors import InvalidParameter
    from solvable.study.compare import compare_runs, line, rows, tables

    if python is not None:
        raise InvalidParameter(
            f"--python is given with {len(directories)} runs; allowed: one run, for both versions."
        )
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


def _versions(
    directory: Path, python: Path | None, details: bool, output: Path | None, json: bool
) -> int:
    """Compare two versions of the library on one run."""
    from solvable.cli.terminal import plain, write, write_json, write_prose
    from solvable.errors import InvalidParameter
    from solvable.study.comparison_versions import compare_versions, line, rows, tables

    if output is not None:
        raise InvalidParameter(
            "--output is given with one run; allowed: two or more runs. The output of two versions goes "
            "to the terminal, or with --json into a file."
        )
    found = compare_versions(directory, python)
    if json:
        both = (found.before, found.after)
        write_json(
            {
                "versions": [one.label for one in both],
                "verdicts": [[plain(row) for row in one.verdicts] for one in both],
                "shifts": [plain(row) for row in rows(found)],
                "broken": found.broken,
            }
        )
        return 1 if found.broken else 0
    for table in tables(found, details=details):
        write(table, "")
    write_prose(line(found) + ".", style="dim")
    for claim in found.broken:
        write_prose(f"{claim} holds by {found.before.label}, and not by {found.after.label}.")
    return 1 if found.broken else 0
