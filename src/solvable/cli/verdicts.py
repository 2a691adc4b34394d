"""Output of ``run``, ``verify`` and ``report`` on the results of a study."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from solvable.cli.terminal import note, plain, write, write_prose, write_title
from solvable.frame.claims import Verdict, presets_named
from solvable.frame.drawn import Fault
from solvable.frame.points import has_raised
from solvable.frame.power import LITTLE_POWER, PowerRow
from solvable.frame.system import System, refusals
from solvable.plots.tables import verdict_cell, window
from solvable.study.renewed_predictions import difference, predict_anew
from solvable.study.results import StudyResult, load
from solvable.study.tables import (
    RawRow,
    counts_line,
    power_table,
    raw_rows,
    raw_table,
    verdict_fields,
    verdict_table,
)


def status_of(result: StudyResult, faults: Sequence[Fault] = ()) -> int:
    """Return the exit status of a study: 1 if a claim fails or anything raised, else 0."""
    bad = any(verdict.status in ("fails", "error") for verdict in result.verdicts)
    return 1 if bad or result.failures or faults else 0


def plain_errors(result: StudyResult, faults: Sequence[Fault] = ()) -> list[dict[str, Any]]:
    """Return all exceptions for JSON: of tasks, predictions, claims, panels and theory lines."""
    rows: list[tuple[str, str | None, Any, int | None, str]] = []
    for failure in result.failures:
        part = "prediction" if failure.replicate is None else "task"
        rows.append((part, None, failure.parameters, failure.replicate, failure.error))
    for verdict in result.verdicts:
        if verdict.status == "error":
            rows.append(("claim", verdict.claim, None, None, verdict.reason))
    rows += [(fault.part, fault.name, None, None, fault.error) for fault in faults]
    names = ("part", "name", "parameters", "replicate", "error")
    return [dict(zip(names, row, strict=True)) for row in rows]


def plain_verdicts(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the fields of each verdict for JSON, with None for non-finite numbers."""
    return [plain(verdict_fields(verdict)) for verdict in verdicts]


def write_verdicts(
    verdicts: Sequence[Verdict],
    *,
    details: bool = False,
    shown: Sequence[Verdict] | None = None,
    rest: Sequence[Text] = (),
) -> None:
    """Write the counts of verdicts, the table of those shown, why claims do not hold, and the rest."""
    if not verdicts:
        write("The system makes no claims.")
        return
    shown = verdicts if shown is None else shown
    write(Text(f"{counts_line(verdicts)}", style="bold"))
    if shown:
        write("", verdict_table(shown, details=details, room=window(sys.stdout)))
    for lines in (verdict_lines(shown), rest):
        write(*([""] if lines else []), *lines)


def write_run(result: StudyResult, preset: str | None, *, details: bool = False) -> None:
    """Write the verdicts of a run, and in a few words the claims that other settings judge."""
    refused = refusals(result.points)  # written already, by note_gaps
    shown, settings = [], []
    presets: dict[str, list[str]] = {}
    advice = {claim.name: str(getattr(claim, "missing", "")) for claim in result.system.claims}
    for verdict in result.verdicts:
        reason = verdict.reason.removesuffix(f"; {refused}")
        open_ = verdict.status == "not testable" and reason != refused
        cure = remedy(reason, result.system, preset) if open_ else ""
        if open_ and not cure and LITTLE_POWER in reason:
            other = remedy(advice[verdict.claim], result.system, preset)
            cure = other if other.startswith("--preset") else ""
        if cure.startswith("--preset"):
            presets.setdefault(cure, []).append(verdict.claim)
        elif cure:
            settings.append(replace(verdict, reason=cure))
        elif reason != verdict.reason:
            shown.append(replace(verdict, reason=f"{reason}; {refused.partition(':')[0]}"))
        else:
            shown.append(verdict)
    rest = verdict_lines(settings)
    if presets:
        rest += [Text()] if rest else []
        rest.append(Text("Judged by other presets:"))
        rest += [Text(f"{cure} ({', '.join(claims)})") for cure, claims in presets.items()]
    if rest:
        rest.append(Text("`solvable verify` and the report give every reason in full.", "dim"))
    write_verdicts(result.verdicts, details=details, shown=shown, rest=rest)
    write_unjudged(result)


def write_unjudged(result: StudyResult) -> None:
    """Write measured next to predicted numbers, if claims exist and none judges these records."""
    rows = unjudged(result)
    if rows:
        shown = sorted(rows, key=lambda row: -abs(row.distance or 0.0))[:MOST_ROWS]
        write(
            "", Text("No claim covers these records. Measured and predicted numbers:", style="bold")
        )
        write("", raw_table([row for row in rows if row in shown]))
        if len(rows) > len(shown):
            write_prose(
                f"These are the {len(shown)} of {len(rows)} numbers with the largest deviations; "
                "records.csv has all. Among so many, some deviate by 3 standard errors by chance.",
                style="dim",
            )


def unjudged(result: StudyResult) -> list[RawRow]:
    """Return the numbers that are measured and predicted, unless some claim was judged."""
    judged = any(verdict.status != "not testable" for verdict in result.verdicts)
    return [] if judged else raw_rows(result.points)


MOST_ROWS = 24
"""Rows of numbers that no claim judges in the terminal."""


def remedy(reason: str, system: System, preset: str | None) -> str:
    """Return how to make a claim testable, read from the reason of its verdict.

    This is ``--preset NAME`` if the reason names another preset of the system, else the last clause of
    the reason if that names a parameter. It is empty if the reason names the preset of this run without
    other settings, or neither a preset nor a parameter.
    """
    reason = " ".join(reason.split())
    for names, settings in presets_named(reason):
        known = [name for name in names if name in system.presets]
        if known:
            return "" if preset in known and not settings else f"--preset {known[0]}{settings}"
    clause = reason.rpartition("; ")[2]
    named = {word for pair in _PARAMETER.findall(clause) for word in pair}
    return clause if named & set(system.parameters.model_fields) else ""


_PARAMETER = re.compile(r"\b(?:set|raise|lower|widen) (\w+)|\b(\w+)=")


def write_power(rows: Sequence[PowerRow]) -> None:
    """Write the smallest error of a prediction with which each claim fails on these records."""
    write_title("How wrong must a prediction be before its claim fails?")
    write("", power_table(rows), "")
    write_prose(
        "Smallest relative error x such that the claim fails if every prediction is multiplied by "
        "1 + x, or by 1 − x, and for every larger x. A claim that never fails uses no prediction, or "
        "has a large tolerance. Last column: verdict on a learner at chance level.",
        style="dim",
    )
    for row in rows:
        if row.error:
            write_prose(f"error: {row.claim}: {row.error}")


def verdict_lines(verdicts: Sequence[Verdict]) -> list[Text]:
    """Return a line per reason for which claims fail, raised or cannot be tested."""
    claims: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.status != "holds":
            statement = [verdict.statement] if verdict.status == "fails" else []
            said = " ".join(" ".join([*statement, verdict.reason]).split())
            claims.setdefault((verdict.status, said), []).append(verdict.claim)
    return [
        Text.assemble((f"{status}: ", verdict_cell(status).style), f"{', '.join(names)}: {said}")
        for (status, said), names in claims.items()
    ]


def load_result(directory: Path, stored: bool) -> StudyResult:
    """Load a study with renewed or stored predictions, and write how these differ."""
    before = load(directory)
    if stored:
        return before
    result = predict_anew(before)
    found = difference(before, result)
    if found:
        note(
            f"solvable: predictions of the installed theory differ from the stored ones at {found}; "
            "claims are judged by the installed theory. --stored uses the stored predictions."
        )
    return result


def note_gaps(result: StudyResult, faults: Sequence[Fault] = (), *, quiet: bool = False) -> None:
    """Write to standard error which tasks are missing, which raised, and, unless quiet, why
    predictions are missing.
    """
    failed = sum(failure.replicate is not None for failure in result.failures)
    if failed:
        note(
            f"solvable: {failed} of {result.planned} tasks raised an error; the same run command "
            "tries them again."
        )
    failures = Counter(failure.error for failure in result.failures)
    for error, count in failures.most_common(5):
        first = next(failure for failure in result.failures if failure.error == error)
        where = ", ".join(f"{name}={value}" for name, value in first.parameters.items())
        what = "the prediction" if first.replicate is None else f"replicate {first.replicate}"
        note(f"solvable: {count} failed: {error} (first: {what} at {where})")
    for fault in faults:
        note(f"solvable: {fault.part} {fault.name} raised {fault.error}")
    refused = refusals([point for point in result.points if not has_raised(point.prediction)])
    if refused and not quiet:
        note(f"solvable: {refused}")
    unrun = result.missing - failed
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
