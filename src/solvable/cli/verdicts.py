"""What ``run``, ``verify`` and ``report`` say about the results of a study."""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from solvable.cli.terminal import note, write
from solvable.plots.tables import console_for

if TYPE_CHECKING:
    from solvable.frame.claims import Verdict
    from solvable.study import StudyResult

FAILED = 1
"""Exit status: a claim or a task failed."""


ROOMY = 100
"""Columns of a terminal that has room for every column of the table of verdicts."""


def status_of(result: StudyResult) -> int:
    """Exit status of a study that was looked at.

    Parameters
    ----------
    result : StudyResult
        Finished or not.

    Returns
    -------
    int
        1 if a claim fails or a task raised, else 0.
    """
    failed = result.failures or any(one.status == "fails" for one in result.verdicts)
    return FAILED if failed else 0


def plain_verdicts(verdicts: list[Verdict]) -> list[dict[str, Any]]:
    """Verdicts for JSON: what is not finite becomes None.

    Parameters
    ----------
    verdicts : list of Verdict
        Outcomes of the claims.

    Returns
    -------
    list of dict
        The fields of each verdict by name.
    """
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(one).items()
        }
        for one in verdicts
    ]


def write_verdicts(verdicts: list[Verdict]) -> None:
    """Write the table of verdicts and why some do not hold.

    Parameters
    ----------
    verdicts : list of Verdict
        Outcomes of the claims.
    """
    from solvable.cli.tables import verdict_lines, verdict_table

    if verdicts:
        wide = console_for(sys.stdout).width >= ROOMY
        write(verdict_table(verdicts, with_replicates=wide), "", *verdict_lines(verdicts))
    else:
        write("The system makes no claims.")


def note_gaps(result: StudyResult) -> None:
    """Say on standard error what is missing from a study, and which tasks raised.

    Parameters
    ----------
    result : StudyResult
        Finished or not.
    """
    failures = Counter(one.error for one in result.failures)
    for error, count in failures.most_common(5):
        first = next(one for one in result.failures if one.error == error)
        where = ", ".join(f"{name}={value}" for name, value in first.parameters.items())
        what = "the prediction" if first.replicate is None else f"replicate {first.replicate}"
        note(f"solvable: {count} failed: {error} (first: {what} at {where})")
    unrun = result.missing - sum(one.replicate is not None for one in result.failures)
    if unrun > 0:
        note(
            f"solvable: {unrun} of {result.planned} tasks have not been run; the run command "
            "resumes them."
        )
    if result.snapshot.meta["version"] != result.system.version:
        note(
            f"solvable: the study was made by version {result.snapshot.meta['version']} of "
            f"{result.system.name}; its claims are judged by version {result.system.version}."
        )
