"""Predictions of the installed theory for the records of an earlier study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from solvable.errors import StudyError
from solvable.frame.points import NO_PREDICTION
from solvable.study.dispatch import outcomes
from solvable.study.execute import Job, Outcome
from solvable.study.results import StudyResult

PATIENCE = 1.0
"""Seconds of predictions in this process, about as long as it takes to start others."""


def predict_anew(result: StudyResult, workers: int | None = None) -> StudyResult:
    """Return the records with predictions of the installed theory; nothing is written."""
    # A store keeps the predictions of the version that ran the study; the installed version may
    # have corrected them.
    system, snapshot = result.system, result.snapshot
    measured = {row["point"] for row in snapshot.tasks}
    jobs = [
        Job("prediction", identity, system, system.version, parameters)
        for identity, parameters, _ in snapshot.points
        if identity in measured
    ]
    end, found = monotonic() + PATIENCE, dict[str, Outcome]()
    while len(found) < len(jobs) and monotonic() < end:
        found |= _predicted(jobs[len(found) :][:1], 1)
    rest = jobs[len(found) :]
    try:
        found |= _predicted(rest, workers if len(rest) > 1 else 1)
    except StudyError:
        if workers is not None:
            raise
        found |= _predicted(rest, 1)  # workers cannot import the system, which is loaded here
    points = [
        (identity, parameters, found[identity].metrics if identity in found else stored)
        for identity, parameters, stored in snapshot.points
    ]
    kept = [row for row in snapshot.failures if row[1] is not None or row[0] not in found]
    raised = [(one.identity, None, str(one.error)) for one in found.values() if one.error]
    again = replace(snapshot, points=points, failures=[*kept, *raised])
    return replace(result, snapshot=again)


def _predicted(jobs: Sequence[Job], workers: int | None) -> dict[str, Outcome]:
    """Return the predictions by point."""
    with closing(outcomes(jobs, workers, None)) as stream:
        return {outcome.identity: outcome for outcome in stream}


def difference(stored: StudyResult, anew: StudyResult) -> str:
    """Describe where predictions differ by more than rounding; empty if nowhere."""
    names: dict[str, None] = {}
    changed = 0
    pairs = list(zip(stored.snapshot.points, anew.snapshot.points, strict=True))
    for (_, _, before), (_, _, after) in pairs:
        found = dict.fromkeys(changed_names(before or {}, after or {}))
        changed += bool(found)
        names |= found
    if not changed:
        return ""
    shown = ", ".join([*list(names)[:4], *(["..."] if len(names) > 4 else [])])
    return f"{changed} of {len(pairs)} points ({shown})"


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of the predictions that differ by more than rounding, or that one side lacks."""
    for name in {**before, **after}:
        one, other = before.get(name), after.get(name)
        if one == other or name == NO_PREDICTION:
            continue
        if isinstance(one, str) or isinstance(other, str):
            yield name
            continue
        values, others = (np.asarray(value, dtype=float) for value in (one, other))
        # other machines and libraries round differently
        same = values.shape == others.shape and np.allclose(
            values, others, rtol=1e-6, atol=1e-12, equal_nan=True
        )
        if not same:
            yield name
